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

// record is what an install has done, by which it is undone. Only its
// owner can read it: settings may hold secrets.
type record struct {
	File   string  `json:"file"`
	Before *string `json:"before"` // the whole text; null: there was no file
	After  string  `json:"after"`  // SHA-256
	// Made are the directories that were made for the file, the inmost
	// last.
	Made []string `json:"made,omitempty"`
}

// readRecord is nil when there is none.
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

// before is the text that the file had; nil when there was no file.
func (r *record) before() []byte {
	if r.Before == nil {
		return nil
	}

	return []byte(*r.Before)
}

// makeDirs makes the directory of a file, and returns what it made.
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
