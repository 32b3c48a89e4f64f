// Package fix corrects findings that can be fixed mechanically: a misspelt name, text that needs
// quotes, an entry that is repeated or has no effect. It edits the text of the file, so comments
// and formatting are preserved. The caller must check whether an edit changes what an agent asks
// about.
package fix

import (
	"bytes"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// Edit replaces the bytes from Start up to End of a file with a text.
type Edit struct {
	Start int
	End   int
	Text  string
	from  *yamldoc.Node // the list or object that loses a part; nil for others
}

// Remedy fixes one finding.
type Remedy struct {
	Finding diag.Finding
	Title   string // what it does, as in `rename "aproval" to "approval"`
	Edit    Edit
}

// Of returns the fixes for a file's findings, in the order of the findings. It omits findings
// without a fix. It returns none for a file that is not valid YAML.
func Of(src []byte, findings []diag.Finding) []Remedy {
	doc, _ := yamldoc.Parse("", src, yamldoc.Limits{})
	if doc == nil {
		return nil
	}
	t := newText(src, doc)
	var all []Remedy
	for _, f := range findings {
		if title, edit, ok := t.remedy(f); ok {
			all = append(all, Remedy{Finding: f, Title: title, Edit: edit})
		}
	}

	return all
}

// text is a file with the offsets of its lines.
type text struct {
	src   []byte
	lines []int // offset of each line's first byte
	doc   *yamldoc.Document
}

func newText(src []byte, doc *yamldoc.Document) *text {
	t := &text{
		src:   src,
		lines: []int{0},
		doc:   doc,
	}
	for i, c := range src {
		if c == '\n' || c == '\r' && !bytes.HasPrefix(src[i+1:], []byte("\n")) {
			t.lines = append(t.lines, i+1)
		}
	}

	return t
}

// offset returns the byte offset of a position.
func (t *text) offset(p diag.Position) int {
	if p.Line < 1 || p.Line > len(t.lines) {
		return len(t.src)
	}
	at := t.lines[p.Line-1]
	for range p.Column - 1 {
		_, size := utf8.DecodeRune(t.src[at:])
		at += size
	}
	return at
}

func (t *text) span(r diag.Range) (start, end int) { return t.offset(r.Start), t.offset(r.End) }

func (t *text) at(r diag.Range) string {
	start, end := t.span(r)
	return string(t.src[start:end])
}

// remedy returns the fix for one finding.
func (t *text) remedy(f diag.Finding) (title string, edit Edit, ok bool) {
	if f.Range.Start.Line == 0 {
		return "", Edit{}, false
	}
	if mend := remedies()[f.Rule]; mend != nil {
		return mend(t, f)
	}
	return t.rename(f)
}

// remedies are the rules whose findings have a fix of their own. Findings of other rules can only
// be fixed with a nearest name.
func remedies() map[string]func(*text, diag.Finding) (string, Edit, bool) {
	return map[string]func(*text, diag.Finding) (string, Edit, bool){
		"condition-implied":       (*text).removeItem,
		"idle-exemption":          (*text).removeField,
		"policy-idle-beside-deny": (*text).removeField,
		"policy-ref-repeated":     (*text).removeItem,
		"suppression-unused":      (*text).removeComment,
		"template-empty":          (*text).removeField,
		"template-raw-variable":   (*text).escape,
		"tighten-only-off":        (*text).tightenOnly,
		"tool-listed-twice":       (*text).removeItem,
		"yaml-11-bool":            (*text).quote,
		"yaml-11-date":            (*text).quote,
		"yaml-11-number":          (*text).quote,
		"yaml-11-special":         (*text).quote,
	}
}

// Rules returns the ids of the rules that have a fix besides a nearest name.
func Rules() []string { return slices.Sorted(maps.Keys(remedies())) }
