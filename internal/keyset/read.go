package keyset

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/go-jose/go-jose/v4"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// Fetch downloads a document.
func Fetch(ctx context.Context, c *http.Client, at string) ([]byte, error) {
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
		return nil, fmt.Errorf("%s: the answer can't be read, or is too long", r.URL.Redacted())
	}

	return text, nil
}

// Read parses a set of keys. It skips keys that can't verify a signature, that are for another use,
// or that are too short.
func Read(text []byte) (out []jose.JSONWebKey, err error) {
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
	maxAnswer = 1 << 20 // bytes
	maxKeys   = 100
	minRSA    = 2048 // bits
)

func useful(key *jose.JSONWebKey) bool {
	public := key.Public()
	if !public.IsPublic() || !public.Valid() || key.Use != "" && key.Use != "sig" {
		return false
	}
	large, is := public.Key.(*rsa.PublicKey)
	return !is || large.N.BitLen() >= minRSA
}
