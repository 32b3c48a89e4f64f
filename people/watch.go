package people

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/diag"
)

// maxFile bounds people.yaml, in bytes.
const maxFile = 4 << 20

// BrokenError says why a people.yaml can't be used.
type BrokenError struct {
	File     string
	Findings []diag.Finding
}

// Error shows the first finding that stops the load.
func (e *BrokenError) Error() string {
	i := max(0, slices.IndexFunc(e.Findings, func(f diag.Finding) bool { return f.Stops }))
	if i >= len(e.Findings) {
		return e.File + ": can't be used"
	}
	f := e.Findings[i]
	text := fmt.Sprintf("%s:%d:%d: %s", e.File, f.Range.Start.Line, f.Range.Start.Column, f.Message)
	if f.Expected != "" {
		text += "; expected " + f.Expected
	}
	if f.Nearest != "" {
		text += fmt.Sprintf("; did you mean %q?", f.Nearest)
	}
	return text
}

// Watched is the directory of a file that may change.
type Watched struct {
	file string

	mu  sync.RWMutex
	src []byte // as last looked at
	dir *Directory
	err error
}

// Watch reads a people.yaml; Run keeps it fresh.
func Watch(file string) (*Watched, error) {
	w := &Watched{file: file}
	if err := w.Reload(); err != nil {
		return nil, err
	}
	return w, nil
}

// Run looks at the file again and again until ctx ends. It compares contents, not times, so a change within one tick of the file
// system's clock counts, and so does a link that leads elsewhere.
func (w *Watched) Run(ctx context.Context, every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			_ = w.Reload() // Err keeps it
		}
	}
}

// Reload looks at the file now. A file that can't be used leaves the last good directory in force and is the error, of Err too.
func (w *Watched) Reload() error {
	src, err := read(w.file)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.err = fmt.Errorf("read the people: %w", err)
		w.src = nil
		return w.err
	}
	if w.src != nil && bytes.Equal(src, w.src) {
		return w.err
	}
	dir, findings := Parse(w.file, src)
	w.src, w.err = src, nil
	if dir == nil {
		w.err = &BrokenError{File: w.file, Findings: findings}
		return w.err
	}
	w.dir = dir
	return nil
}

func read(name string) (src []byte, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, maxFile+1)) // Parse refuses what is larger
}

// Err is why the file can't be used as it stands, nil when it is in force.
func (w *Watched) Err() error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.err
}

// Directory is what is in force.
func (w *Watched) Directory() *Directory {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.dir
}

// Person resolves a name in what is in force.
func (w *Watched) Person(ctx context.Context, tenant, name string) (approval.Person, bool, error) {
	return w.Directory().Person(ctx, tenant, name)
}

// Members lists a group of what is in force.
func (w *Watched) Members(ctx context.Context, tenant, group string) ([]approval.Person, error) {
	return w.Directory().Members(ctx, tenant, group)
}

// Owners lists an agent's owners of what is in force.
func (w *Watched) Owners(ctx context.Context, tenant, agent string) ([]string, error) {
	return w.Directory().Owners(ctx, tenant, agent)
}

// Declares reports whether what is in force allows the group.
func (w *Watched) Declares(tenant, group string) bool { return w.Directory().Declares(tenant, group) }
