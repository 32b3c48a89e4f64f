package clients

import (
	"slices"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/assent-dev/assent/internal/settings"
)

// difference returns the changes in a client's file as a unified diff without secrets.
func difference(s spot, before, after *settings.Table) string {
	text := diff.Diff(s.file, before.Masked(s.hides(before)), s.file+" (changed)", after.Masked(s.hides(after)))

	return withoutQueries(string(text))
}

// hides reports, for the values of a table in order, which are masked.
func (s spot) hides(t *settings.Table) func(path []string) bool {
	secrets := map[string][]bool{} // of the arguments that are still to come
	for _, m := range t.Members() {
		fields, _ := m.Value.(map[string]any)
		list, _ := fields[s.client.words.args].([]any)
		args := make([]string, len(list))
		for i, arg := range list {
			args[i], _ = arg.(string)
		}
		secrets[m.Name] = secretArgs(args)
	}
	return func(path []string) bool {
		if s.secret(path) {
			return true
		}
		depth := len(s.table)
		if path[depth+1] != s.client.words.args {
			return false
		}
		left := secrets[path[depth]]
		if len(left) == 0 {
			return true
		}
		secrets[path[depth]] = left[1:]
		return left[0]
	}
}

// secret reports whether a value is masked: everything that doesn't belong to a server, and values
// of servers that may be secret.
func (s spot) secret(path []string) bool {
	depth := len(s.table)
	if len(path) < depth+2 || !slices.Equal(path[:depth], s.table) {
		return true
	}
	w := s.client.words
	shown := slices.Concat(
		w.aside,
		w.urls,
		[]string{w.command, w.args, w.cwd, w.envNames, w.tokenEnv, w.headerEnv},
	)

	return !slices.Contains(shown, path[depth+1])
}
