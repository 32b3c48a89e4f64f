package auth

import (
	"cmp"
	"context"
	"crypto/rsa"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/assent-dev/assent/internal/guard"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// issuer is an Issuer with its keys.
type issuer struct {
	Issuer
	keys   *keys
	client *http.Client
}

func newIssuer(cfg Issuer, now func() time.Time, log *slog.Logger) (*issuer, error) {
	client, err := clientOf(cmp.Or(cfg.KeysURL, cfg.URL), cfg.Networks, cfg.TLS)
	if err != nil {
		return nil, err
	}
	if strings.ContainsAny(cfg.URL, "?#") {
		return nil, errors.New("expected an address without query and fragment")
	}
	for _, name := range cfg.Algorithms {
		if !slices.Contains(Algorithms(), name) {
			return nil, fmt.Errorf("the algorithm %q can't be allowed", name)
		}
	}
	if len(cfg.Algorithms) == 0 {
		cfg.Algorithms = Algorithms()
	}
	i := &issuer{Issuer: cfg, client: client}
	i.keys = &keys{
		load:  i.load,
		now:   now,
		log:   log.With("issuer", cfg.URL),
		fresh: 15 * time.Minute,
		again: 10 * time.Second,
	}
	if cfg.KeysFile != "" {
		i.keys.fresh, i.keys.again = 10*time.Second, time.Second
	}
	return i, nil
}

// clientOf reaches the addresses of an issuer: https, no redirects, and
// no private network that an operator doesn't name, in an address or by
// itself.
func clientOf(text string, networks []netip.Prefix, roots *tls.Config) (*http.Client, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("expected an https address")
	}
	g := guard.Guard{
		Allow:   networks,
		TLS:     roots,
		Connect: 5 * time.Second,
	}.Naming(u)
	if _, err := g.CheckURL(text); err != nil {
		return nil, err
	}
	return g.Client(patience), nil
}

const (
	patience  = 10 * time.Second // with an issuer
	maxAnswer = 1 << 20          // bytes of one answer of it
)

// load gets the issuer's keys.
func (i *issuer) load(ctx context.Context) ([]jose.JSONWebKey, error) {
	text, err := i.keysText(ctx)
	if err != nil {
		return nil, err
	}
	return readKeys(text)
}

func (i *issuer) keysText(ctx context.Context) ([]byte, error) {
	if i.KeysFile != "" {
		return os.ReadFile(i.KeysFile)
	}
	at := i.KeysURL
	if at == "" {
		found, err := discover(ctx, i.client, i.URL, "jwks_uri")
		if err != nil {
			return nil, err
		}
		at = found
	}

	return get(ctx, i.client, at)
}

// discover asks an issuer for an address in its metadata.
func discover(ctx context.Context, c *http.Client, issuer, member string) (string, error) {
	var failed error
	for _, at := range metadataOf(issuer) {
		text, err := get(ctx, c, at)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		f := jsonmsg.Read(text, value.DefaultLimits())
		own := f.NonEmpty("issuer")
		found := f.NonEmpty(member)
		switch {
		case f.Err() != nil:
			return "", fmt.Errorf("the issuer's metadata: %w", f.Err())
		case own != issuer:
			return "", fmt.Errorf("the issuer's metadata is that of %.200q", own)
		}

		return found, nil
	}

	return "", fmt.Errorf("the issuer's metadata can't be had: %w", failed)
}

// get reads a document.
func get(ctx context.Context, c *http.Client, at string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, errors.New("a request can't be made of the address")
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "assent")
	resp, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s", r.URL.Redacted(), resp.Status)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil || len(text) > maxAnswer {
		return nil, fmt.Errorf(
			"%s: the answer can't be read, or is too long",
			r.URL.Redacted(),
		)
	}

	return text, nil
}

// readKeys reads a set of keys. Those that can't check a signature, are
// for something else or are too short are left out.
func readKeys(text []byte) (out []jose.JSONWebKey, err error) {
	f := jsonmsg.Read(text, value.DefaultLimits())
	for _, raw := range f.Elements("keys", maxKeys) {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(raw) == nil && useful(&key) {
			out = append(out, key.Public())
		}
	}

	if f.Err() != nil {
		return nil, fmt.Errorf("the issuer's keys: %w", f.Err())
	}
	if len(out) == 0 {
		return nil, errors.New("the issuer's keys: expected one that checks signatures")
	}
	return out, nil
}

const (
	maxKeys = 100
	minRSA  = 2048 // bits
)

func useful(key *jose.JSONWebKey) bool {
	public := key.Public()
	if !public.IsPublic() || !public.Valid() || key.Use != "" && key.Use != "sig" {
		return false
	}
	large, is := public.Key.(*rsa.PublicKey)
	return !is || large.N.BitLen() >= minRSA
}
