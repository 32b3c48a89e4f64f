package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
)

// fileKind is the kind of a file according to its name or content.
type fileKind uint8

const (
	unknownKind fileKind = iota // decided by its content
	agentKind
	policyKind
	peopleKind
)

// kindOf returns the kind of a file by its name.
func kindOf(name string) fileKind {
	content, ok := lint.NamedContent(filepath.Base(name))
	switch {
	case !ok:
		return unknownKind
	case content == lint.PolicyContent:
		return policyKind
	case content == lint.PeopleContent:
		return peopleKind
	}

	return agentKind
}

// input is one file to check: where to read it, and the directory that
// its sub-agents must stay in.
type input struct {
	path string // "-" is standard input
	root string
	kind fileKind // never unknownKind once it is looked at
	src  []byte   // nil until it is read
	err  error    // met while walking or reading
}

// look determines the kind of an input by its content if its name is ambiguous. A file called
// people.yaml is treated as a directory of people unless its content is something else.
func (in *input) look(stdin io.Reader) {
	if in.err != nil || in.kind == agentKind || in.kind == policyKind {
		return
	}
	if in.src, in.err = term.ReadFile(in.path, stdin); in.err != nil {
		return
	}
	switch content := lint.ContentOf(in.src); {
	case content == lint.PolicyContent:
		in.kind = policyKind
	case content == lint.PeopleContent:
		in.kind = peopleKind
	case in.kind == unknownKind:
		in.kind = agentKind
	}
}

// name returns the name of the file for findings.
func (in *input) name() string {
	if in.path == "-" {
		return "<stdin>"
	}
	return in.path
}

// files returns the files among which sub-agents are looked up. It returns nil for standard input.
func (in *input) files() *lint.Files {
	if in.path == "-" {
		return nil
	}
	rel, err := filepath.Rel(in.root, in.path)
	if err != nil || !filepath.IsLocal(rel) {
		return nil
	}
	return &lint.Files{FS: os.DirFS(in.root), Path: filepath.ToSlash(rel)}
}

// errNothingHere makes a check fail that finds no files, because the reason is probably a moved
// directory.
var errNothingHere = errors.New("no *.agf.yaml and no *.policy.yaml is here, so nothing was checked")

// walk lists every input in a fixed order: arguments as given,
// directories in lexical order. A file that several arguments lead to
// is listed once.
func walk(paths []string, stdin io.Reader) []input {
	var all []input
	send := func(in input) {
		in.look(stdin)
		all = append(all, in)
	}
	if len(paths) > 1 {
		send = once(send)
	}
	for _, p := range paths {
		info, err := os.Stat(p)
		switch {
		case p == "-":
			send(input{path: p})
		case err != nil:
			send(input{path: p, err: missing(p, err)})
		case !info.IsDir():
			send(input{path: p, root: rootOf(p), kind: kindOf(p)})
		default:
			walkDir(p, send)
		}
	}

	return all
}

// missing returns the error for a path that doesn't exist. It suggests a command that the path may
// be a misspelling of.
func missing(path string, err error) error {
	near := diag.Nearest(path, commandNames())
	if near == "" || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fmt.Errorf("%s is no file, and no command: did you mean %q", path, near)
}

// commandNames returns the names of commands that may be given instead of a path.
func commandNames() []string {
	names := []string{"help", "completion"}
	for _, cmd := range (program{}).command().Commands() {
		names = append(names, cmd.Name())
	}
	return names
}

// key returns the same text for two paths of one file.
func key(path string) string {
	if abs, err := filepath.Abs(path); err == nil && path != "-" {
		return abs
	}
	return path
}

// once passes on the first input of each path.
func once(send func(input)) func(input) {
	seen := map[string]bool{}
	return func(in input) {
		if !seen[key(in.path)] {
			seen[key(in.path)] = true
			send(in)
		}
	}
}

func walkDir(dir string, send func(input)) {
	found := false
	// The separator makes the walk enter a directory that is given as a
	// link. The callback never returns an error: what can't be read is
	// an input with an error.
	_ = filepath.WalkDir(dir+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error {
		in := input{path: path, root: dir, kind: kindOf(d.Name()), err: err}
		if err == nil && (d.IsDir() || in.kind == unknownKind || in.kind == peopleKind && !in.people()) {
			return nil
		}
		if err == nil && d.Type()&fs.ModeSymlink != 0 && isWalked(dir, path, in.kind) {
			return nil
		}
		found = true
		send(in)
		return nil
	})
	if !found {
		send(input{path: dir, err: fmt.Errorf("%s: %w", dir, errNothingHere)})
	}
}

// isWalked reports whether a link leads to a file of the same kind below the same directory. The walk
// meets that file by its own name, so that it is one file and not two with the same id.
func isWalked(dir, link string, kind fileKind) bool {
	target, err := filepath.EvalSymlinks(link)
	if err != nil || kindOf(filepath.Base(target)) != kind {
		return false
	}
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	below, err := filepath.Rel(root, target)

	return err == nil && filepath.IsLocal(below)
}

// people reports whether a file called people.yaml is a directory of people. Other programs may use
// that name, too.
func (in input) people() bool {
	src, err := term.ReadFile(in.path, nil)
	return err == nil && lint.ContentOf(src) == lint.PeopleContent
}

// rootOf returns the directory that a single file's sub-agents must stay in: the working directory
// if the file is below it, otherwise the file's own directory.
func rootOf(path string) string {
	if filepath.IsLocal(path) {
		return "."
	}
	return filepath.Dir(path)
}
