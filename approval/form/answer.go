package form

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/value"
)

// Check validates an answer against the form and returns its canonical form. The error is Problems.
func (f *Form) Check(answer []byte) (json.RawMessage, error) {
	doc, err := value.Parse(answer, value.Limits{MaxBytes: MaxAnswer, MaxDepth: 8})
	if err != nil {
		return nil, Problems{{Want: "a JSON text of at most 256 KiB: " + err.Error()}}
	}
	problems := f.problems(doc)
	if len(problems) > 0 {
		return nil, problems
	}

	return doc.AppendCanonical(nil), nil
}

func (f *Form) problems(doc value.Value) Problems {
	work := pattern.Work{Left: mostWork}
	if f.text {
		if want := f.Fields[0].wants(doc, &work); want != "" {
			return Problems{{Want: want}}
		}

		return nil
	}

	if doc.Kind != value.Object {
		return Problems{{Want: "an object with the fields of the form"}}
	}

	var out Problems
	for i := range f.Fields {
		field := &f.Fields[i]
		v, given := doc.Get(field.Name)
		switch {
		case given:
			if want := field.wants(v, &work); want != "" {
				out = append(out, Problem{field.Name, want})
			}
		case field.Required:
			out = append(out, Problem{field.Name, field.Takes() + "; it must be given"})
		}
	}

	for _, m := range doc.Members {
		if !slices.ContainsFunc(f.Fields, func(field Field) bool { return field.Name == m.Key }) {
			out = append(out, Problem{m.Key, "no such field: the form doesn't have it"})
		}
	}

	return out
}

// Read builds an answer from the input of a page or a command line: given returns the texts for a
// field by its name. An empty field is left out of the answer. A box that was not ticked is given
// as an empty text and becomes false. The error is Problems.
func (f *Form) Read(given func(name string) []string) (json.RawMessage, error) {
	var members []value.Member
	var problems Problems
	for i := range f.Fields {
		field := &f.Fields[i]
		v, want := field.read(given(field.Name))
		switch {
		case want != "":
			problems = append(problems, Problem{field.Name, want})
		case f.text:
			return f.Check(v.AppendJSON(nil))
		case v.Kind != value.Absent:
			members = append(members, value.Member{Key: field.Name, Value: v})
		}
	}

	out, err := f.Check(value.Value{Kind: value.Object, Members: members}.AppendJSON(nil))
	if err == nil && len(problems) == 0 {
		return out, nil
	}
	more, _ := err.(Problems) //nolint:errorlint // Check returns nothing else

	return nil, f.joined(problems, more)
}

// joined merges the problems into one per field, in the order of the form.
func (f *Form) joined(read, checked Problems) Problems {
	var out Problems
	for i := range f.Fields {
		is := func(p Problem) bool { return p.Field == f.Fields[i].Name }
		if n := slices.IndexFunc(read, is); n >= 0 {
			out = append(out, read[n])
		} else if n := slices.IndexFunc(checked, is); n >= 0 {
			out = append(out, checked[n])
		}
	}

	return out
}

// read converts texts into a value. If that is impossible, it returns what the field accepts.
func (f *Field) read(texts []string) (v value.Value, want string) {
	if f.Type == Several {
		if len(texts) == 0 && f.Least == 0 && !f.Required {
			return value.Value{}, ""
		}
		for _, t := range texts {
			v.Items = append(v.Items, value.Value{Kind: value.String, Text: t})
		}
		v.Kind = value.Array

		return v, ""
	}

	text := ""
	if len(texts) > 0 {
		text = texts[len(texts)-1]
	}

	switch {
	case f.Type == Boolean && len(texts) == 0:
		return value.Value{}, ""
	case f.Type == Boolean:
		return readBool(text, f)
	case text == "" && (f.Name != "" || f.Type != Text):
		return value.Value{}, ""
	case f.Type == Number || f.Type == Integer:
		n, err := value.ParseNum(strings.TrimSpace(text))
		if err != nil {
			return v, f.Takes()
		}

		return value.Value{Kind: value.Number, Num: n}, ""
	}

	return value.Value{Kind: value.String, Text: strings.ReplaceAll(text, "\r\n", "\n")}, ""
}

// Texts returns a value in the format that Read accepts, or nil if there is none.
func Texts(v value.Value) []string {
	switch v.Kind {
	case value.Absent, value.Null:
		return nil
	case value.String:
		return []string{v.Text}
	case value.Array:
		var out []string
		for _, item := range v.Items {
			out = append(out, item.Text)
		}

		return out
	}

	return []string{string(v.AppendJSON(nil))}
}

// Of returns the value that an answer has for a field, or the field's default if there is no
// answer.
func (f *Form) Of(field *Field, answer json.RawMessage) value.Value {
	doc, err := value.Parse(answer, value.Limits{})
	switch {
	case err != nil:
		return field.Default
	case f.text:
		return doc
	}

	v, _ := doc.Get(field.Name)

	return v
}

func readBool(text string, f *Field) (value.Value, string) {
	switch text {
	case "true", "on", "yes":
		return value.Value{Kind: value.Bool, Bool: true}, ""
	case "", "false", "off", "no":
		return value.Value{Kind: value.Bool}, ""
	}

	return value.Value{}, f.Takes()
}

// wants returns what a field accepts if the value is invalid, or an empty string if it is valid. It
// charges the cost of matching a pattern to work.
func (f *Field) wants(v value.Value, work *pattern.Work) string {
	var ok bool
	var fault string
	switch f.Type {
	case Text:
		n := utf8.RuneCountInString(v.Text)
		ok = v.Kind == value.String && n >= f.Least && n <= f.most() && f.formatted(v.Text)
		if ok && f.pattern != nil {
			ok, fault = f.matches(v.Text, work)
		}
	case Number, Integer:
		ok = v.Kind == value.Number && (f.Type == Number || v.Num.IsInt()) &&
			(f.Minimum == nil || v.Num.Cmp(*f.Minimum) >= 0) && (f.Maximum == nil || v.Num.Cmp(*f.Maximum) <= 0)
	case Boolean:
		ok = v.Kind == value.Bool
	case Select:
		ok = v.Kind == value.String && f.offers(v.Text)
	case Several:
		ok = f.severalFit(v)
	}

	if ok {
		return ""
	}

	return f.Takes() + fault
}

// matches reports whether a text matches the pattern. fault is the reason why the text could not be
// matched at all; such a text is refused.
func (f *Field) matches(text string, work *pattern.Work) (ok bool, fault string) {
	ok, err := f.pattern.Match(text, work)
	if err != nil {
		return false, " (" + err.Error() + ")"
	}

	return ok, ""
}

func (f *Field) most() int {
	if f.Most == 0 || f.Most > MaxText {
		return MaxText
	}

	return f.Most
}

func (f *Field) offers(text string) bool {
	return slices.ContainsFunc(f.Options, func(o Option) bool { return o.Value == text })
}

func (f *Field) severalFit(v value.Value) bool {
	n := len(v.Items)
	if v.Kind != value.Array || n < f.Least || f.Most > 0 && n > f.Most {
		return false
	}
	seen := map[string]bool{}
	for _, item := range v.Items {
		if item.Kind != value.String || !f.offers(item.Text) || seen[item.Text] {
			return false
		}
		seen[item.Text] = true
	}

	return true
}

// formatted reports whether a text has the field's format.
func (f *Field) formatted(text string) bool {
	switch f.Format {
	case "email":
		local, domain, ok := strings.Cut(text, "@")

		return ok && local != "" && domain != "" && !strings.ContainsAny(text, " \t\r\n<>,;") &&
			!strings.Contains(domain, "@")
	case "uri":
		u, err := url.Parse(text)

		return err == nil && u.IsAbs() && !strings.ContainsAny(text, " \t\r\n")
	case "date":
		_, err := time.Parse(time.DateOnly, text)

		return err == nil
	case "date-time":
		_, err := time.Parse(time.RFC3339, text)

		return err == nil
	}

	return true
}

// formatWords describes the formats.
var formatWords = map[string]string{
	"email":     "an e-mail address, such as mara@example.com",
	"uri":       "an absolute address, such as https://example.com/page",
	"date":      "a date, such as 2026-11-22",
	"date-time": "a date with time and zone, such as 2026-11-22T09:30:00Z",
}

// Takes describes what the field accepts. Channels show it next to the control and in errors.
func (f *Field) Takes() string {
	switch f.Type {
	case Number, Integer:
		return f.takesNumber()
	case Boolean:
		return "true or false"
	case Select:
		return fmt.Sprintf("one of the %d options", len(f.Options))
	case Several:
		return "options of the list, each once" + bounds(f.Least, f.Most, "options")
	}

	out := "a text"
	if words, ok := formatWords[f.Format]; ok {
		out = words
	}
	if f.pattern != nil {
		out += " that matches " + f.pattern.String()
	}

	return out + bounds(f.Least, f.Most, "characters")
}

func (f *Field) takesNumber() string {
	out := "a number"
	if f.Type == Integer {
		out = "a whole number"
	}
	switch {
	case f.Minimum != nil && f.Maximum != nil:
		return fmt.Sprintf("%s from %s to %s", out, f.Minimum, f.Maximum)
	case f.Minimum != nil:
		return fmt.Sprintf("%s of at least %s", out, f.Minimum)
	case f.Maximum != nil:
		return fmt.Sprintf("%s of at most %s", out, f.Maximum)
	}

	return out
}

func bounds(least, most int, what string) string {
	switch {
	case least > 0 && most > 0:
		return fmt.Sprintf(", %d to %d %s", least, most, what)
	case least > 0:
		return fmt.Sprintf(", at least %d %s", least, what)
	case most > 0:
		return fmt.Sprintf(", at most %d %s", most, what)
	}

	return ""
}
