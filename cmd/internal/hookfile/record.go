package hookfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/assent-dev/assent/cmd/internal/edits"
	"github.com/assent-dev/assent/internal/settings"
)

// record describes what an install changed, so that uninstall can undo it. Only its owner can read
// it, because settings may contain secrets.
type record struct {
	File   string  `json:"file"`
	Before *string `json:"before"` // the whole text; null: there was no file
	After  string  `json:"after"`  // SHA-256
	// Made lists the directories that were created for the file, the innermost last.
	Made []string `json:"made,omitempty"`
}

// readRecord returns nil if there is no record.
func readRecord(path string) (*record, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s can't be read, so nobody knows what the file was before: %w; remove it, and "+
			"uninstall takes out the hook alone", path, err)
	}

	return &r, nil
}

// write writes the record in one step.
func (r *record) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	f, err := settings.Open(path)
	if err != nil {
		return err
	}

	return f.Replace(append(text, '\n'))
}

// holds reports whether a file is byte for byte what the install wrote.
func (r *record) holds(f *settings.File) bool {
	return r != nil && r.File == f.Path && f.Exists && edits.Digest(f.Text) == r.After
}

// before returns the text of the file before the install, or nil if there was no file.
func (r *record) before() []byte {
	if r.Before == nil {
		return nil
	}

	return []byte(*r.Before)
}

// makeDirs creates a directory and its parents, and returns those that it created.
func makeDirs(dir string) ([]string, error) {
	var made []string
	for at := dir; ; at = filepath.Dir(at) {
		_, err := os.Stat(at)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		made = append([]string{at}, made...)
	}

	return made, os.MkdirAll(dir, 0o755)
}
