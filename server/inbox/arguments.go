package inbox

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/value"
)

// The limits for a document on a page that does not show all of it.
const (
	longText   = 2000     // characters of one text
	longList   = 200      // members of one object or array
	deepest    = 24       // levels; below, only the raw text is shown
	mostValues = 1 << 14  // values; of a document with more, only the raw text is shown
	largest    = 64 << 10 // bytes; a larger document is not shown at once
	approvable = 1 << 20  // bytes; people can't read more than this, so a larger document can't be approved
)

// document is a JSON text of a call, as a page shows it.
type document struct {
	Name     string // "Arguments"
	Bytes    int
	Tree     *node           // nil if it can't be drawn as a tree
	Raw      *safetext.Shown // nil if a policy hides parts of it
	Problem  string          // why it can't be inspected; empty if it can
	Redacted int             // number of values hidden by policies
	Flags    safetext.Flags
	Cut      bool // a part is not shown; the full page is needed
	Huge     bool // too large to be approved here
}

// node is one value of the tree.
type node struct {
	Key      *safetext.Shown
	Index    string // index in an array
	Kind     string // object, array, string, number, boolean, null
	Text     safetext.Shown
	Lines    bool   // the text has several lines and is drawn as a block
	Grouped  string // a long number with thousands separators; empty if not needed
	Items    []*node
	Count    int // number of members or elements
	Left     int // number of those that are not shown here
	Redacted bool
}

// Opens returns the opening bracket of an object or array.
func (n *node) Opens() string { return map[string]string{"object": "{", "array": "["}[n.Kind] }

// Closes returns the closing bracket of an object or array.
func (n *node) Closes() string { return map[string]string{"object": "}", "array": "]"}[n.Kind] }

// inspectDocument draws a JSON text of a call. Unless all is set, it cuts what is long, and sets
// Cut.
func inspectDocument(name, text string, redact policy.Redaction, all bool, b *budget) document {
	d := document{
		Name:  name,
		Bytes: len(text),
		Flags: safetext.Flags{},
		Huge:  len(text) > approvable,
	}
	if text == "" { // retention deleted it, because a recorded call always has arguments
		d.Problem, d.Cut = "The text is no longer kept; its digest is.", true
		return d
	}
	doc, err := value.Parse([]byte(text), value.Limits{MaxValues: mostValues})
	tooDeep := err == nil && depth(doc) > deepest
	switch {
	case tooLarge(err):
		d.Problem = "This has more than " + safetext.Count(mostValues) + " values. Only the raw text can be shown."
	case err != nil:
		d.Problem = "This is not JSON that everybody reads alike (" + err.Error() + "). Only the raw text can be shown."
	case tooDeep:
		d.Problem = "This is nested more than " + strconv.Itoa(deepest) +
			" levels deep. Only the raw text can be shown."
	case len(text) > largest:
		d.Problem = "This has " + safetext.Count(len(text)) + " bytes, more than a page shows at once."
	}

	d.Cut = d.Huge || d.Problem != "" && !all
	d.drawTree(doc, err == nil && !tooDeep, redact, all, b)
	d.drawRaw(text, err != nil, redact, all, b)
	if d.Cut && all && b.spent() && !d.Huge {
		d.Huge = true
		d.Problem = strings.TrimSpace(d.Problem +
			" It has more values and unusual characters than a page can spell out.")
	}
	return d
}

func tooLarge(err error) bool {
	var e *value.Error
	return errors.As(err, &e) && e.Code == value.TooLarge
}

func (d *document) drawTree(doc value.Value, ok bool, redact policy.Redaction, all bool, b *budget) {
	if !ok {
		return
	}
	s := sketch{all: all && !d.Huge, left: largest, flags: d.Flags, budget: b}
	d.Tree = s.node(doc, redact, false)
	d.Redacted = s.redacted
	d.Cut = d.Cut || s.cut
}

// drawRaw draws the exact text, unless a policy hides a part of it. Finding the hidden part in the
// text would risk leaking it.
func (d *document) drawRaw(text string, unreadable bool, redact policy.Redaction, all bool, b *budget) {
	if d.Redacted > 0 || redact.Hides() && (unreadable || d.Tree == nil) {
		if d.Tree == nil {
			d.Cut, d.Problem = true, d.Problem+
				" Policy hides a part of it, so it is not shown here and can't be approved here."
			d.Huge = true
		}
		return
	}

	f := safetext.Form{Block: true, Spend: b.spend}
	if !all || d.Huge {
		f.Limit = largest / 4
	}
	raw := safetext.Inspect(text, f)
	d.Raw = &raw
	d.Flags.Add(raw.Flags)
	d.Cut = d.Cut || d.Tree == nil && raw.Cut
}

func depth(v value.Value) int {
	deep := 0
	for _, it := range v.Items {
		deep = max(deep, depth(it))
	}
	for _, m := range v.Members {
		deep = max(deep, depth(m.Value))
	}
	if v.Kind == value.Object || v.Kind == value.Array {
		deep++
	}
	return deep
}

// longNumber is the largest number of characters of a number that is also shown with thousands
// separators.
const longNumber = 60

// sketch draws a tree within a budget of characters.
type sketch struct {
	all      bool
	left     int
	cut      bool
	redacted int
	flags    safetext.Flags
	budget   *budget
}

// node draws one value. If a policy hides the value, its structure remains visible: keys, kinds and
// sizes.
func (s *sketch) node(v value.Value, redact policy.Redaction, hide bool) *node {
	n := &node{Kind: v.Kind.String()}
	s.budget.spend(valuePieces)
	switch v.Kind {
	case value.Object:
		s.object(n, v, redact, hide)
	case value.Array:
		s.array(n, v, redact, hide)
	case value.String:
		n.Text = s.text(v.Text)
		n.Lines = strings.Contains(v.Text, "\n")
		n.Count = utf8.RuneCountInString(v.Text)
	default:
		text := string(v.AppendJSON(nil))
		n.Text = s.text(text)
		if grouped := approval.GroupDigits(text); grouped != text && len(text) <= longNumber {
			n.Grouped = grouped
		}
	}

	if hide && v.Kind != value.Object && v.Kind != value.Array {
		n.Redacted = true
		n.Text = safetext.Shown{}
		n.Grouped = ""
		s.redacted++
	}

	return n
}

func (s *sketch) object(n *node, v value.Value, redact policy.Redaction, hide bool) {
	n.Count = len(v.Members)
	for i, m := range v.Members {
		if s.full(i) {
			n.Left = n.Count - i
			return
		}
		below, hidden := redact.Step(m.Key)
		child := s.node(m.Value, below, hide || hidden)
		key := s.text(m.Key)
		child.Key = &key
		n.Items = append(n.Items, child)
	}
}

func (s *sketch) array(n *node, v value.Value, redact policy.Redaction, hide bool) {
	n.Count = len(v.Items)
	for i, it := range v.Items {
		if s.full(i) {
			n.Left = n.Count - i
			return
		}
		index := strconv.Itoa(i)
		below, hidden := redact.Step(index)
		child := s.node(it, below, hide || hidden)
		child.Index = index
		n.Items = append(n.Items, child)
	}
}

// full reports whether no more items may be drawn in a list that already has i items.
func (s *sketch) full(i int) bool {
	if (s.all || i < longList && s.left > 0) && !s.budget.spent() {
		return false
	}
	s.cut = true
	return true
}

func (s *sketch) text(t string) safetext.Shown {
	f := safetext.Form{Quoted: true, Spend: s.budget.spend}
	if !s.all {
		f.Limit = longText
	}
	out := safetext.Inspect(t, f)
	s.cut = s.cut || out.Cut
	s.flags.Add(out.Flags)
	s.left -= min(len(t), longText) + 16
	return out
}
