package hookfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/assent-dev/assent/cmd/internal/edits"
	"github.com/assent-dev/assent/cmd/internal/hook"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/settings"
)

// plan is a prepared change of a settings file.
type plan struct {
	spot    spot
	content *content
	text    []byte // that the file gets; nil: it is removed
	exact   bool   // undo: the file gets the very bytes that it had
	same    bool   // nothing changes
	record  *record
	path    string // of the record
	notes   []string
}

// open reads the file and the record of an earlier install. It returns an error if the file can't
// be changed.
func (s spot) open(records string) (*plan, error) {
	p := &plan{spot: s, path: filepath.Join(records, edits.Folder(s.name, s.scope, s.project())+".json")}
	f, err := settings.Open(s.path)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Writable(), s.inside()); err != nil {
		return nil, err
	}
	if p.content, err = s.read(f, f.Text); err != nil {
		return nil, err
	}
	for _, e := range p.content.ours {
		if e.shared {
			return nil, fmt.Errorf("%s:%d: a hook of assent stands in one group with others: give it a group of its own",
				s.path, e.line)
		}
	}

	p.record, err = readRecord(p.path)

	return p, err
}

// inside returns an error for a link in the project that leads out of it: the author of the project
// could have made it point to another file of the user.
func (s spot) inside() error {
	dir, err := filepath.EvalSymlinks(s.place.Project)
	if s.project() == "" || err != nil {
		return nil
	}
	at := s.path
	target, err := filepath.EvalSymlinks(at)
	for errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
		at = filepath.Dir(at) // the file will be made, and directories for it
		target, err = filepath.EvalSymlinks(at)
	}
	if err != nil {
		return err
	}
	if path, err := filepath.Rel(dir, target); err != nil || path == ".." || strings.HasPrefix(path, "../") {
		return fmt.Errorf("%s: this is a link out of the project, to %s: put a file in its place", at, target)
	}

	return nil
}

// newInstall plans an install. With gentle, the hook answers only when the product would ask its
// user.
func (s spot) newInstall(records, program string, line hook.Line, gentle bool) (*plan, error) {
	if gentle && s.dialog == "" {
		return nil, fmt.Errorf("--gentle: %s has no event in the place of its own question: install without it", s.title)
	}
	p, err := s.open(records)
	if err != nil {
		return nil, err
	}
	items, err := s.items(program, line, gentle)
	if err != nil {
		return nil, err
	}
	c := p.content
	if c.has(items) {
		p.same, p.text = true, c.file.Text
		return p, nil
	}
	if err := s.versioned(c); err != nil {
		return nil, err
	}
	base, err := p.base()
	if err != nil {
		return nil, err
	}
	if p.text, err = s.with(base, items); err != nil {
		return nil, err
	}
	p.record = p.installed(base)
	p.tell(program)
	if gentle {
		p.note("%s", s.ungated())
	}

	return p, nil
}

// ungated describes the calls that a gentle install leaves to the product.
func (s spot) ungated() string {
	return "calls that the rules of " + s.title + " allow run without the hook"
}

// has reports whether the file's hooks of assent are exactly the given items.
func (c *content) has(items map[string]settings.Object) bool {
	if len(c.ours) != len(items) {
		return false
	}
	for event, item := range items {
		ours := c.at(event)
		if len(ours) != 1 || !reflect.DeepEqual(ours[0].item, any(c.root.New("", item).Value)) {
			return false
		}
	}

	return true
}

// versioned returns an error if the file lacks the version without which the product ignores it.
func (s spot) versioned(c *content) error {
	if !s.version || len(c.root.Members()) == 0 {
		return nil
	}
	m := c.root.Member("version")
	if m == nil || m.Value != json.Number("1") {
		return fmt.Errorf(`%s: expected "version": 1 at its top, without which %s does not read it: add that first`,
			s.path, s.title)
	}

	return nil
}

// base returns the content of the file without hooks of assent.
func (p *plan) base() (*content, error) {
	text, _, err := p.spot.without(p.content)
	if err != nil {
		return nil, err
	}
	if p.record.holds(p.content.file) {
		text = p.record.before()
	}

	return p.spot.changed(p.content, text)
}

// installed returns the record of the install. It takes over what an earlier install recorded, so
// that uninstall undoes both.
func (p *plan) installed(base *content) *record {
	old, text := p.record, string(base.file.Text)
	r := &record{File: p.spot.path, Before: &text, After: edits.Digest(p.text)}
	switch {
	case !p.content.file.Exists:
		r.Before = nil
	case old.holds(p.content.file):
		r.Before, r.Made = old.Before, old.Made
	}

	return r
}

// tell adds the notes that a person should read about an install.
func (p *plan) tell(program string) {
	s, c := p.spot, p.content
	for _, e := range c.ours {
		p.note("takes the place of the hook of line %d, which runs %s", e.line, e.program)
	}
	for _, event := range s.allEvents() {
		if c.rest[event] > 0 {
			p.note("%d other hooks of %s stay, and run beside it", c.rest[event], event)
		}
	}
	if c.file.Target != c.file.Path {
		p.note("this is a link: what changes is %s", c.file.Target)
	}
	if s.scope == edits.Project {
		p.note("who works on this project needs %s, and the files that the line names, at the same paths", program)
	}
	if text := s.further(s.scope); text != "" {
		p.note("%s", text)
	}
	if s.product.open != "" {
		p.note("%s", s.product.open)
	}
}

func (p *plan) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

// newUninstall plans an uninstall.
func (s spot) newUninstall(records string) (*plan, error) {
	p, err := s.open(records)
	if err != nil {
		return nil, err
	}
	switch {
	case p.record.holds(p.content.file):
		p.exact, p.text = true, p.record.before()
	case len(p.content.ours) == 0:
		return nil, term.No("%s has no hook of assent: nothing is changed", s.path)
	default:
		empty := false
		p.text, empty, err = s.without(p.content)
		if empty && p.record != nil && p.record.Before == nil {
			p.text = nil
		}
	}

	return p, err
}

// difference returns the change as a unified diff. Settings other than hooks are masked, because
// they may be secret.
func (p *plan) difference() (string, error) {
	s := p.spot
	after, err := settings.Parse(settings.JSON, s.path, p.text)
	if err != nil {
		return "", err
	}
	text := diff.Diff(s.path, p.content.root.Masked(s.hidden), s.path+" (changed)", after.Masked(s.hidden))

	return string(text), nil
}

func (s spot) hidden(path []string) bool {
	if slices.Equal(path, []string{"version"}) {
		return false
	}

	return len(path) < 2 || path[0] != "hooks" || slices.Contains(path, "env") || slices.Contains(path, "headers")
}

// install writes the record and then the file.
func (p *plan) install() error { return p.locked(p.writeFile) }

// uninstall restores the file, or removes it if the install created it, and then removes the
// directories that the install created.
func (p *plan) uninstall() error { return p.locked(p.restoreFile) }

// locked runs do while no other process does: another process could remove directories that this
// one needs.
func (p *plan) locked(do func() error) error {
	dir := filepath.Dir(p.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}

	// The parent is locked because the directory of the record is locked itself while the record is
	// written.
	err := settings.Locked(filepath.Dir(dir), do)
	if errors.Is(err, settings.ErrBusy) {
		return fmt.Errorf("%s: %w", p.spot.path, err)
	}

	return err
}

func (p *plan) writeFile() error {
	made, err := makeDirs(filepath.Dir(p.content.file.Target))
	if err != nil {
		return err
	}
	p.record.Made = append(p.record.Made, made...)
	err = p.content.file.ReplaceAfter(p.text, func() error { return p.record.write(p.path) })
	if err != nil {
		removeDirs(made)
	}

	return err
}

func (p *plan) restoreFile() error {
	f := p.content.file
	write := func() error { return f.Replace(p.text) }
	if p.text == nil {
		write = f.Remove
	}
	if err := write(); err != nil {
		return err
	}
	if p.record == nil {
		return nil
	}
	removeDirs(p.record.Made)
	if err := os.Remove(p.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	return nil
}

// removeDirs removes directories that are empty, the inmost first.
func removeDirs(made []string) {
	for _, dir := range slices.Backward(made) {
		_ = os.Remove(dir) // not while anything is in it
	}
}
