package engine

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/lint"
)

// Files is a file system in memory: texts by their paths. Its directories are those in the
// paths.
type Files map[string][]byte

func validPath(name string) bool { return fs.ValidPath(name) && name != "." }

// in cleans a path as people write it, such as "." or "./policies".
func in(name string) string { return path.Clean(name) }

// sorted lists the paths in the order in which a directory walk visits them.
func (f Files) sorted() []string {
	return slices.SortedFunc(maps.Keys(f), func(a, b string) int {
		return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
	})
}

// read returns the text of a file that a request names.
func (f Files) read(name string) ([]byte, error) {
	if text, ok := f[in(name)]; ok && name != "" {
		return text, nil
	}
	return nil, fmt.Errorf("%q is none of the files: %w", name, fs.ErrNotExist)
}

// Open opens a file or a directory.
func (f Files) Open(name string) (fs.File, error) {
	if text, ok := f[name]; ok {
		return &opened{info: info{name: path.Base(name), size: int64(len(text))}, text: bytes.NewReader(text)}, nil
	}
	entries, err := f.ReadDir(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &opened{info: info{name: path.Base(name), dir: true}, entries: entries}, nil
}

// ReadDir lists a directory by name.
func (f Files) ReadDir(dir string) ([]fs.DirEntry, error) {
	found := f.within(dir)
	if len(found) == 0 && dir != "." {
		return nil, &fs.PathError{Op: "readdir", Path: dir, Err: fs.ErrNotExist}
	}
	var out []fs.DirEntry
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, fs.FileInfoToDirEntry(found[name]))
	}

	return out, nil
}

// within describes the entries of a directory, by name.
func (f Files) within(dir string) map[string]info {
	prefix := dir + "/"
	if dir == "." {
		prefix = ""
	}
	found := map[string]info{}
	for name, text := range f {
		rest, below := strings.CutPrefix(name, prefix)
		if !below {
			continue
		}
		first, _, nested := strings.Cut(rest, "/")
		one := info{name: first, dir: nested}
		if !nested {
			one.size = int64(len(text))
		}
		found[first] = one
	}

	return found
}

// info describes a file or a directory.
type info struct {
	name string
	size int64
	dir  bool
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.dir }
func (i info) Sys() any           { return nil }

func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// opened is an open file or directory.
type opened struct {
	info    info
	text    *bytes.Reader
	entries []fs.DirEntry
}

func (o *opened) Stat() (fs.FileInfo, error) { return o.info, nil }
func (o *opened) Close() error               { return nil }

func (o *opened) Read(b []byte) (int, error) {
	if o.info.dir {
		return 0, fs.ErrInvalid
	}
	return o.text.Read(b)
}

func (o *opened) ReadDir(n int) ([]fs.DirEntry, error) {
	out := o.entries
	if n > 0 {
		out = out[:min(n, len(out))]
	}
	o.entries = o.entries[len(out):]
	if n > 0 && len(out) == 0 {
		return nil, io.EOF
	}
	return out, nil
}

// named is a file that is checked.
type named struct {
	path string
	kind lint.Content
	text []byte
}

// checked lists the files that a check of the whole directory includes.
func (f Files) checked() []named {
	var out []named
	for _, name := range f.sorted() {
		kind, ok := lint.NamedContent(path.Base(name))
		if !ok || kind == lint.PeopleContent && lint.ContentOf(f[name]) != lint.PeopleContent {
			continue
		}
		out = append(out, named{path: name, kind: kind, text: f[name]})
	}

	return out
}
