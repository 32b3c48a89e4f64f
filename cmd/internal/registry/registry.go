// Package registry fetches the policies that a decision configuration
// names by URL.
package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/policyhttp"
)

// Open prepares the registry of a configuration. It returns nil if there is none. Nothing is
// fetched before the first Refresh. Errors while writing the cache are passed to trouble.
func Open(d *term.Decisions, trouble func(error)) (*policyhttp.Registry, error) {
	if d == nil || d.Registry == nil {
		return nil, nil
	}
	return open(d, func(bundle []byte) {
		file := d.Beside(d.Registry.Cache)
		if file == "" {
			return
		}
		if err := keep(file, bundle); err != nil {
			trouble(fmt.Errorf("%s: registry.cache: %w", d.File, err))
		}
	})
}

func open(d *term.Decisions, keep func(bundle []byte)) (*policyhttp.Registry, error) {
	cfg := policyhttp.Config{URL: d.Registry.URL, MaxAge: d.Registry.Keep, Keep: keep}
	if file := d.Beside(d.Registry.TokenFile); file != "" {
		cfg.Token = func() (string, error) { return readToken(d.File, file) }
		if _, err := cfg.Token(); err != nil { // known at the start, and not at the first request
			return nil, err
		}
	}

	r, err := policyhttp.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: registry.url: %w", d.File, err)
	}

	return r, nil
}

// readToken reads the token of a registry. It is read for each request, because the token may be
// rotated.
func readToken(config, file string) (string, error) {
	text, err := os.ReadFile(file)
	token := strings.TrimSpace(string(text))
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: registry.token_file: %w", config, err)
	case token == "":
		return "", fmt.Errorf("%s: registry.token_file: %s is empty", config, file)
	}

	return token, nil
}

// Fetched is the current content of a registry.
type Fetched struct {
	Origin   string         // its URL, without what may be secret
	Bundle   []byte         // as it was sent
	Policies int            // in it
	Findings []diag.Finding // of them; none stops
}

// Fetch downloads the current content of a configuration's registry. It stores nothing.
func Fetch(ctx context.Context, d *term.Decisions) (*Fetched, error) {
	if d.Registry == nil {
		return nil, fmt.Errorf("%s names no registry", d.File)
	}
	var out Fetched
	r, err := open(d, func(bundle []byte) { out.Bundle = bundle })
	if err != nil {
		return nil, err
	}
	out.Findings = r.Refresh(ctx)
	state := r.State()
	if state.Failure != nil {
		return nil, fmt.Errorf("policy registry %s: %w", state.Origin, state.Failure)
	}
	out.Origin, out.Policies = state.Origin, len(r.Snapshot().Policies())

	return &out, nil
}

// Keep writes the content to the cache of its configuration.
func (f *Fetched) Keep(d *term.Decisions) (file string, err error) {
	file = d.Beside(d.Registry.Cache)

	return file, replace(file, f.Bundle)
}

// Unpack writes the fetched policies to a directory, which must not exist or must be empty, because
// policies that the registry no longer has must not be mixed with current ones.
func (f *Fetched) Unpack(dir string) error {
	switch there, err := os.ReadDir(dir); {
	case len(there) > 0:
		return fmt.Errorf("%s is not empty: expected a directory that is not there yet", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}

	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	files, _ := policy.ReadBundle(f.Bundle, "", policyhttp.DefaultMaxBytes) // it was sound when it was fetched
	for _, file := range files {
		name := strings.TrimPrefix(file.Name, "#") // they are named as those of an origin, here none
		err = errors.Join(err, root.MkdirAll(path.Dir(name), 0o755), write(root, name, file.Text))
	}

	return errors.Join(err, root.Close())
}

// write creates a new file.
func write(root *os.Root, name string, text []byte) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)

	return errors.Join(err, f.Close())
}

// keep writes the copy of a registry. If the existing copy was confirmed, only its time stamp is
// updated.
func keep(file string, bundle []byte) error {
	if bundle != nil {
		return replace(file, bundle)
	}
	now := time.Now()

	return os.Chtimes(file, now, now)
}

// replace writes a file atomically: readers see either the old or the new content.
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

// Cached is the copy of a registry from the last fetch. It never changes.
type Cached struct{ *policy.Set }

// Snapshot returns the policies.
func (c Cached) Snapshot() *policy.Set { return c.Set }

// Findings returns none, because the age of the copy doesn't matter here.
func (c Cached) Findings() []diag.Finding { return nil }

// FromCache reads the copy of a registry for commands that only check.
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
