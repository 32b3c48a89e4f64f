package inbox

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/form"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/value"
)

// asked is a form or a free text for display, either to be filled in or with the given answer.
type asked struct {
	Title, Help safetext.Shown
	Free        bool // one text, not an object
	Fields      []askedField
	Wrong       []wrongField // why the last answer was refused
}

// askedField is one field with its control. Labels are text of the asker, so pages must mark them
// as quoted.
type askedField struct {
	ID       string // id and name of the control
	Label    safetext.Shown
	Help     safetext.Shown
	Takes    string // in our words
	Kind     string // text, area, number, check, radio, select, checks
	Input    string // type of a text control
	Required bool
	Given    string
	Options  []askedOption
	On       bool   // state of a check box
	Wrong    string // why the given value is refused
	Min, Max string
	Least    int
	Most     int
}

type askedOption struct {
	Index int
	Value string
	Label safetext.Shown
	On    bool
}

type wrongField struct{ ID, Label, Want string }

// fewOptions is the largest number of options that are all shown; more are put into a list.
const fewOptions = 6

// oneLine is the largest length of a text that gets a single-line control.
const oneLine = 200

// askedOf returns the form of a question, filled with the posted values, the given answer or the
// defaults. It returns nil for a choice.
func askedOf(r *approval.Request, posted url.Values, problems form.Problems) *asked {
	f := r.Question.Form()
	if f == nil {
		return nil
	}
	out := &asked{
		Title: safetext.Inspect(f.Title, safetext.Form{}),
		Help:  safetext.Inspect(f.Help, safetext.Form{Lines: true}),
		Free:  f.FreeText(),
	}
	for i := range f.Fields {
		field := viewOf(&f.Fields[i], i, given(f, i, r.Data, posted))
		if n := slices.IndexFunc(problems, func(p form.Problem) bool { return p.Field == f.Fields[i].Name }); n >= 0 {
			field.Wrong = "Expected " + problems[n].Want + "."
			label := cmp.Or(field.Label.Spoken(), "The text")
			out.Wrong = append(out.Wrong, wrongField{field.ID, label, problems[n].Want})
		}
		out.Fields = append(out.Fields, field)
	}

	return out
}

// controlName returns the name of a field's control. It does not use the asker's own name for the
// field, which could be anything.
func controlName(i int) string { return "field." + strconv.Itoa(i) }

// given returns the values of a field as texts, in the format that pages post.
func given(f *form.Form, i int, answered json.RawMessage, posted url.Values) []string {
	field := &f.Fields[i]
	if posted != nil {
		return posted[controlName(i)]
	}

	return form.Texts(f.Of(field, answered))
}

// viewOf selects the control of a field.
func viewOf(f *form.Field, i int, given []string) askedField {
	out := askedField{
		ID:       controlName(i),
		Label:    safetext.Inspect(f.Title, safetext.Form{}),
		Help:     safetext.Inspect(f.Help, safetext.Form{Lines: true}),
		Takes:    f.Takes(),
		Required: f.Required,
		Least:    f.Least,
		Most:     f.Most,
	}
	if len(given) > 0 {
		out.Given = given[0]
	}
	for n, o := range f.Options {
		out.Options = append(out.Options, askedOption{
			Index: n,
			Value: o.Value,
			Label: safetext.Inspect(o.Title, safetext.Form{}),
			On:    slices.Contains(given, o.Value),
		})
	}

	switch f.Type {
	case form.Boolean:
		out.Kind, out.On = "check", out.Given == "true" || out.Given == "on"
	case form.Several:
		out.Kind = "checks"
	case form.Select:
		out.Kind = "select"
		if len(f.Options) <= fewOptions {
			out.Kind = "radio"
		}
	case form.Number, form.Integer:
		out.Kind = "number"
		out.Min, out.Max = bound(f.Minimum), bound(f.Maximum)
	case form.Text:
		out.Kind, out.Input = "text", inputOf(f.Format)
		if f.Format == "" && (f.Most == 0 || f.Most > oneLine) {
			out.Kind = "area"
		}
	}

	return out
}

func bound(n *value.Num) string {
	if n == nil {
		return ""
	}

	return n.String()
}

// inputOf returns the type of the control for a format. A date with a time is entered as text,
// because no browser control supports time zones.
func inputOf(format string) string {
	switch format {
	case "email", "date":
		return format
	case "uri":
		return "url"
	}

	return "text"
}

// submitted reads a posted form. If it is not a valid answer, the error is form.Problems with every
// wrong field.
func (v requestPages) submitted(r *approval.Request) (json.RawMessage, error) {
	f := r.Question.Form()
	if f == nil {
		return nil, &approval.InputError{Field: "verdict", Expected: "choose or dismiss: this question takes a choice"}
	}
	place := map[string]int{}
	for i := range f.Fields {
		place[f.Fields[i].Name] = i
	}

	return f.Read(func(name string) []string {
		at := place[name]
		texts := v.r.PostForm[controlName(at)]
		if len(texts) == 0 && f.Fields[at].Type == form.Boolean {
			return []string{""} // browsers don't post unticked boxes
		}

		return texts
	})
}

// mend shows the form again with the posted values and the problem next to each wrong field.
// Nothing has been answered.
func (v requestPages) mend(id string, problems form.Problems) error {
	r, err := v.stored(id)
	if err != nil {
		return err
	}
	p, err := v.readRequest(r, false)
	if err != nil {
		return err
	}
	p.Question.Form = askedOf(r, v.r.PostForm, problems)

	return v.show("question", "Question: "+p.Name, "queue", p)
}

// flag adds the problems in the texts of a form to flags.
func (a *asked) flag(flags safetext.Flags) {
	flags.Add(a.Title.Flags)
	flags.Add(a.Help.Flags)
	for _, field := range a.Fields {
		flags.Add(field.Label.Flags)
		flags.Add(field.Help.Flags)
		for _, o := range field.Options {
			flags.Add(o.Label.Flags)
		}
	}
}
