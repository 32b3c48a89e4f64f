package approval

import (
	"strconv"
	"strings"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/value"
)

// HiddenValue stands where channels hide a value.
const HiddenValue = "(hidden by policy)"

// mostHidden is how many hidden values are recorded by their paths;
// what is left is counted in one more text.
const mostHidden = 50

// Arguments says what channels may show of the call.
func (r *Request) Arguments() policy.Arguments {
	return policy.Arguments{Redact: r.Redact, ForbidHidden: r.ForbidHidden}
}

// Hidden lists the values of the current call that policy hides from
// whoever is shown it, by their paths. Arguments that can't be read
// count as one hidden value where policy hides any.
func (r *Request) Hidden() []string {
	call := &r.Current().Call
	h := hiding{}
	h.document("", string(call.Args), r.Arguments().Redaction())
	h.document("parent.input", string(call.ParentInput), r.Arguments().ParentRedaction())

	return h.paths()
}

// Unapprovable lists the hidden values on account of which a policy
// forbids approving the current call; nil when it may be approved
// unseen.
func (r *Request) Unapprovable() []string {
	if !r.ForbidHidden {
		return nil
	}

	return r.Hidden()
}

// Redact writes a JSON text with HiddenValue in the place of each
// hidden value, and lists what it replaced by its paths. A text in
// which nothing is hidden is returned as it is. Of a text that can't be
// read nothing is left where anything could be hidden.
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

// Redact hides what a policy hides in a change. hidden says that it
// hides all of it.
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

// document looks through a JSON text, and returns it without the hidden
// values; false when it can't be read.
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

// below looks at what stands at one key or index.
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
