package clients

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"

	"github.com/assent-dev/assent/cmd/internal/edits"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/settings"
)

// undo is a prepared uninstall.
type undo struct {
	spot   spot
	file   *settings.File
	now    *settings.Table
	text   []byte
	record record
	// exact is true if the file is restored byte for byte.
	exact    bool
	restored []string
	kept     []string // servers that are declared again, and stay as they are
}

// newUndo determines what an install did, and generates the text without it.
func newUndo(s spot, config string) (*undo, error) {
	u := &undo{spot: s}
	var err error
	if u.file, u.now, err = s.read(); err != nil {
		return nil, err
	}
	if found := u.installed(); config == "" || found != "" {
		config = found
	}
	if config == "" {
		return nil, term.No("%s has no gateway of assent: nothing is changed", s.file)
	}
	u.record, err = readRecord(config)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf(
			"%s is missing, so assent mcp install did not write the entry %s in %s: remove it by hand",
			recordOf(config),
			entryName,
			s.file,
		)
	case err != nil:
		return nil, err
	case u.record.File != s.file:
		return nil, fmt.Errorf("%s tells of an install in %s, not in %s", u.record.path, u.record.File, s.file)
	}

	return u, u.back()
}

// installed returns the configuration of the gateway in the file.
func (u *undo) installed() string {
	for _, m := range u.now.Members() {
		if u.spot.client.kindOf(m) == ours {
			return gatewayConfig(u.spot.client, m.Value.(map[string]any))
		}
	}

	return ""
}

// back generates the text: that of the backup if nothing else has changed since, otherwise the file
// with the servers in place of the entry.
func (u *undo) back() error {
	before, err := os.ReadFile(u.record.Backup)
	if err != nil {
		return fmt.Errorf("the backup can't be read, so the servers can't be put back: %w", err)
	}

	if edits.Digest(before) != u.record.Before {
		return fmt.Errorf(
			"%s is not the backup that the install made: put the servers back by hand",
			u.record.Backup,
		)
	}

	now := edits.Digest(u.file.Text)
	if u.exact = now == u.record.After || now == u.record.Before; u.exact {
		u.text, u.restored = before, u.record.Moved
		return nil
	}
	old, err := settings.Parse(u.spot.client.form, u.record.Backup, before, u.spot.table...)
	if err != nil {
		return err
	}

	return u.piece(old)
}

// piece removes the entry from a file that has changed since, and restores the servers.
func (u *undo) piece(old *settings.Table) error {
	var remove []string
	if m := u.now.Member(entryName); m != nil {
		if !reflect.DeepEqual(m.Value, u.record.Entry) {
			return term.No(
				"%s:%d: the entry %s is not what the install wrote: undo it by hand; %s is the file as it was",
				u.spot.file,
				m.Line,
				entryName,
				u.record.Backup,
			)
		}

		remove = []string{entryName}
	}

	var add []settings.Member
	for _, name := range u.record.Moved {
		m := old.Member(name)
		switch {
		case u.now.Member(name) != nil:
			u.kept = append(u.kept, name)
		case m != nil:
			add = append(add, *m)
			u.restored = append(u.restored, name)
		}
	}

	var err error
	if u.text, err = u.now.Change(remove, add...); err != nil {
		return fmt.Errorf("%w; %s is the file as it was", err, u.record.Backup)
	}

	return nil
}

// write changes the file and removes what the install wrote. It returns the files that are kept
// because they were changed.
func (u *undo) write() ([]string, error) {
	kept := u.record.changed()
	if err := u.file.Replace(u.text); err != nil {
		return nil, err
	}
	if u.exact {
		if err := os.Remove(u.record.Backup); err != nil {
			return nil, err
		}
	}

	return kept, u.record.remove()
}
