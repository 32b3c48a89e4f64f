package plans

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxFile limits one file, in bytes, to the same size as packages schema and policy.
const maxFile = 4 << 20

// reader reads files and directories, each once, and remembers the results. So everything
// in one load comes from one reading, and changed can later find a difference in content,
// whatever sizes and time stamps are.
type reader struct {
	answers map[question]answer
	sums    map[question]sum
}

type sum = [sha256.Size]byte

func newReader() *reader {
	return &reader{answers: map[question]answer{}, sums: map[question]sum{}}
}

// question is a query about a path.
type question struct {
	kind asked
	path string
}

type asked byte

const (
	askStat  asked = iota // the file that a path leads to
	askLstat              // the path itself, without following a link
	askList               // the names in a directory
	askText               // the bytes of a file
)

// answer is the operating system's result.
type answer struct {
	info fs.FileInfo
	list []fs.DirEntry
	text []byte
	err  error
}

func (q question) ask() (a answer) {
	switch q.kind {
	case askStat:
		a.info, a.err = os.Stat(q.path)
	case askLstat:
		a.info, a.err = os.Lstat(q.path)
	case askList:
		a.list, a.err = os.ReadDir(q.path)
	case askText:
		a.text, a.err = readText(q.path)
	}

	return a
}

// readText reads a regular file, up to one byte more than parsers accept, so that they
// notice that it is too large.
func readText(path string) ([]byte, error) {
	info, err := os.Stat(path) // before it is opened, because opening a named pipe without a writer blocks
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errIrregular
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // nothing was written
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// sum returns equal values for answers with the same effect on a load.
func (a answer) sum() sum {
	var b strings.Builder
	switch {
	case a.err != nil:
		b.WriteString("error " + a.err.Error())
	case a.info != nil:
		fmt.Fprintf(&b, "info %v %t", a.info.Mode().Type(), a.info.Size() > maxFile)
	case a.list != nil:
		for _, e := range a.list {
			fmt.Fprintf(&b, "%v %q\n", e.Type(), e.Name())
		}
	default:
		return sha256.Sum256(a.text)
	}

	return sha256.Sum256([]byte(b.String()))
}

func (r *reader) ask(kind asked, path string) answer {
	q := question{kind, path}
	if a, ok := r.answers[q]; ok {
		return a
	}
	a := q.ask()
	r.answers[q], r.sums[q] = a, a.sum()
	return a
}

// text returns the bytes of a file, with their digest.
func (r *reader) text(path string) ([]byte, sum, error) {
	a := r.ask(askText, path)
	switch {
	case a.err != nil:
		return nil, sum{}, a.err
	case len(a.text) > maxFile:
		return nil, sum{}, fmt.Errorf("it has more than %d bytes", maxFile)
	}

	return a.text, r.sums[question{askText, path}], nil
}

// forget drops the contents, and keeps what changed needs.
func (r *reader) forget() { r.answers = nil }

// changed reports whether any query now has another result.
func (r *reader) changed() bool {
	for q, before := range r.sums {
		if q.ask().sum() != before {
			return true
		}
	}
	return false
}

// texts returns the digests of the files below a directory whose contents were read, by
// their paths below it.
func (r *reader) texts(dir string) map[string]sum {
	out := map[string]sum{}
	for q, digest := range r.sums {
		name, err := filepath.Rel(dir, q.path)
		if q.kind == askText && err == nil && fs.ValidPath(filepath.ToSlash(name)) {
			out[filepath.ToSlash(name)] = digest
		}
	}

	return out
}

// below returns the tree below a directory as a file system.
func (r *reader) below(dir string) fs.FS { return tree{r, dir} }

type tree struct {
	*reader
	dir string
}

func (t tree) path(op, name string) (string, error) {
	if !fs.ValidPath(name) {
		return "", &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}

	return filepath.Join(t.dir, filepath.FromSlash(name)), nil
}

// Stat returns the file that a path leads to.
func (t tree) Stat(name string) (fs.FileInfo, error) {
	path, err := t.path("stat", name)
	if err != nil {
		return nil, err
	}
	a := t.ask(askStat, path)
	return a.info, a.err
}

// ReadDir lists a directory.
func (t tree) ReadDir(name string) ([]fs.DirEntry, error) {
	path, err := t.path("readdir", name)
	if err != nil {
		return nil, err
	}
	a := t.ask(askList, path)
	return a.list, a.err
}

// ReadFile returns the bytes of a file.
func (t tree) ReadFile(name string) ([]byte, error) {
	path, err := t.path("open", name)
	if err != nil {
		return nil, err
	}
	a := t.ask(askText, path)
	return bytes.Clone(a.text), a.err
}

// Open opens a file to read its bytes. Directories are read with ReadDir.
func (t tree) Open(name string) (fs.File, error) {
	text, err := t.ReadFile(name)
	if err != nil {
		return nil, err
	}
	info, err := t.Stat(name)
	return opened{bytes.NewReader(text), info}, err
}

// opened is a file whose bytes are in memory.
type opened struct {
	*bytes.Reader
	info fs.FileInfo
}

func (f opened) Stat() (fs.FileInfo, error) { return f.info, nil }

func (f opened) Close() error { return nil }
