package permit

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/assent-dev/assent/internal/keyset"
)

// Config configures a Verifier.
type Config struct {
	Issuer   string           // URL of the tenant's permits: https, or http on this machine
	Audience string           // the tool's own name in the server's configuration
	Keys     []byte           // the issuer's set of keys (RFC 7517 §5); nil: loaded from the issuer when needed
	Client   *http.Client     // loads the keys; nil: one with a timeout of 10 seconds that follows no redirects
	Uses     Uses             // nil: DefaultUses permits in this process
	Now      func() time.Time // nil: time.Now
	Logger   *slog.Logger     // logs why keys or uses are unavailable; may be nil
}

// Verifier checks calls against permits. It is safe for concurrent use.
type Verifier struct {
	cfg  Config
	keys keyset.Set
}

// Reason is the reason why a call was refused. Clients in other languages use the same values.
type Reason string

// The values of Reason.
const (
	Malformed      Reason = "malformed"   // the text is not a permit
	Untrusted      Reason = "untrusted"   // it is not signed by a trusted key
	OtherIssuer    Reason = "issuer"      // it is from another issuer
	OtherAudience  Reason = "audience"    // it is for another tool
	Early          Reason = "early"       // it was issued in the future: clocks differ
	Expired        Reason = "expired"     // it has expired
	OtherTarget    Reason = "target"      // it is for another operation of the tool
	OtherArguments Reason = "arguments"   // it is for other arguments
	Used           Reason = "used"        // it was used already
	Unavailable    Reason = "unavailable" // keys or uses are unavailable now
)

// Reasons returns all reasons.
func Reasons() []Reason {
	return []Reason{
		Malformed, Untrusted, Unavailable, OtherIssuer, OtherAudience,
		Early, Expired, OtherTarget, OtherArguments, Used,
	}
}

// RefusedError is returned if a call may not run. Its text may be shown to the sender of the
// call.
type RefusedError struct {
	Reason Reason
	Err    error
}

func (e *RefusedError) Error() string {
	return "permit refused (" + string(e.Reason) + "): " + e.Err.Error()
}

func (e *RefusedError) Unwrap() error { return e.Err }

// earliest limits how far an issuer's clock may be ahead.
const earliest = time.Minute

// longest limits the length of a permit, in bytes.
const longest = 8 << 10

// NewVerifier returns a verifier, or an error if the configuration is invalid.
func NewVerifier(cfg Config) (*Verifier, error) {
	if err := checkIssuer(cfg.Issuer); err != nil {
		return nil, err
	}
	if cfg.Audience == "" {
		return nil, errors.New("permit: expected the tool's audience, as the server's configuration names it")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Uses == nil {
		cfg.Uses = NewUses(DefaultUses, cfg.Now)
	}
	if cfg.Client == nil {
		cfg.Client = &http.Client{Timeout: keyset.Patience, CheckRedirect: follow}
	}

	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	v := &Verifier{cfg: cfg}
	v.keys = keyset.Set{
		Load:  v.load,
		Now:   cfg.Now,
		Log:   cfg.Logger,
		Fresh: 15 * time.Minute,
		Again: 10 * time.Second,
	}
	if cfg.Keys != nil {
		if _, err := keyset.Read(cfg.Keys); err != nil {
			return nil, fmt.Errorf("permit: %w", err)
		}
	}
	return v, nil
}

func follow(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func checkIssuer(issuer string) error {
	u, err := url.Parse(issuer)
	if err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && isLocal(u.Hostname())) {
		return nil
	}
	return errors.New("permit: expected the issuer's URL: https://…, or http://… on this machine")
}

func isLocal(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (v *Verifier) load(ctx context.Context) ([]jose.JSONWebKey, error) {
	text := v.cfg.Keys
	if text == nil {
		loaded, err := keyset.Fetch(ctx, v.cfg.Client, strings.TrimSuffix(v.cfg.Issuer, "/")+KeysPath)
		if err != nil {
			return nil, err
		}
		text = loaded
	}

	return keyset.Read(text)
}

// Verify checks and uses up the permit for a call that the tool is about to run: the target as
// named in the server's configuration, and the arguments as JSON. The error is a *RefusedError;
// then the call must not run. A permit that fails a check is not used up.
func (v *Verifier) Verify(ctx context.Context, text, target string, arguments []byte) (*Permit, error) {
	payload, refused := v.open(ctx, text)
	if refused != nil {
		return nil, refused
	}
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil {
		return nil, &RefusedError{Malformed, errors.New("its claims can't be read")}
	}
	if refused := v.check(&c, target, arguments); refused != nil {
		return nil, refused
	}

	first, err := v.cfg.Uses.Use(ctx, c.Request, time.Unix(c.Expires, 0).Add(earliest))
	switch {
	case err != nil:
		v.cfg.Logger.ErrorContext(ctx, "whether a permit was used can't be told", "error", err)
		return nil, &RefusedError{Unavailable, errors.New("whether it was used can't be told now")}
	case !first:
		return nil, &RefusedError{Used, errors.New("it was used already; a permit is for one run")}
	}

	return c.permit(), nil
}

// open checks the form and the signature.
func (v *Verifier) open(ctx context.Context, text string) (payload []byte, refused error) {
	if !compact(text) {
		return nil, &RefusedError{Malformed, errors.New("expected a JWS in the compact form")}
	}
	kid, ok := headed(text)
	if !ok {
		return nil, &RefusedError{Malformed, errors.New("expected the header of a permit: alg, kid and typ " + Type)}
	}
	signed, err := jose.ParseSignedCompact(text, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return nil, &RefusedError{Malformed, errors.New("expected a JWS signed with EdDSA")}
	}

	keys, err := v.keys.Find(ctx, func(key *jose.JSONWebKey) bool {
		return kid != "" && key.KeyID == kid
	})
	if err != nil {
		return nil, &RefusedError{Unavailable, err}
	}

	for _, key := range keys {
		if payload, err := signed.Verify(key); err == nil {
			return payload, nil
		}
	}
	return nil, &RefusedError{Untrusted, errors.New("it is not signed by a key of its issuer")}
}

// headed checks the header before the library parses it. It must have exactly the strings alg,
// typ and, optionally, kid.
func headed(text string) (kid string, ok bool) {
	part, _, _ := strings.Cut(text, ".")
	raw, err := base64.RawURLEncoding.DecodeString(part)
	var members map[string]any
	if err != nil || json.Unmarshal(raw, &members) != nil {
		return "", false
	}
	for name, member := range members {
		if _, is := member.(string); !is || name != "alg" && name != "kid" && name != "typ" {
			return "", false
		}
	}

	kid, _ = members["kid"].(string)
	return kid, members["alg"] == string(jose.EdDSA) && members["typ"] == Type
}

// compact reports whether text consists of three parts in canonical base64url, so that each
// permit has only one text.
func compact(text string) bool {
	parts := strings.Split(text, ".")
	if len(parts) != 3 || len(text) > longest {
		return false
	}
	if strings.ContainsAny(text, "\r\n") { // the decoder ignores these
		return false
	}

	for _, part := range parts {
		if _, err := base64.RawURLEncoding.Strict().DecodeString(part); err != nil {
			return false
		}
	}

	return true
}

// check checks the claims against the tool, the time and the call.
func (v *Verifier) check(c *claims, target string, arguments []byte) error {
	now := v.cfg.Now().Unix()
	life := c.Expires - c.Issued
	switch {
	case c.Request == "" || c.Issued <= 0 || life <= 0 || life > int64(MaxLifetime/time.Second):
		return &RefusedError{Malformed, errors.New("expected an id, and a life of at most an hour")}
	case c.Issuer != v.cfg.Issuer:
		return &RefusedError{OtherIssuer, errors.New("it is of another issuer")}
	case c.Audience != v.cfg.Audience:
		return &RefusedError{OtherAudience, errors.New("it is for another tool")}
	case c.Issued > now+int64(earliest/time.Second):
		return &RefusedError{Early, errors.New("it is of a time to come: compare the clocks of tool and server")}
	case c.Expires <= now:
		return &RefusedError{Expired, errors.New("its time is over: run the call right after it was taken")}
	case c.Target != target:
		return &RefusedError{OtherTarget, fmt.Errorf("it is for another operation than %q", target)}
	}

	digest, err := Digest(arguments)
	if err != nil {
		return &RefusedError{OtherArguments, err}
	}
	if digest != c.Arguments {
		return &RefusedError{OtherArguments, errors.New("it is for other arguments: run what the server answered with")}
	}
	return nil
}
