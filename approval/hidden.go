package approval

import (
	"strconv"
	"strings"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/value"
)

// HiddenValue is shown in place of a hidden value.
const HiddenValue = "(hidden by policy)"

// mostHidden limits how many hidden values are recorded by their paths. Further ones are counted in
// one additional text.
const mostHidden = 50

// Arguments returns what channels may show of the call.
func (r *Request) Arguments() policy.Arguments {
	return policy.Arguments{Redact: r.Redact, ForbidHidden: r.ForbidHidden}
}

// Hidden lists the paths of the values of the current call that policies hide from readers. If a
// policy hides any and the arguments can't be parsed, they count as one hidden value.
func (r *Request) Hidden() []string {
	call := &r.Current().Call
	h := hiding{}
	h.document("", string(call.Args), r.Arguments().Redaction())
	h.document("parent.input", string(call.ParentInput), r.Arguments().ParentRedaction())

	return h.paths()
}

// Unapprovable lists the hidden values because of which a policy forbids approving the current
// call. It returns nil if hidden values don't prevent an approval.
func (r *Request) Unapprovable() []string {
	if !r.ForbidHidden {
		return nil
	}

	return r.Hidden()
}

// Redact replaces each hidden value in a JSON text by HiddenValue, and lists the paths of the
// replaced values. If nothing is hidden, it returns the text unchanged. If the text can't be parsed
// and any value could be hidden, the whole text is replaced.
func Redact(text string, at policy.Redaction) (shown string, hidden []string) {
	h := hiding{}
	doc, ok := h.document("", text, at)
	if len(h.found) == 0 {
		return text, nil
	}
	if !ok {
		return strconv.Quote(HiddenValue), h.paths()
	}

	return string(doc.AppendJSON(nil)), h.paths()
}

// Redact hides the values in a change that a policy hides. hidden reports whether the whole change
// is hidden.
func (c Change) Redact(arguments policy.Arguments) (shown Change, hidden bool) {
	at := arguments.Redaction()
	if c.Path != "" {
		if at, hidden = at.At(splitPath(c.Path)...); hidden {
			return Change{Path: c.Path}, true
		}
	}
	shown = Change{Path: c.Path}
	if c.Old != "" {
		shown.Old, _ = Redact(c.Old, at)
	}
	if c.New != "" {
		shown.New, _ = Redact(c.New, at)
	}

	return shown, false
}

// hiding collects the paths of values that policy hides.
type hiding struct {
	found []string
	more  int
}

func (h *hiding) paths() []string {
	if h.more > 0 {
		return append(h.found, "and "+strconv.Itoa(h.more)+" more")
	}

	return h.found
}

// document parses a JSON text and returns it without the hidden values. It returns false if no
// value may be hidden or if the text can't be parsed.
func (h *hiding) document(root, text string, at policy.Redaction) (value.Value, bool) {
	if text == "" || !at.Hides() {
		return value.Value{}, false
	}
	doc, err := value.Parse([]byte(text), value.DefaultLimits())
	if err != nil {
		h.add(root, nil)
		return value.Value{}, false
	}
	h.value(root, nil, &doc, at)

	return doc, true
}

func (h *hiding) value(root string, path []string, v *value.Value, at policy.Redaction) {
	if !at.Hides() {
		return
	}
	for i := range v.Members {
		h.below(root, path, v.Members[i].Key, &v.Members[i].Value, at)
	}
	for i := range v.Items {
		h.below(root, path, strconv.Itoa(i), &v.Items[i], at)
	}
}

// below processes the value at one key or index.
func (h *hiding) below(root string, path []string, segment string, v *value.Value, at policy.Redaction) {
	path = append(path[:len(path):len(path)], segment)
	below, hidden := at.Step(segment)
	if !hidden {
		h.value(root, path, v, below)
		return
	}
	h.add(root, path)
	*v = value.Value{Kind: value.String, Text: HiddenValue}
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
