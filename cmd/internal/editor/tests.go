package editor

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/yamldoc"
)

// inTests visits the names of an alias in the test files of this agent: in calls and in invariants.
// It omits calls that are written as a JSON text, and tests that nearby does not reach: after a
// rename these fail when they are run.
func (d *document) inTests(alias string, visit func(test *document, at *yamldoc.Node)) {
	list := d.list(alias)
	_ = d.nearby(func(path string) {
		if !strings.HasSuffix(path, ".test.yaml") {
			return
		}
		test := d.around.file(path)
		if test == nil || !test.isAbout(d.path()) {
			return
		}
		for _, call := range test.calls() {
			if at := aliasOf(call, list); at != nil && at.Text == alias {
				visit(test, at)
			}
		}
	})
}

// renameInTests adds the edits in the tests of the agent.
func (d *document) renameInTests(alias, name string, changes map[string][]textEdit) {
	d.inTests(alias, func(test *document, at *yamldoc.Node) {
		edit := textEdit{Range: test.span(at.Range), Text: name}
		if !slices.Contains(changes[test.uri], edit) {
			changes[test.uri] = append(changes[test.uri], edit)
		}
	})
}

// isAbout reports whether a test file tests the agent of a file.
func (d *document) isAbout(agent string) bool {
	named := d.root().Get("agent")
	return named != nil && filepath.Join(filepath.Dir(d.path()), filepath.FromSlash(named.Text)) == agent
}

// calls returns the mappings of a test file that name a target.
func (d *document) calls() (all []*yamldoc.Node) {
	root := d.root()
	for _, list := range []string{"never", "always"} {
		all = append(all, itemsOf(root.Get(list))...)
	}
	for _, list := range []string{"calls", "people_cases"} {
		for _, test := range itemsOf(root.Get(list)) {
			all = append(all, test.Get("call"))
		}
	}

	return all
}

func itemsOf(n *yamldoc.Node) []*yamldoc.Node {
	if n == nil {
		return nil
	}
	return n.Items
}

// aliasOf returns the node that names an entry of a list of the action space in a call, or nil if
// the call is about another list.
func aliasOf(call *yamldoc.Node, list string) *yamldoc.Node {
	server, skill := call.Get("server"), call.Get("skill")
	switch {
	case list == "mcp_servers":
		return server
	case list == "local_tools" && server == nil:
		return call.Get("tool")
	case (list == "remote_agents") == (skill != nil):
		return call.Get("agent")
	}

	return nil
}
