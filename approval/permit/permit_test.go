package permit_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval/permit"
	"github.com/assent-dev/assent/internal/must"
)

const (
	issuer    = "https://assent.example.com/permits/acme"
	audience  = "https://tools.example.com"
	target    = "tool trade"
	arguments = `{"amount": 20000, "currency": "USD", "note": "café", "limits": [0.5, 1e3, -7]}`
)

func now() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) }

func newSigner(t testing.TB, issuer string, first byte) *permit.Signer {
	t.Helper()
	seed := make([]byte, 32)
	seed[0] = first
	s, err := permit.NewSigner(issuer, seed)
	must.Do(t, err)
	return s
}

func keysOf(t testing.TB, s *permit.Signer) []byte {
	t.Helper()
	keys, err := s.Keys()
	must.Do(t, err)
	return keys
}

// newVerifier returns the verifier of the default tool, with the clock at a given time.
func newVerifier(t testing.TB, at time.Time) *permit.Verifier {
	t.Helper()
	v, err := permit.NewVerifier(permit.Config{
		Issuer:   issuer,
		Audience: audience,
		Keys:     keysOf(t, newSigner(t, issuer, 1)),
		Now:      func() time.Time { return at },
	})
	must.Do(t, err)
	return v
}

// good returns a permit for the default call.
func good(t testing.TB) permit.Permit {
	t.Helper()
	digest, err := permit.Digest([]byte(arguments))
	must.Do(t, err)
	return permit.Permit{
		Issuer:    issuer,
		Audience:  audience,
		Agent:     "desk",
		Request:   "req_1",
		Binding:   "sha256:" + strings.Repeat("ab", 32),
		Target:    target,
		Arguments: digest,
		Principal: "mara@example.com",
		Issued:    now(),
		Expires:   now().Add(5 * time.Minute),
	}
}

func sign(t testing.TB, s *permit.Signer, p permit.Permit) string {
	t.Helper()
	text, err := s.Sign(&p)
	must.Do(t, err)
	return text
}

// reason returns why a call was refused, or an empty string.
func reason(t testing.TB, err error) permit.Reason {
	t.Helper()
	var refused *permit.RefusedError
	if err != nil && !errors.As(err, &refused) {
		t.Fatalf("%v is no RefusedError", err)
	}
	if err == nil {
		return ""
	}
	return refused.Reason
}

func TestAPermitLetsItsCallRunOnce(t *testing.T) {
	p := good(t)
	text := sign(t, newSigner(t, issuer, 1), p)
	if again := sign(t, newSigner(t, issuer, 1), p); again != text {
		t.Errorf("the same permit got two texts:\n%s\n%s", text, again)
	}

	v := newVerifier(t, now())
	var all sync.WaitGroup
	got := make([]*permit.Permit, 64)
	errs := make([]error, 64)
	for i := range errs {
		all.Go(func() { got[i], errs[i] = v.Verify(t.Context(), text, target, []byte(arguments)) })
	}
	all.Wait()

	ran := 0
	for i, err := range errs {
		switch reason(t, err) {
		case "":
			ran++
			if *got[i] != p {
				t.Errorf("got %+v, want %+v", *got[i], p)
			}
		case permit.Used:
		default:
			t.Error(err)
		}
	}

	if ran != 1 {
		t.Errorf("it ran %d times", ran)
	}
}

// The same arguments in another spelling run, because a tool may parse and rewrite them.
func TestTheSameArgumentsInAnotherSpellingRun(t *testing.T) {
	for _, same := range []string{
		`{"limits":[0.5,1000,-7.0],"note":"caf\u00e9","currency":"USD","amount":2e4}`,
		" {\n\"amount\":20000.0 , \"currency\":\"\\u0055SD\",\"limits\":[5e-1,1000.0,-7],\"note\":\"café\"}",
	} {
		text := sign(t, newSigner(t, issuer, 1), good(t))
		if _, err := newVerifier(t, now()).Verify(t.Context(), text, target, []byte(same)); err != nil {
			t.Errorf("%s: %v", same, err)
		}
	}
}

// A refused permit is not used up, so that sending a stolen permit with another call does not
// affect its owner.
func TestARefusedPermitIsNotUsedUp(t *testing.T) {
	text := sign(t, newSigner(t, issuer, 1), good(t))
	v := newVerifier(t, now())
	if _, err := v.Verify(t.Context(), text, target, []byte(`{}`)); reason(t, err) != permit.OtherArguments {
		t.Errorf("other arguments: %v", err)
	}
	if _, err := v.Verify(t.Context(), text, target, []byte(arguments)); err != nil {
		t.Error(err)
	}
}

// Arguments that languages read differently have no digest.
func TestArgumentsThatLanguagesReadDifferently(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":9007199254740993}`:      "beyond 2^53",
		`{"a":[-9007199254740992]}`:   "beyond 2^53",
		`{"a":1e300}`:                 "beyond 2^53",
		`{"a":0.1234567890123456789}`: "more digits than a double keeps",
		`{"a":1,"a":2}`:               "a",
		`{"a":"\ud800"}`:              "surrogate",
		`[1]`:                         "expected an object",
		`{`:                           "",
		``:                            "",
	} {
		if digest, err := permit.Digest([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v", text, digest, err)
		}
	}

	for _, text := range []string{
		`{"a":9007199254740991,"b":-0,"c":0.1,"d":2.2250738585072014e-308}`,
		`{"a":-9007199254740991}`,
		`{}`,
	} {
		if _, err := permit.Digest([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestWhatCannotBeAPermitIsNotSigned(t *testing.T) {
	s := newSigner(t, issuer, 1)
	for name, spoil := range map[string]func(*permit.Permit){
		"no audience": func(p *permit.Permit) {
			p.Audience = ""
		},
		"no request": func(p *permit.Permit) {
			p.Request = ""
		},
		"no target": func(p *permit.Permit) {
			p.Target = ""
		},
		"no arguments": func(p *permit.Permit) {
			p.Arguments = ""
		},
		"no life": func(p *permit.Permit) {
			p.Expires = p.Issued
		},
		"a long life": func(p *permit.Permit) {
			p.Expires = p.Issued.Add(permit.MaxLifetime + time.Second)
		},
	} {
		p := good(t)
		spoil(&p)
		if text, err := s.Sign(&p); err == nil {
			t.Errorf("%s was signed: %s", name, text)
		}
	}

	if _, err := permit.NewSigner(issuer, make([]byte, 31)); err == nil {
		t.Error("a short seed was taken")
	}
	if _, err := permit.NewSigner("", make([]byte, 32)); err == nil {
		t.Error("no issuer was taken")
	}
}

func TestUsesForgetOnlyWhatIsOver(t *testing.T) {
	at := now()
	u := permit.NewUses(2, func() time.Time { return at })
	use := func(id string, want bool, fails bool) {
		t.Helper()
		first, err := u.Use(t.Context(), id, at.Add(time.Minute))
		if first != want || (err != nil) != fails {
			t.Errorf("%s: %v, %v", id, first, err)
		}
	}
	use("a", true, false)
	use("b", true, false)
	use("a", false, false)
	use("c", false, true)
	at = at.Add(2 * time.Minute)
	use("c", true, false)
	use("c", false, false)
}
