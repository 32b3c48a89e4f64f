package clients

import (
	"regexp"
	"slices"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/assent-dev/assent/internal/settings"
)

// difference is what changes in a client's file, as a unified diff in
// which no secret stands.
func difference(s spot, before, after *settings.Table) string {
	hide := func(path []string) bool { return s.secret(path) }
	text := diff.Diff(s.file, before.Masked(hide), s.file+" (changed)", after.Masked(hide))

	return withoutQueries(string(text))
}

// secret reports whether a value is shown as stars: all that is not of
// a server, and of servers what may be a secret.
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

// query is what stands behind the ? of an address.
var query = regexp.MustCompile(`(://[^"'?\s]*)\?[^"'\s]*`)

// withoutQueries hides what may be secret in addresses.
func withoutQueries(text string) string { return query.ReplaceAllString(text, "$1?***") }
