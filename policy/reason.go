package policy

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/pattern"
)

// reasonBounds limit the patterns of reasons.
var reasonBounds = pattern.Bounds{Bytes: 4 << 10, Size: 10_000}

// Reason is the text that people have to give when they approve. The zero value requires none.
type Reason struct {
	Required bool
	// Patterns are the RE2 expressions that the text must match, all of them; sorted. If there are
	// any, Required is set.
	Patterns []string `doc:"pattern"`
}

// Accepts reports whether an approval with this text may count. White space around it is ignored.
func (r Reason) Accepts(text string) bool {
	text = strings.TrimSpace(text)
	if !r.Required {
		return true
	}
	return text != "" && !slices.ContainsFunc(r.Patterns, func(expression string) bool {
		re, err := reasonBounds.Compile(expression)
		return err != nil || !re.MatchString(text)
	})
}

// String says which reason is required. It is empty if none is.
func (r Reason) String() string {
	switch {
	case !r.Required:
		return ""
	case len(r.Patterns) == 0:
		return "a reason"
	}

	return "a reason that matches " + strings.Join(r.Patterns, " and ")
}

// IsZero reports whether no reason is required.
func (r Reason) IsZero() bool { return !r.Required }

func (r Reason) join(o Reason) Reason {
	patterns := slices.Concat(r.Patterns, o.Patterns)
	slices.Sort(patterns)
	return Reason{Required: r.Required || o.Required, Patterns: orNil(slices.Compact(patterns))}
}

func (r Reason) tighter(o Reason) bool {
	return (r.Required || !o.Required) &&
		!slices.ContainsFunc(o.Patterns, func(p string) bool { return !slices.Contains(r.Patterns, p) })
}

const wordRequired = "required"

type reasonJSON struct {
	Pattern  string   `json:"pattern,omitempty"`
	Patterns []string `json:"patterns,omitempty"`
}

// MarshalJSON writes "required", {"pattern": RE} or {"patterns": [RE…]}.
func (r Reason) MarshalJSON() ([]byte, error) {
	switch len(r.Patterns) {
	case 0:
		return json.Marshal(wordRequired)
	case 1:
		return json.Marshal(reasonJSON{Pattern: r.Patterns[0]})
	}

	return json.Marshal(reasonJSON{Patterns: r.Patterns})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Reason) UnmarshalJSON(data []byte) error {
	if string(data) == `"`+wordRequired+`"` {
		*r = Reason{Required: true}
		return nil
	}
	var j reasonJSON
	if err := strict(data, &j); err != nil {
		return err
	}
	if (j.Pattern == "") == (len(j.Patterns) == 0) {
		return errors.New(`reason is "required", or an object with pattern or patterns`)
	}
	if j.Pattern != "" {
		j.Patterns = []string{j.Pattern}
	}
	*r = Reason{Required: true, Patterns: j.Patterns}.join(Reason{})

	return nil
}
