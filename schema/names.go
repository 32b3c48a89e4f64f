package schema

import (
	"fmt"
	"strings"

	"github.com/assent-dev/assent/diag"
)

// names are aliases with their positions, in source order. The zero value is empty.
type names struct {
	list []string
	at   map[string]diag.Range // of the first mention
}

func (n *names) add(name string, at diag.Range) {
	if n.has(name) {
		return
	}
	if n.at == nil {
		n.at = map[string]diag.Range{}
	}
	n.list = append(n.list, name)
	n.at[name] = at
}

func (n *names) has(name string) bool {
	_, ok := n.at[name]
	return ok
}

// A file may have any number of names, so messages about one of them must stay short and quick to
// create.
const (
	maxListed   = 20
	maxCompared = 200
)

// nearest returns the name that was probably meant. It returns an empty string if none is similar,
// or if there are too many to compare.
func (n *names) nearest(name string) string {
	if len(n.list) > maxCompared {
		return ""
	}
	return diag.Nearest(name, n.list)
}

// oneOf lists what may be chosen from.
func oneOf(list []string) string {
	switch {
	case len(list) == 1:
		return list[0]
	case len(list) > maxListed:
		return fmt.Sprintf("one of %s and %d more", strings.Join(list[:maxListed], ", "), len(list)-maxListed)
	default:
		return "one of " + strings.Join(list, ", ")
	}
}

func collect[T, U any](entries []T, f func(T) U) []U {
	all := make([]U, len(entries))
	for i, e := range entries {
		all[i] = f(e)
	}
	return all
}
