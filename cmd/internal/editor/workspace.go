package editor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/policy"
)

// These are the limits for searching the folders that an editor has open.
const (
	mostEntries  = 20_000
	mostFileSize = 4 << 20 // in bytes
)

// workspace is the open documents and folders of an editor.
type workspace struct {
	open    map[string]*document // by URI
	folders []string
}

// file returns a file as the editor shows it, or otherwise from the disk. It returns nil if the
// file can't be read.
func (w workspace) file(path string) *document {
	uri := uriOf(path)
	for _, d := range w.open {
		if d.path() != "" && uriOf(d.path()) == uri {
			return d
		}
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > mostFileSize {
		return nil
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return newDocument(item{URI: uri, Text: string(src)})
}

// list returns the name of the action-space list that contains an alias.
func (d *document) list(alias string) string {
	for _, s := range scalars(d.root(), isAlias) {
		if s.node.Text == alias {
			return s.path[1]
		}
	}
	return ""
}

// policies returns the policies that apply to an agent: those that it names, and those that select
// it.
func (d *document) policies(set *Settings) (all []*document) {
	named := scalars(d.root(), func(s spot) bool { return !s.key && s.field == "policy_ref" })
	for _, pol := range set.Policies {
		names := func(s spot) bool { return s.node.Text == pol.Ref }
		if pol.Applies == policy.Implicit || slices.ContainsFunc(named, names) {
			if file := d.around.file(pol.Doc.File); file != nil {
				all = append(all, file)
			}
		}
	}

	return all
}

// targets returns the values in a policy that name an alias of a list of the action space. It omits
// patterns that match the alias, because they may be meant for other targets.
func (d *document) targets(alias, list string) []spot {
	field := "targets"
	if list == "mcp_servers" || list == "remote_agents" {
		field = "servers"
	}
	return scalars(d.root(), func(s spot) bool {
		inMatch := len(s.path) > 1 && s.path[len(s.path)-2] == "match"
		return !s.key && inMatch && s.field == field && s.node.Text == alias
	})
}

// renameInPolicies adds the edits in the policies that name an alias.
func (d *document) renameInPolicies(set *Settings, alias, name string, changes map[string][]textEdit) error {
	for _, pol := range d.policies(set) {
		spots := pol.targets(alias, d.list(alias))
		if len(spots) == 0 {
			continue
		}
		text := name
		if d.elsewhere(alias) {
			text = alias + ", " + name
		}
		for _, s := range spots {
			if text != name && !pol.inBrackets(s) {
				return refused("another agent has this alias too, and " + pol.path() +
					" names it in a list without brackets: add the new name there first")
			}
			changes[pol.uri] = append(changes[pol.uri], textEdit{Range: pol.span(s.node.Range), Text: text})
		}
	}

	return nil
}

// inBrackets reports whether a scalar is in a list in brackets.
func (d *document) inBrackets(s spot) bool {
	p := d.position(s.node.Range.Start)
	at, ok := d.flowAt(p)
	return ok && !at.name
}

// errFull ends a walk that has found too many files.
var errFull = errors.New("there are too many files")

// elsewhere reports whether another agent of the workspace has an alias, or may have it because its
// file can't be read.
func (d *document) elsewhere(alias string) bool {
	found := false
	err := d.nearby(func(path string) {
		found = found || path != d.path() && d.around.file(path).mayHave(alias)
	})
	return found || err != nil
}

// nearby visits the documents in the editor's folders, or in the directory of the file if the
// editor has none open. It returns an error if it could not visit all.
func (d *document) nearby(visit func(path string)) error {
	folders := d.around.folders
	if len(folders) == 0 {
		folders = []string{filepath.Dir(d.path())}
	}
	seen := 0
	look := func(path string, e fs.DirEntry, err error) error {
		seen++
		switch ext := filepath.Ext(path); {
		case err != nil || seen > mostEntries:
			return errFull
		case e.IsDir() && (e.Name() == ".git" || e.Name() == "node_modules"):
			return fs.SkipDir
		case e.IsDir() || ext != ".yaml" && ext != ".yml" && ext != ".json":
			return nil
		}

		visit(path)
		return nil
	}
	for _, folder := range folders {
		if err := filepath.WalkDir(folder, look); err != nil {
			return err
		}
	}

	return nil
}

// mayHave reports whether a file is an agent with an alias, or an agent that can't be read.
func (d *document) mayHave(alias string) bool {
	switch {
	case d == nil:
		return true
	case d.foreign || d.content != lint.AgentContent:
		return false
	}

	return d.root() == nil || slices.Contains(d.aliases("action_space"), alias)
}
