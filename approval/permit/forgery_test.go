package permit_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/assent-dev/assent/approval/permit"
	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
)

// attempt is a call with a permit, and the reason why it must be refused, or an empty string if
// it may run.
type attempt struct {
	Name      string        `json:"name"`
	Permit    string        `json:"permit"`
	Target    string        `json:"target"`
	Arguments string        `json:"arguments"`
	Reason    permit.Reason `json:"reason"`
}

// attempts returns calls that verifiers in all languages must decide in the same way.
func attempts(t testing.TB) []attempt {
	t.Helper()
	signer := newSigner(t, issuer, 1)
	text := sign(t, signer, good(t))
	var out []attempt
	of := func(name, text, target, arguments string, reason permit.Reason) {
		out = append(out, attempt{name, text, target, arguments, reason})
	}
	changed := func(name string, reason permit.Reason, change func(*permit.Permit)) {
		p := good(t)
		change(&p)
		of(name, sign(t, signer, p), target, arguments, reason)
	}

	edited := func(name, old, new string) {
		of(name, text, target, strings.Replace(arguments, old, new, 1), permit.OtherArguments)
	}

	of("good", text, target, arguments, "")
	of("in another spelling", text, target, respelt, "")
	changed("without a principal", "", func(p *permit.Permit) {
		p.Principal = ""
	})
	changed("a minute ahead", "", later(time.Minute))
	changed("in its last second", "", later(-5*time.Minute+time.Second))
	changed("more than a minute ahead", permit.Early, later(61*time.Second))
	changed("over", permit.Expired, later(-5*time.Minute))
	changed("long over", permit.Expired, later(-24*time.Hour))
	changed("for another tool", permit.OtherAudience, func(p *permit.Permit) {
		p.Audience += "/"
	})
	changed("for another operation", permit.OtherTarget, func(p *permit.Permit) {
		p.Target = "tool trades"
	})
	of("another operation", text, "tool trad", arguments, permit.OtherTarget)
	edited("edited", "20000", "20001")
	edited("one more argument", "{", `{"fast":true,`)
	edited("a number as a text", "20000", `"20000"`)
	edited("a number that is too small", "20000", "1e-99999999999999999999")
	edited("a zero that is too long", "20000", "0e9999999999999999999999999")
	edited("a name twice", "{", `{"note":"café",`)
	edited("another order of a list", "0.5, 1e3", "1e3, 0.5")
	edited("a number that no double holds", "20000", "20000.00000000000000001")
	of("no arguments", text, target, `{}`, permit.OtherArguments)
	of("a list", text, target, `[]`, permit.OtherArguments)
	of("of another issuer", sign(t, newSigner(t, issuer+"2", 1), good(t)), target, arguments, permit.OtherIssuer)
	of("by another key", sign(t, newSigner(t, issuer, 2), good(t)), target, arguments, permit.Untrusted)
	return append(out, forged(t, text)...)
}

// respelt are the same arguments in another spelling.
const respelt = `{"limits":[5e-1,1000.0,-7],"note":"caf\u00e9","currency":"USD","amount":2e4}`

// later returns a change that moves the lifetime of a permit.
func later(by time.Duration) func(*permit.Permit) {
	return func(p *permit.Permit) {
		p.Issued = p.Issued.Add(by)
		p.Expires = p.Expires.Add(by)
	}
}

// forged returns texts that the issuer did not sign.
func forged(t testing.TB, text string) []attempt {
	t.Helper()
	header, rest, _ := strings.Cut(text, ".")
	payload, signature, _ := strings.Cut(rest, ".")
	var out []attempt
	of := func(name, text string, reason permit.Reason) {
		out = append(out, attempt{name, text, target, arguments, reason})
	}
	headed := func(name string, reason permit.Reason, change func(map[string]any)) {
		of(name, encoded(t, header, change)+"."+payload+"."+signature, reason)
	}

	of("nothing", "", permit.Malformed)
	of("two parts", header+"."+payload, permit.Malformed)
	of("four parts", text+".", permit.Malformed)
	of("no signature", header+"."+payload+".", permit.Untrusted)
	of("padded", text+"=", permit.Malformed)
	of("with a line break", header+"\n."+payload+"."+signature, permit.Malformed)
	of("spelt otherwise", text[:len(text)-1]+string(text[len(text)-1]+1), permit.Malformed)
	of("long", text+strings.Repeat("A", 9000), permit.Malformed)
	headed("alg none", permit.Malformed, func(h map[string]any) {
		h["alg"] = "none"
	})
	headed("alg HS256", permit.Malformed, func(h map[string]any) {
		h["alg"] = "HS256"
	})
	headed("no alg", permit.Malformed, func(h map[string]any) {
		delete(h, "alg")
	})
	headed("typ JWT", permit.Malformed, func(h map[string]any) {
		h["typ"] = "JWT"
	})
	headed("no typ", permit.Malformed, func(h map[string]any) {
		delete(h, "typ")
	})
	headed("crit", permit.Malformed, func(h map[string]any) {
		h["crit"] = []string{"exp"}
	})
	headed("jku", permit.Malformed, func(h map[string]any) {
		h["jku"] = "https://evil.example.com"
	})
	headed("unencoded", permit.Malformed, func(h map[string]any) {
		h["b64"] = false
	})
	headed("no kid", permit.Untrusted, func(h map[string]any) {
		delete(h, "kid")
	})
	headed("null as kid", permit.Malformed, func(h map[string]any) {
		h["kid"] = nil
	})
	headed("a certificate", permit.Malformed, func(h map[string]any) {
		h["x5c"] = []string{"AAAA"}
	})
	headed("an empty nonce", permit.Malformed, func(h map[string]any) {
		h["nonce"] = ""
	})
	headed("a list as kid", permit.Malformed, func(h map[string]any) {
		h["kid"] = []string{"x"}
	})
	headed("another kid", permit.Untrusted, func(h map[string]any) {
		h["kid"] = "x"
	})
	longer := encoded(t, payload, func(c map[string]any) { c["exp"] = 9999999999 })
	of("other claims", header+"."+longer+"."+signature, permit.Untrusted)
	of("its key beside it", selfSigned(t), permit.Malformed)
	return out
}

// encoded returns a changed part of a permit.
func encoded(t testing.TB, part string, change func(map[string]any)) string {
	t.Helper()
	text, err := base64.RawURLEncoding.DecodeString(part)
	must.Do(t, err)
	members := map[string]any{}
	must.Do(t, json.Unmarshal(text, &members))
	change(members)
	text, err = json.Marshal(members)
	must.Do(t, err)
	return base64.RawURLEncoding.EncodeToString(text)
}

// selfSigned returns a permit that contains the key of its forger.
func selfSigned(t testing.TB) string {
	t.Helper()
	seed := make([]byte, ed25519.SeedSize)
	s, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.EdDSA, Key: ed25519.NewKeyFromSeed(seed)},
		(&jose.SignerOptions{EmbedJWK: true}).WithType(permit.Type),
	)
	must.Do(t, err)
	signed, err := s.Sign([]byte(fmt.Sprintf(`{"iss":%q,"aud":%q}`, issuer, audience)))
	must.Do(t, err)
	text, err := signed.CompactSerialize()
	must.Do(t, err)
	return text
}

// Each attempt is run with its own verifier. The golden file is for verifiers in other
// languages.
func TestAttempts(t *testing.T) {
	all := attempts(t)
	for _, a := range all {
		_, err := newVerifier(t, now()).Verify(t.Context(), a.Permit, a.Target, []byte(a.Arguments))
		if got := reason(t, err); got != a.Reason {
			t.Errorf("%s: got %q (%v), want %q", a.Name, got, err, a.Reason)
		}
	}

	file, err := json.MarshalIndent(map[string]any{
		"issuer":   issuer,
		"audience": audience,
		"keys":     json.RawMessage(keysOf(t, newSigner(t, issuer, 1))),
		"now":      now().Unix(),
		"attempts": all,
	}, "", "  ")
	must.Do(t, err)
	golden.Equal(t, "attempts.json", string(file)+"\n")
}

// Permits with characters changed, moved, cut or taken from others are refused, and so are
// permits for other calls.
func TestTenThousandForgeriesAreRefused(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	mine := sign(t, newSigner(t, issuer, 1), good(t))
	other := good(t)
	other.Request = "req_2"
	other.Target = "tool other"
	other.Audience = "https://other.example.com"
	theirs := sign(t, newSigner(t, issuer, 1), other)
	foreign := sign(t, newSigner(t, issuer, 3), good(t))
	v := newVerifier(t, now())
	for n := range 10_000 {
		text := forge(random, []string{mine, theirs, foreign}[n%3], theirs)
		if text == mine {
			continue
		}
		if _, err := v.Verify(t.Context(), text, target, []byte(arguments)); err == nil {
			t.Fatalf("forgery %d ran: %s", n, text)
		}
	}

	if _, err := v.Verify(t.Context(), mine, target, []byte(arguments)); err != nil {
		t.Errorf("the permit itself: %v", err)
	}
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."

func forge(random *rand.Rand, text, other string) string {
	b := []byte(text)
	at := random.IntN(len(b))
	switch random.IntN(6) {
	case 0:
		b[at] = alphabet[random.IntN(len(alphabet))]
	case 1:
		b = append(b[:at], b[at+1:]...)
	case 2:
		return text[:at] + string(alphabet[random.IntN(len(alphabet))]) + text[at:]
	case 3:
		next := random.IntN(len(b))
		b[at], b[next] = b[next], b[at]
	case 4:
		return text[:at] + other[min(at, len(other)):]
	case 5:
		parts, others := strings.Split(text, "."), strings.Split(other, ".")
		if len(parts) == 3 {
			parts[random.IntN(3)] = others[random.IntN(3)]
		}
		return strings.Join(parts, ".")
	}

	return string(b)
}
