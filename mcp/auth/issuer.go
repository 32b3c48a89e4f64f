package auth

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
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
	"github.com/assent-dev/assent/internal/keyset"
	"github.com/assent-dev/assent/value"
)

// issuer is an Issuer with its keys.
type issuer struct {
	Issuer
	keys   *keyset.Set
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
	i.keys = &keyset.Set{
		Load:  i.load,
		Now:   now,
		Log:   log.With("issuer", cfg.URL),
		Fresh: 15 * time.Minute,
		Again: 10 * time.Second,
	}
	if cfg.KeysFile != "" {
		i.keys.Fresh, i.keys.Again = 10*time.Second, time.Second
	}
	return i, nil
}

// clientOf returns an HTTP client for the addresses of an issuer. It requires https, follows no
// redirects, and reaches private networks only if the operator named them in the address or in
// networks.
func clientOf(text string, networks []netip.Prefix, roots *tls.Config) (*http.Client, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("expected an https address")
	}
	g := guard.Guard{Allow: networks, TLS: roots, Connect: 5 * time.Second}.Naming(u)
	if _, err := g.CheckURL(text); err != nil {
		return nil, err
	}
	return g.Client(keyset.Patience), nil
}

// load reads the issuer's keys.
func (i *issuer) load(ctx context.Context) ([]jose.JSONWebKey, error) {
	text, err := i.keysText(ctx)
	if err != nil {
		return nil, err
	}
	return keyset.Read(text)
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

	return keyset.Fetch(ctx, i.client, at)
}

// discover reads an address from an issuer's metadata.
func discover(ctx context.Context, c *http.Client, issuer, member string) (string, error) {
	var failed error
	for _, at := range metadataOf(issuer) {
		text, err := keyset.Fetch(ctx, c, at)
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

	return "", fmt.Errorf("the issuer's metadata can't be fetched: %w", failed)
}
