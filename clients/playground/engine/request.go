package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// The limits of a request.
const (
	mostBytes = 32 << 20
	mostFiles = 1000
)

// ParseRequest reads a request strictly. An unknown field is an error, because ignoring it
// could change the answer.
func ParseRequest(text []byte) (Request, error) {
	f := jsonmsg.Read(text, value.Limits{MaxBytes: mostBytes})
	r := Request{
		Kind:     Kind(f.NonEmpty("kind")),
		Files:    readFiles(f, "files"),
		Policies: texts(f, "policies"),
		Config:   f.Text("config"),
		People:   f.Text("people"),
		Agent:    f.Text("agent"),
		Parents:  texts(f, "parents"),
		Calls:    f.Text("calls"),
		New:      readFiles(f, "new"),
		Query:    readQuery(f.Object("query")),
	}
	if strict := f.Bool("strict"); strict != nil {
		r.Strict = *strict
	}
	onlyKnown(
		f,
		"kind",
		"files",
		"policies",
		"config",
		"people",
		"strict",
		"agent",
		"parents",
		"calls",
		"new",
		"query",
	)
	if !slices.Contains(Kinds(), r.Kind) {
		f.Expect("kind", "lint, decide, diff or ask")
	}

	return r, f.Err()
}

func readQuery(f jsonmsg.Fields) Query {
	onlyKnown(f, "tool", "server", "remote", "skill", "delegate", "where", "outcome")
	return Query{
		Tool:     f.Text("tool"),
		Server:   f.Text("server"),
		Remote:   f.Text("remote"),
		Skill:    f.Text("skill"),
		Delegate: f.Text("delegate"),
		Where:    f.Text("where"),
		Outcome:  f.Text("outcome"),
	}
}

// onlyKnown rejects members that are never read.
func onlyKnown(f jsonmsg.Fields, known ...string) {
	for _, m := range f.Members() {
		if !slices.Contains(known, m.Name) {
			f.Expect(m.Name, noField(m.Name, known))
		}
	}
}

func noField(name string, known []string) string {
	if near := diag.Nearest(name, known); near != "" {
		return fmt.Sprintf("no such field; did you mean %q", near)
	}
	return "no such field"
}

// readFiles reads an object that maps paths to texts.
func readFiles(f jsonmsg.Fields, name string) Files {
	given := f.Object(name)
	members := given.Members()
	if len(members) == 0 {
		return nil
	}
	if len(members) > mostFiles {
		f.Expect(name, fmt.Sprintf("at most %d files", mostFiles))
		return nil
	}
	files := Files{}
	for _, m := range members {
		if !usablePath(m.Name) {
			given.Expect(m.Name, "a path below the directory, such as policies/desk.policy.yaml")
		}

		files[m.Name] = []byte(given.Need(m.Name))
	}

	clash(given, files)

	return files
}

// clash rejects a file whose path is also a directory of other files.
func clash(f jsonmsg.Fields, files Files) {
	for name := range files {
		for i := range len(name) {
			if _, ok := files[name[:i]]; ok && name[i] == '/' {
				f.Expect(name, "another path: "+name[:i]+" is a file")
			}
		}
	}
}

// usablePath reports whether a path means the same file on every system.
func usablePath(name string) bool {
	return validPath(name) && !strings.ContainsAny(name, "\\:\x00")
}

// texts reads an array of strings.
func texts(f jsonmsg.Fields, name string) []string {
	if !f.Has(name) {
		return nil
	}
	var out []string
	for path, raw := range f.Elements(name, mostFiles) {
		if s, ok := f.String(path, raw); ok {
			out = append(out, s)
		}
	}

	return out
}
