// Package registry fetches the policies that a decision configuration
// names by URL.
package registry

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/policyhttp"
)

// Open prepares the registry of a configuration; nil when it has none.
// Nothing is fetched before its first Refresh. What keeps the cache
// from being written goes to trouble.
func Open(d *term.Decisions, trouble func(error)) (*policyhttp.Registry, error) {
	if d == nil || d.Registry == nil {
		return nil, nil
	}
	cfg := policyhttp.Config{URL: d.Registry.URL, MaxAge: d.Registry.Keep}
	if file := d.Beside(d.Registry.TokenFile); file != "" {
		text, err := os.ReadFile(file)
		token := strings.TrimSpace(string(text))
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: registry.token_file: %w", d.File, err)
		case token == "":
			return nil, fmt.Errorf("%s: registry.token_file: %s is empty", d.File, file)
		}

		cfg.Header = http.Header{"Authorization": {"Bearer " + token}}
	}

	if file := d.Beside(d.Registry.Cache); file != "" {
		cfg.Keep = func(bundle []byte) {
			if err := keep(file, bundle); err != nil {
				trouble(fmt.Errorf("%s: registry.cache: %w", d.File, err))
			}
		}
	}

	r, err := policyhttp.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: registry.url: %w", d.File, err)
	}

	return r, nil
}

// keep writes the copy of a registry. One that was confirmed is as good
// as new, which its time stamp says.
func keep(file string, bundle []byte) error {
	if bundle != nil {
		return replace(file, bundle)
	}
	now := time.Now()

	return os.Chtimes(file, now, now)
}

// replace writes a file whole or not at all: a reader sees the one
// before or this one.
func replace(file string, text []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(text); err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), file)
	}

	return err
}

// Cached is the copy of a registry that was written when it was fetched
// last. It never changes.
type Cached struct{ *policy.Set }

// Snapshot returns the policies.
func (c Cached) Snapshot() *policy.Set { return c.Set }

// Findings are none: nobody asks how old it is.
func (c Cached) Findings() []diag.Finding { return nil }

// FromCache reads the copy of a registry, for those who only check.
func FromCache(d *term.Decisions) (Cached, error) {
	if d.Registry.Cache == "" {
		return Cached{}, errors.New("it has no cache")
	}
	file := d.Beside(d.Registry.Cache)
	body, err := os.ReadFile(file)
	if err != nil {
		return Cached{}, err
	}
	set, _ := policy.LoadBundle(body, file, policyhttp.DefaultMaxBytes)

	return Cached{Set: set}, set.Err()
}
