package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assent-dev/assent/cmd/internal/edits"
)

// record describes what an install has done. It is stored next to the configuration of the gateway.
type record struct {
	Client  string     `json:"client"`
	Scope   string     `json:"scope"`
	Project string     `json:"project,omitempty"`
	File    string     `json:"file"`   // the client's
	Backup  string     `json:"backup"` // of that
	Before  string     `json:"before"` // SHA-256 of its text
	After   string     `json:"after"`
	Moved   []string   `json:"moved"` // names of servers
	Entry   any        `json:"entry"` // of the gateway, as it was written
	Files   []recorded `json:"files"` // that the install wrote

	path string
}

// recorded is a file with the SHA-256 of its text.
type recorded struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// recordOf returns the path of the record for a configuration.
func recordOf(config string) string {
	return strings.TrimSuffix(config, filepath.Ext(config)) + ".install.json"
}

func readRecord(config string) (record, error) {
	r := record{path: recordOf(config)}
	text, err := os.ReadFile(r.path)
	if err != nil {
		return r, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&r); err != nil {
		return r, fmt.Errorf("%s can't be read, so nobody knows what an install has done: %w", r.path, err)
	}

	return r, nil
}

// write writes the record and then the files. It overwrites nothing.
func (r *record) write(config string, files []made) error {
	r.path = recordOf(config)
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	for _, f := range append([]made{{r.path, append(text, '\n')}}, files...) {
		if err := writeNew(f); err != nil {
			return err
		}
	}

	return nil
}

// writeNew writes a file that only its owner can read.
func writeNew(f made) error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(f.text)
	if err == nil {
		err = out.Sync()
	}

	return errors.Join(err, out.Close())
}

// remove removes the files that the install wrote, and the record last. Files that were changed
// since are kept.
func (r *record) remove() error {
	kept := r.changed()
	for _, f := range r.Files {
		if slices.Contains(kept, f.Path) {
			continue
		}
		if err := removeFile(f.Path); err != nil {
			return err
		}
	}

	return removeFile(r.path)
}

// removeFile removes a file, and its directory if that is empty then.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_ = os.Remove(filepath.Dir(path)) // not while anything is in it

	return nil
}

// wrote reports whether a file is unchanged since the install.
func (r *record) wrote(path string) bool {
	mine := func(f recorded) bool { return f.Path == path }

	return slices.ContainsFunc(r.Files, mine) && !slices.Contains(r.changed(), path)
}

// changed returns the files that were changed since the install.
func (r *record) changed() []string {
	var out []string
	for _, f := range r.Files {
		text, err := os.ReadFile(f.Path)
		if err == nil && edits.Digest(text) != f.SHA256 {
			out = append(out, f.Path)
		}
	}

	return out
}
