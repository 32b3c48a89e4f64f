package editor

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/lint"
)

// files returns where the sub-agents of a document are looked up. It returns nil if the document
// has not been saved.
func (d *document) files() *lint.Files {
	path := d.path()
	if path == "" {
		return nil
	}
	return &lint.Files{FS: os.DirFS(filepath.Dir(path)), Path: filepath.Base(path)}
}

// isAlias reports whether a scalar defines an alias.
func isAlias(s spot) bool {
	return !s.key && s.field == "alias" && len(s.path) > 1 && s.path[0] == "action_space"
}

// refersToAgent reports whether the value at a path is the alias of a sub-agent.
func refersToAgent(path []string) bool {
	return path[0] == "execution_policy" && slices.Contains(
		[]string{"agent", "agents", "default_agent", "output_from"},
		path[len(path)-1],
	)
}

// aliases returns the names in a list of the action space.
func (d *document) aliases(list string) (names []string) {
	for _, s := range scalars(d.root(), isAlias) {
		if slices.Contains(s.path, list) {
			names = append(names, s.node.Text)
		}
	}
	return names
}

// mentions returns the ranges of a document that name an alias: its definition, steps, and the
// beginnings of paths.
func (d *document) mentions(alias string) (found []diag.Range) {
	eachScalar(d.root(), nil, func(s spot) bool {
		switch text := s.node.Text; {
		case len(s.path) == 0:
		case isAlias(s) && text == alias, !s.key && refersToAgent(s.path) && text == alias:
			found = append(found, s.node.At(0, len(alias)))
		case readsResult(s) && strings.HasPrefix(text, alias+"."):
			found = append(found, s.node.At(0, len(alias)))
		}

		return true
	})

	return found
}

// readsResult reports whether a scalar is a path such as checker.output.score: a value of
// input_mapping or a key of a condition.
func readsResult(s spot) bool {
	if s.path[0] != "execution_policy" || len(s.path) < 2 {
		return false
	}
	above := s.path[len(s.path)-2]
	return !s.key && above == "input_mapping" || s.key && above == "args_match"
}

// named returns the alias at a position. It is empty if there is none.
func (d *document) named(p position) (alias string, at diag.Range) {
	s, ok := d.spot(d.place(p))
	if !ok || len(s.path) == 0 {
		return "", diag.Range{}
	}
	alias = s.node.Text
	if readsResult(s) {
		alias, _, _ = strings.Cut(alias, ".")
	} else if s.key || !isAlias(s) && !refersToAgent(s.path) {
		return "", diag.Range{}
	}

	known := slices.ContainsFunc(
		scalars(d.root(), isAlias),
		func(def spot) bool { return def.node.Text == alias },
	)
	if !known {
		return "", diag.Range{}
	}
	return alias, s.node.At(0, len(alias))
}

// renamable returns the range that a new name would replace.
func (d *document) renamable(_ *Settings, p placed) (any, error) {
	alias, at := d.named(p.Position)
	if alias == "" {
		return nil, nil
	}
	return d.span(at), nil
}

// rename renames an alias in its file, in the policies that name it and in the tests of the agent.
// A policy that may apply to another agent with this alias keeps the old name and gets the new one
// in addition, so that calls of the other agent still ask.
func (d *document) rename(set *Settings, p placed) (any, error) {
	alias, _ := d.named(p.Position)
	if alias == "" {
		return nil, refused("only an alias of the action space can be renamed")
	}
	if !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(p.NewName) {
		return nil, refused("an alias has letters, digits and _, no digit first")
	}
	taken := func(s spot) bool { return isAlias(s) && s.node.Text == p.NewName }
	if p.NewName != alias && len(scalars(d.root(), taken)) > 0 {
		return nil, refused("another entry has this alias")
	}

	edits := []textEdit{}
	for _, r := range d.mentions(alias) {
		edits = append(edits, textEdit{Range: d.span(r), Text: p.NewName})
	}
	changes := map[string][]textEdit{d.uri: edits}
	if p.NewName != alias {
		if err := d.renameInPolicies(set, alias, p.NewName, changes); err != nil {
			return nil, err
		}
		d.renameInTests(alias, p.NewName, changes)
	}

	return workspaceEdit{Changes: changes}, nil
}

// references returns the uses of an alias in its file, in the policies that name it and in the
// tests of the agent.
func (d *document) references(set *Settings, p placed) (any, error) {
	places := []location{}
	alias, _ := d.named(p.Position)
	if alias == "" {
		return places, nil
	}
	var defined []diag.Range
	for _, s := range scalars(d.root(), isAlias) {
		defined = append(defined, s.node.At(0, len(alias)))
	}
	for _, r := range d.mentions(alias) {
		if p.Context.Declaration || !slices.Contains(defined, r) {
			places = append(places, location{URI: d.uri, Range: d.span(r)})
		}
	}

	for _, pol := range d.policies(set) {
		for _, s := range pol.targets(alias, d.list(alias)) {
			places = append(places, location{URI: pol.uri, Range: pol.span(s.node.Range)})
		}
	}
	d.inTests(alias, func(test *document, at *yamldoc.Node) {
		places = append(places, location{URI: test.uri, Range: test.span(at.Range)})
	})
	return places, nil
}

func refused(why string) error {
	return &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidRequest, Message: why}
}

// definition returns the definition of a name: the entry of an alias, the file of a sub-agent, or
// the file of a policy.
func (d *document) definition(set *Settings, p placed) (any, error) {
	s, ok := d.spot(d.place(p.Position))
	if !ok || s.key && !readsResult(s) {
		return nil, nil
	}
	switch {
	case s.field == "source" && slices.Contains(s.path, "local_agents") && d.path() != "":
		return fileAt(filepath.Join(filepath.Dir(d.path()), filepath.FromSlash(s.node.Text))), nil
	case s.field == "policy_ref" && d.content == lint.AgentContent:
		for _, pol := range set.Policies {
			if pol.Ref == s.node.Text {
				return fileAt(pol.Doc.File), nil
			}
		}
		return nil, nil
	}

	alias, _ := d.named(p.Position)
	for _, def := range scalars(d.root(), isAlias) {
		if alias != "" && def.node.Text == alias {
			return location{URI: d.uri, Range: d.span(def.node.Range)}, nil
		}
	}
	return nil, nil
}

// fileAt returns the beginning of a file, or nil if the file doesn't exist.
func fileAt(path string) any {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return location{URI: uriOf(path)}
}
