package answer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/form"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/value"
)

// written is an answer from the command line, in one of three forms. If it is empty, the person at
// the terminal is asked.
type written struct {
	fields []string // NAME=VALUE
	text   []string // a free text, at most one
	data   string   // file
}

func (w written) none() bool { return len(w.fields) == 0 && len(w.text) == 0 && w.data == "" }

// check returns an error if the answer is written in more than one form.
func (w written) check(f answerFlags, person bool) error {
	ways := 0
	for _, used := range []bool{len(w.fields) > 0, len(w.text) > 0, w.data != ""} {
		if used {
			ways++
		}
	}

	switch {
	case ways > 1 || len(w.text) > 1:
		return errors.New("expected one of --field (for each field), --text and --data")
	case ways == 0 && (f.yes || !person):
		return errors.New("there is nobody to ask: give the answer with --field, --text or --data")
	case w.data == "-" && !f.yes:
		return errors.New("--data -: standard input has the answer, so nobody can confirm: give --yes --binding PREFIX")
	}

	return nil
}

// submit shows a question for a text or a form, and answers it from the flags or from the input of
// the person at the terminal.
func (a commands) submit(ctx context.Context, f answerFlags, id string) error {
	if err := f.written.check(f, a.person(f.AsJSON)); err != nil {
		return err
	}
	if err := a.attended(f, "answer"); err != nil {
		return err
	}
	server, r, err := a.look(ctx, f.Connection, id, f.binding)
	if err != nil {
		return err
	}
	if err := takesData(r); err != nil {
		return err
	}
	s := viewOn(a.shownOn(f.AsJSON), f.all)
	s.question(r)
	asked := r.Question.Form()
	data, err := a.answerTo(s, f.written, asked)
	if err != nil {
		return err
	}
	s.given(asked, data)
	if !f.yes {
		if err := a.confirm(s.Printer, "answer "+r.ID, r.ID, r.Binding()); err != nil {
			return err
		}
	}
	if err := s.Done(); err != nil { // what was not printed was not shown
		return err
	}
	body := openapi.VoteBody{
		Verdict:    approval.Submit,
		Binding:    r.Binding(),
		Data:       data,
		Reason:     f.reason,
		ShownFully: true,
	}

	return a.vote(ctx, server, r, body, f.AsJSON)
}

// takesData returns an error for a question that is answered in another way, and names that way.
func takesData(r *approval.Request) error {
	id := term.ScrubLine(r.ID)
	switch {
	case r.Question == nil:
		return isCall(r)
	case r.Question.Form() == nil && kept(r.Question):
		return term.No(
			"%s asks for a choice: answer with `assent choose %s NUMBER` or `assent dismiss %s`", id, id, id,
		)
	case r.Question.Form() == nil:
		return term.No("%s has ended, and what it asked is no longer kept", id)
	}

	return nil
}

// takesChoice returns an error if the question expects a text or a form and not a choice.
func takesChoice(r *approval.Request) error {
	if r.Question.Form() == nil {
		return nil
	}
	id := term.ScrubLine(r.ID)

	return term.No(
		"%s asks for %s, not for a choice: answer with `assent answer %s` or `assent dismiss %s`",
		id, kindOf(r.Question.Form()), id, id,
	)
}

func kindOf(f *form.Form) string {
	if f.FreeText() {
		return "a text"
	}

	return "a form"
}

// answerTo builds the answer from the flags, or asks for it.
func (a commands) answerTo(s *view, w written, f *form.Form) (json.RawMessage, error) {
	data, err := a.compose(s, w, f)
	var problems form.Problems
	if errors.As(err, &problems) {
		return nil, errors.Join(s.Done(), wrong(problems))
	}

	return data, err
}

func (a commands) compose(s *view, w written, f *form.Form) (json.RawMessage, error) {
	switch {
	case w.none():
		return a.fillIn(s, f)
	case w.data != "":
		text, err := term.ReadFile(w.data, a.In)
		if err != nil {
			return nil, fmt.Errorf("--data: %w", err)
		}

		return f.Check(text)
	case f.FreeText() != (len(w.text) > 0):
		return nil, wrongFlag(f)
	case f.FreeText():
		return f.Read(func(string) []string { return w.text })
	}

	return readFields(f, w.fields)
}

func wrongFlag(f *form.Form) error {
	if f.FreeText() {
		return errors.New("this question asks for a text: give --text, not --field")
	}

	return errors.New("this question asks for a form: give --field NAME=VALUE, not --text")
}

// readFields reads NAME=VALUE arguments. A NAME that occurs several times selects several options.
// A field that is not named gets its default.
func readFields(f *form.Form, fields []string) (json.RawMessage, error) {
	texts := map[string][]string{}
	var unknown form.Problems
	for _, text := range fields {
		name, given, ok := cutField(f, text)
		if !ok {
			name, _, _ = strings.Cut(text, "=")
			unknown = append(unknown, form.Problem{Field: name, Want: "NAME=VALUE with the name of a field"})
		}
		texts[name] = append(texts[name], given)
	}

	for i := range f.Fields {
		field := &f.Fields[i]
		if many := len(texts[field.Name]); many > 1 && field.Type != form.Several {
			unknown = append(unknown, form.Problem{Field: field.Name, Want: "one value, not several"})
		}
	}

	data, err := f.Read(func(name string) []string { return orDefault(f, name, texts[name]) })
	var problems form.Problems
	if errors.As(err, &problems) || len(unknown) > 0 {
		return nil, append(problems, unknown...)
	}

	return data, err
}

// cutField splits NAME=VALUE at the name of a field. Names may contain an equals sign themselves,
// so the longest matching name is used.
func cutField(f *form.Form, text string) (name, given string, ok bool) {
	for i := range f.Fields {
		of := f.Fields[i].Name
		if rest, found := strings.CutPrefix(text, of+"="); found && (!ok || len(of) > len(name)) {
			name, given = of, rest
			ok = true
		}
	}

	return name, given, ok
}

// orDefault returns the given values of a field, or else its default.
func orDefault(f *form.Form, name string, texts []string) []string {
	i := slices.IndexFunc(f.Fields, func(field form.Field) bool { return field.Name == name })
	if len(texts) > 0 || i < 0 {
		return texts
	}

	return form.Texts(f.Fields[i].Default)
}

// fillIn asks for every field, one after the other, until each has a valid value.
func (a commands) fillIn(s *view, f *form.Form) (json.RawMessage, error) {
	texts := map[string][]string{}
	for i := range f.Fields {
		field := &f.Fields[i]
		given, err := a.askField(s, f, field, i)
		if err != nil {
			return nil, err
		}
		texts[field.Name] = given
	}

	return f.Read(func(name string) []string { return texts[name] })
}

// askField asks until the input is valid for the field. An empty line selects the default, or no
// value.
func (a commands) askField(s *view, f *form.Form, field *form.Field, i int) ([]string, error) {
	all := viewOn(s.Printer, true)
	for {
		all.Printf("\n")
		all.asks(f, i)
		all.Printf("%s: ", hint(field))
		line, err := a.readLine(s.Printer)
		if errors.Is(err, io.EOF) {
			return nil, term.No("stopped: nothing was done")
		}
		if err != nil {
			return nil, err
		}
		given, want := typed(f, field, line)
		if want == "" {
			return given, nil
		}
		all.Printf("That does not fit: expected %s\n", want)
	}
}

// typed reads the value of a field from a line; want describes the expected input if the line is
// invalid.
func typed(f *form.Form, field *form.Field, line string) (given []string, want string) {
	switch {
	case line == "" && (field.Default.Kind != value.Absent || field.Name != ""):
		given = form.Texts(field.Default)
	case line != "" && len(field.Options) > 0:
		if given, want = picksOf(field, line); want != "" {
			return nil, want
		}
	default:
		given = []string{line}
	}

	_, err := f.Read(func(name string) []string {
		if name == field.Name {
			return given
		}
		return nil
	})
	var problems form.Problems
	if errors.As(err, &problems) {
		if n := slices.IndexFunc(problems, func(p form.Problem) bool { return p.Field == field.Name }); n >= 0 {
			return nil, problems[n].Want
		}
	}

	return given, ""
}

// hint describes the expected input.
func hint(field *form.Field) term.Ready {
	what := "Your answer"
	switch field.Type {
	case form.Select:
		what = "The number of an option"
	case form.Several:
		what = "The numbers of options, separated by commas"
	}

	switch {
	case field.Default.Kind != value.Absent:
		what += "; an empty line: the default"
	case field.Name != "" && !field.Required:
		what += "; an empty line: not given"
	}

	return term.Ready(what)
}
