package lint

import (
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// Silenced is a rule that a comment silences.
type Silenced struct {
	Rule string
	At   diag.Range // of the comment
}

// Silenced lists the rules that the comments of a document silence, in the order of the file.
// Malformed suppressions silence nothing.
func (l *Linter) Silenced(doc *yamldoc.Document) []Silenced {
	s := silence{linter: l}
	s.read(doc)
	var out []Silenced
	for _, c := range s.comments {
		if c.flaw != "" {
			continue
		}
		for _, rule := range c.rules {
			out = append(out, Silenced{Rule: rule, At: c.at})
		}
	}

	return out
}
