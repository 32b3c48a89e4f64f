package policyhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// maxRedirects limits the redirects, which must stay on the registry's own host.
const maxRedirects = 3

// fetched is the result of one request.
type fetched struct {
	unchanged bool
	body      []byte
	etag      string
}

// fetch requests the bundle, unless the registry's copy still has the given tag. The timeout covers
// the whole exchange.
func (r *Registry) fetch(ctx context.Context, etag string) (got fetched, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.cfg.URL, nil)
	if err != nil {
		return fetched{}, withoutURL(err)
	}
	for name, values := range r.cfg.Header {
		req.Header[name] = values
	}
	if r.cfg.Token != nil {
		token, err := r.cfg.Token()
		if err != nil {
			return fetched{}, fmt.Errorf("its token: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}

	req.Header.Set("Accept", "application/json")
	req.Header.Set("Cache-Control", "no-cache") // a cache on the way must ask too
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return fetched{}, withoutURL(err)
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	return r.read(resp, etag)
}

// read accepts a bundle or "not modified". Any other response is not repeated in the error, because
// its content is not trusted.
func (r *Registry) read(resp *http.Response, etag string) (fetched, error) {
	switch {
	case resp.StatusCode == http.StatusNotModified && etag != "":
		return fetched{unchanged: true}, nil
	case resp.StatusCode != http.StatusOK:
		return fetched{}, fmt.Errorf("the server answered with status %d", resp.StatusCode)
	}

	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		return fetched{}, fmt.Errorf("the answer is no JSON but %q", resp.Header.Get("Content-Type"))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(r.cfg.MaxBytes)+1))
	if err != nil {
		return fetched{}, fmt.Errorf("the answer broke off: %w", err)
	}
	if len(body) > r.cfg.MaxBytes {
		return fetched{}, fmt.Errorf("the answer is larger than %d bytes", r.cfg.MaxBytes)
	}
	return fetched{body: body, etag: resp.Header.Get("ETag")}, nil
}

// sameOrigin follows a few redirects on the requested host only, so that no other host can decide
// what is allowed.
func sameOrigin(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	if first := via[0].URL; req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
		return fmt.Errorf("a redirect leads to %s://%s, away from the registry", req.URL.Scheme, req.URL.Host)
	}
	return nil
}

// withoutURL removes the URL from an error, because its query may contain a secret.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
