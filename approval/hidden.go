package approval

import (
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/value"
)

// mostHidden is how many hidden values are recorded by their paths; what is left is counted in one more text.
const mostHidden = 50

// Arguments says what channels may show of the call.
func (r *Request) Arguments() policy.Arguments {
	return policy.Arguments{Redact: r.Redact, ForbidHidden: r.ForbidHidden}
}

// hidden lists the values of the current call that policy hides from whoever is shown it, by their paths. Arguments that
// can't be read count as one hidden value where policy hides any.
func (r *Request) hidden() []string {
	if len(r.Redact) == 0 {
		return nil
	}
	found := hiding{arguments: r.Arguments()}
	found.document("", r.Current().Call.Args)
	found.document("parent.input", r.Current().Call.ParentInput)

	return found.paths()
}

// hiding collects the paths of values that policy hides.
type hiding struct {
	arguments policy.Arguments
	found     []string
	more      int
}

func (h *hiding) paths() []string {
	if h.more > 0 {
		return append(h.found, "and "+strconv.Itoa(h.more)+" more")
	}

	return h.found
}

func (h *hiding) document(root, text string) {
	if text == "" {
		return
	}
	doc, err := value.Parse([]byte(text), value.DefaultLimits())
	if err != nil {
		h.add(root, nil)
		return
	}
	h.value(root, nil, doc)
}

func (h *hiding) value(root string, path []string, v value.Value) {
	if h.arguments.Names(path...) {
		h.add(root, path)
		return
	}
	for _, m := range v.Members {
		h.value(root, append(slices.Clip(path), m.Key), m.Value)
	}
	for i, item := range v.Items {
		h.value(root, append(slices.Clip(path), strconv.Itoa(i)), item)
	}
}

func (h *hiding) add(root string, path []string) {
	if len(h.found) == mostHidden {
		h.more++
		return
	}
	at := strings.Join(path, ".")
	if root != "" {
		at = strings.TrimSuffix(root+"."+at, ".")
	}
	if at == "" {
		at = "all arguments"
	}
	h.found = append(h.found, safeText(at))
}
