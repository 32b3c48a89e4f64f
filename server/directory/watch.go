package directory

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/policy/people"
)

// maxFile limits people.yaml, in bytes.
const maxFile = 4 << 20

// BrokenError says why a people.yaml can't be used.
type BrokenError struct {
	File     string
	Findings []diag.Finding
}

// Error returns the first finding that prevents the load.
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

// OpenGroupsError means that a people.yaml has no list of groups, which an identity
// provider requires.
type OpenGroupsError struct {
	File   string
	Groups []string // that its people are in
}

// Error returns a text that includes what to write.
func (e *OpenGroupsError) Error() string {
	list := []string{}
	for _, g := range e.Groups {
		list = append(list, strconv.Quote(g)+": {}")
	}
	return fmt.Sprintf(
		"%s: people sign in at an identity provider, and the file has no list of groups, so any group that "+
			"the provider names would count. Write the groups that sign-ins may bring, and those of your people, at "+
			"its top:\n"+
			"groups: {%s}",
		e.File,
		strings.Join(list, ", "),
	)
}

// WatchOptions configure what a watched file must contain, and the consequence of a file
// that can't be used.
type WatchOptions struct {
	// ClosedGroups refuses a file without a list of groups (OpenGroupsError), because
	// sign-ins give groups.
	ClosedGroups bool
	// DenyBroken makes every lookup an error while the file can't be used. Without it, the
	// last good directory is used.
	DenyBroken bool
}

// Watched is the directory of a file that may change.
type Watched struct {
	file string
	opt  WatchOptions

	mu     sync.RWMutex
	src    []byte // as it was read last
	dir    *people.Directory
	digest string // of dir's file
	err    error
}

// Watch reads a people.yaml. Run reloads it.
func Watch(file string, opt WatchOptions) (*Watched, error) {
	w := &Watched{file: file, opt: opt}
	if err := w.Reload(); err != nil {
		return nil, err
	}
	return w, nil
}

// Run checks the file periodically until ctx ends. It compares contents and not times, so
// it also notices a change within one tick of the file system's clock, and a link with a
// new target.
func (w *Watched) Run(ctx context.Context, every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			_ = w.Reload() // Err returns the error
		}
	}
}

// Reload checks the file now. If it can't be used, the last good directory stays in force,
// and Reload and Err return the error.
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
	dir, findings := people.Parse(w.file, src)
	w.src, w.err = src, nil
	switch {
	case dir == nil:
		w.err = &BrokenError{File: w.file, Findings: findings}
	case w.opt.ClosedGroups && !dir.Closed():
		w.err = &OpenGroupsError{File: w.file, Groups: dir.Groups()}
	default:
		w.dir, w.digest = dir, fmt.Sprintf("sha256:%x", sha256.Sum256(src))
	}

	return w.err
}

// errIrregular prevents blocking on a pipe or a device.
var errIrregular = errors.New("it is no regular file")

func read(name string) (src []byte, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", name, errIrregular)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, maxFile+1)) // Parse refuses a larger file
}

// File returns the name of the file.
func (w *Watched) File() string { return w.file }

// Err returns why the current file can't be used, or nil if it is in force.
func (w *Watched) Err() error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.err
}

// InForce returns the digest of the file in force ("sha256:" and the output of sha256sum),
// and the number of people in it.
func (w *Watched) InForce() (digest string, count int) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.digest, w.dir.Len()
}

// Directory returns the directory in force, or an error if there is none.
func (w *Watched) Directory() (*people.Directory, error) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.opt.DenyBroken && w.err != nil {
		return nil, fmt.Errorf("who may answer is not known: %w", w.err)
	}
	return w.dir, nil
}

// Person resolves a name in the directory in force.
func (w *Watched) Person(ctx context.Context, tenant, name string) (approval.Person, bool, error) {
	d, err := w.Directory()
	if err != nil {
		return approval.Person{}, false, err
	}
	return d.Person(ctx, tenant, name)
}

// Members lists a group of the directory in force.
func (w *Watched) Members(ctx context.Context, tenant, group string) ([]approval.Person, error) {
	d, err := w.Directory()
	if err != nil {
		return nil, err
	}
	return d.Members(ctx, tenant, group)
}

// Owners lists an agent's owners in the directory in force.
func (w *Watched) Owners(ctx context.Context, tenant, agent string) ([]string, error) {
	d, err := w.Directory()
	if err != nil {
		return nil, err
	}
	return d.Owners(ctx, tenant, agent)
}

// Reading returns what a person may read according to the directory in force.
func (w *Watched) Reading(ctx context.Context, tenant string, p approval.Person) (people.Reading, error) {
	d, err := w.Directory()
	if err != nil {
		return people.Reading{}, err
	}
	return d.Reading(ctx, tenant, p)
}

// Declares reports whether sign-ins may give a group, according to the directory in force.
func (w *Watched) Declares(tenant, group string) bool {
	d, err := w.Directory()
	return err == nil && d.Declares(tenant, group)
}

// Blocked reports whether the directory in force blocks the person with a name.
func (w *Watched) Blocked(tenant, name string) bool {
	d, err := w.Directory()
	return err == nil && d.Blocked(tenant, name)
}
