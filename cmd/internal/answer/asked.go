package answer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/form"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/template"
	"github.com/assent-dev/assent/value"
)

// says prints the agent's own text about its call or question, with a bar before every line, below
// the verified facts.
func (s *view) says(r *approval.Request) {
	if len(r.Context) == 0 {
		return
	}
	s.Printf("\nWhat the agent says about it, in words of its own that nobody checked; they are no part of what is decided:\n")
	s.repeats(r)
	for i := range r.Context {
		it := &r.Context[i]
		s.text("  | ", it.Label, template.Escape)
		if it.Link != "" {
			s.text("  |   ", "leads to "+it.Host()+":", template.Escape)
		}
		s.text("  |   ", it.Text+it.Link+it.Diff, template.Escape)
	}
}

// repeats warns that a text may repeat values that a policy hides.
func (s *view) repeats(r *approval.Request) {
	if len(r.Redact) > 0 {
		s.Printf("  %s\n", term.Yellow.Of("policy hides values of this call; these words may repeat them"))
	}
}

// form prints the form of a question: the asker's text with bars, and for every field the expected
// values.
func (s *view) form(r *approval.Request, f *form.Form) {
	if f.FreeText() {
		s.Printf("\nIt asks for a text:\n")
	} else {
		s.Printf("\nIt asks for %s in a form:\n", things(len(f.Fields)))
		s.label("  | ", f.Title)
		s.label("  | ", f.Help)
	}

	for i := range f.Fields {
		s.asks(f, i)
		if len(r.Data) > 0 {
			s.Printf("    answered: %s\n", valueText(f.Of(&f.Fields[i], r.Data)))
		}
	}
}

func things(n int) string {
	if n == 1 {
		return "1 thing"
	}

	return fmt.Sprintf("%d things", n)
}

// asks prints one field. Its number is ours; its name, title and help are the asker's text.
func (s *view) asks(f *form.Form, i int) {
	field := &f.Fields[i]
	if !f.FreeText() {
		s.Printf("  field %d of %d, %s\n", i+1, len(f.Fields), needed(field))
		s.label("    | ", field.Name)
	}
	if field.Title != field.Name {
		s.label("    | ", field.Title)
	}
	s.label("    | ", field.Help)
	s.Printf("    takes %s\n", field.Takes())
	for n, o := range field.Options {
		s.Printf("    [%d] %s\n", n, optionText(o))
	}
	if field.Default.Kind != value.Absent {
		s.Printf("    default: %s\n", valueText(field.Default))
	}
}

// label prints the asker's text about a field without shortening it, so that the person who answers
// has seen all of it.
func (s *view) label(mark, text string) {
	if text != "" {
		viewOn(s.Printer, true).text(mark, text, template.Escape)
	}
}

func needed(field *form.Field) term.Ready {
	if field.Required {
		return "must be given"
	}

	return "may be left out"
}

// optionText returns the value of an option, which the answer contains, with its title if that
// differs.
func optionText(o form.Option) string {
	if o.Title == o.Value {
		return o.Value
	}

	return o.Value + " | " + o.Title
}

// valueText returns a value of an answer in a few words.
func valueText(v value.Value) string {
	if v.Kind == value.Absent {
		return "(not given)"
	}

	return string(v.AppendJSON(nil))
}

// given prints an answer before it is given, field by field.
func (s *view) given(f *form.Form, data []byte) {
	s.Printf("\nYour answer:\n")
	for i := range f.Fields {
		field := &f.Fields[i]
		if field.Name == "" {
			s.text("  | ", strings.Join(form.Texts(f.Of(field, data)), ""), template.Escape)
			continue
		}
		s.Printf("  | %s: %s\n", field.Name, valueText(f.Of(field, data)))
	}
}

// wrong returns an error for an answer that the form doesn't accept, with one line for every wrong
// field.
func wrong(problems form.Problems) error {
	lines := []string{"the answer does not fit, so nothing was answered:"}
	for _, p := range problems {
		line := "expected " + term.ScrubLine(p.Want)
		if p.Field != "" {
			line = term.ScrubLine(p.Field) + ": " + line
		}
		lines = append(lines, line)
	}

	return term.ExitWith(term.ExitFailure, fmt.Errorf("%s", strings.Join(lines, "\n")))
}

// picksOf returns the values of the options with the given numbers; wrong is an input that is not
// the number of an option.
func picksOf(field *form.Field, text string) (values []string, wrong string) {
	for part := range strings.SplitSeq(text, ",") {
		n, err := readNumber(strings.TrimSpace(part))
		if err != nil || n >= len(field.Options) || slices.Contains(values, field.Options[n].Value) {
			return nil, fmt.Sprintf("numbers from 0 to %d, the ones in brackets", len(field.Options)-1)
		}
		values = append(values, field.Options[n].Value)
	}

	if field.Type == form.Select && len(values) != 1 {
		return nil, "one number"
	}

	return values, ""
}
