package slack

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/form"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/value"
)

// Limits of a modal in Slack. A larger form must be answered in the inbox.
const (
	mostFields  = 95     // of 100 blocks
	mostInput   = 3000   // characters of one text
	mostHint    = 1900   // of 2000
	mostTitle   = 1900   // of 2000 in a label
	mostOption  = 75     // characters of an option's title
	mostShown   = 10     // options as buttons or boxes; more become a menu
	mostWords   = 60_000 // characters of all labels, hints and options
	oneLine     = 200    // maximum length of a text that gets a single line, as in the inbox
	fieldValue  = "value"
	fieldPrefix = "field_"
)

// modal is a form as the blocks of a Slack modal.
type modal struct {
	blocks []slack.Block
	size   int
	unfit  bool // something exceeds Slack's limits
}

// modalOf makes the inputs of a question's form. It returns false if the form exceeds Slack's
// limits.
func modalOf(r *approval.Request) ([]slack.Block, bool) {
	f := r.Question.Form()
	if f == nil || len(f.Fields) > mostFields {
		return nil, false
	}
	m := &modal{}
	m.add(section("Request " + short(r.ID) + ", binding " + short(prefix(r.Binding()))))
	intro := "What stands behind bars, and the options, are the " + whoAsks(r) + "'s own words, which nobody checked."
	if !f.FreeText() {
		for _, text := range []string{f.Title, f.Help} {
			intro += m.fenced(text)
		}
	}
	if safetext.SlackLength(intro) > maxText {
		return nil, false
	}
	m.add(section(intro))
	for i := range f.Fields {
		m.add(m.input(&f.Fields[i], i))
	}

	return m.blocks, !m.unfit && m.size <= mostWords
}

func (m *modal) add(b slack.Block) { m.blocks = append(m.blocks, b) }

// words returns a text of the asker, uncut. If it is longer than most, the form is unfit.
func (m *modal) words(text string, most int) string {
	shown := safetext.Slack(text)
	m.unfit = m.unfit || safetext.SlackLength(shown) > most
	m.size += safetext.SlackLength(shown)

	return shown
}

// fenced returns the asker's text with a bar before each line.
func (m *modal) fenced(text string) string {
	if text == "" {
		return ""
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString("\n│ " + m.words(strings.TrimRight(line, "\n"), mostHint))
	}

	return out.String()
}

// input returns the block of one field.
func (m *modal) input(f *form.Field, i int) slack.Block {
	label := "Your answer"
	if f.Title != "" {
		label = "│ " + m.words(f.Title, mostTitle)
	}
	hint := "Takes " + m.words(f.Takes(), mostHint) + "." + m.fenced(f.Help)
	m.unfit = m.unfit || safetext.SlackLength(hint) > mostHint || safetext.SlackLength(label) > mostTitle
	b := slack.NewInputBlock(fieldPrefix+strconv.Itoa(i), plain(label), plain(hint), m.element(f))
	b.Optional = !f.Required
	switch {
	case f.Type == form.Boolean: // an unticked box is an answer
		b.Optional = true
	case f.Type == form.Several, f.Name == "":
		b.Optional = f.Least == 0
	}

	return b
}

// element returns the control of one field with its default.
func (m *modal) element(f *form.Field) slack.BlockElement {
	switch f.Type {
	case form.Boolean:
		return m.box(f)
	case form.Select:
		return m.one(f)
	case form.Several:
		return m.several(f)
	case form.Number, form.Integer:
		e := slack.NewNumberInputBlockElement(nil, fieldValue, f.Type == form.Number)
		e.InitialValue = m.first(f)
		e.MinValue, e.MaxValue = bound(f.Minimum), bound(f.Maximum)
		m.unfit = m.unfit || strings.ContainsAny(e.InitialValue+e.MinValue+e.MaxValue, "eE") ||
			f.Type == form.Integer && strings.Contains(e.InitialValue, ".")

		return e
	}

	return m.text(f)
}

func bound(n *value.Num) string {
	if n == nil {
		return ""
	}

	return n.String()
}

func (m *modal) text(f *form.Field) slack.BlockElement {
	switch f.Format {
	case "email":
		e := slack.NewEmailTextInputBlockElement(nil, fieldValue)
		e.InitialValue = m.first(f)

		return e
	case "uri":
		e := slack.NewURLTextInputBlockElement(nil, fieldValue)
		e.InitialValue = m.first(f)

		return e
	case "date":
		e := slack.NewDatePickerBlockElement(fieldValue)
		e.InitialDate = m.first(f)

		return e
	}

	e := slack.NewPlainTextInputBlockElement(nil, fieldValue)
	e.InitialValue = m.first(f)
	e.Multiline = f.Format == "" && (f.Most == 0 || f.Most > oneLine)
	e.MinLength, e.MaxLength = f.Least, mostInput
	if f.Most > 0 {
		e.MaxLength = min(f.Most, mostInput)
	}
	m.unfit = m.unfit || f.Least > mostInput

	return e
}

// first returns the default of an input. If it is longer than an input allows, the form is
// unfit and must be answered in the inbox.
func (m *modal) first(f *form.Field) string {
	texts := form.Texts(f.Default)
	if len(texts) == 0 {
		return ""
	}
	m.unfit = m.unfit || safetext.SlackLength(texts[0]) > mostInput
	m.size += safetext.SlackLength(texts[0])

	return texts[0]
}

// options returns the options of a field, whose values are their numbers, and those that are
// the default.
func (m *modal) options(f *form.Field) (all, picked []*slack.OptionBlockObject) {
	m.unfit = m.unfit || len(f.Options) > maxOptions
	for i, o := range f.Options {
		option := slack.NewOptionBlockObject(strconv.Itoa(i), plain(m.words(o.Title, mostOption)), nil)
		all = append(all, option)
		for _, v := range form.Texts(f.Default) {
			if v == o.Value {
				picked = append(picked, option)
			}
		}
	}

	return all, picked
}

func (m *modal) box(f *form.Field) slack.BlockElement {
	yes := slack.NewOptionBlockObject("true", plain("Yes"), nil)
	e := slack.NewCheckboxGroupsBlockElement(fieldValue, yes)
	if f.Default.Bool {
		e.InitialOptions = []*slack.OptionBlockObject{yes}
	}

	return e
}

func (m *modal) one(f *form.Field) slack.BlockElement {
	all, picked := m.options(f)
	var first *slack.OptionBlockObject
	if len(picked) > 0 {
		first = picked[0]
	}
	if len(all) <= mostShown {
		e := slack.NewRadioButtonsBlockElement(fieldValue, all...)
		e.InitialOption = first

		return e
	}

	e := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, plain("Pick one"), fieldValue, all...)
	e.InitialOption = first

	return e
}

func (m *modal) several(f *form.Field) slack.BlockElement {
	all, picked := m.options(f)
	if len(all) <= mostShown {
		e := slack.NewCheckboxGroupsBlockElement(fieldValue, all...)
		e.InitialOptions = picked

		return e
	}

	e := slack.NewOptionsMultiSelectBlockElement(slack.MultiOptTypeStatic, plain("Pick some"), fieldValue, all...)
	e.InitialOptions = picked
	if f.Most > 0 {
		e.MaxSelectedItems = &f.Most
	}

	return e
}

// answerForm returns the modal in which a question is answered.
func answerForm(r *approval.Request, metadata string) (slack.ModalViewRequest, bool) {
	blocks, fits := modalOf(r)

	return slack.ModalViewRequest{
		Type:            slack.VTModal,
		CallbackID:      callbackAnswer,
		PrivateMetadata: metadata,
		Title:           plain("Answer a question"),
		Submit:          plain("Answer"),
		Close:           plain("Cancel"),
		Blocks:          slack.Blocks{BlockSet: blocks},
	}, fits
}

// input is the state of one control in Slack's payload.
type input struct {
	Value    string `json:"value"`
	Date     string `json:"selected_date"`
	Selected *struct {
		Value string `json:"value"`
	} `json:"selected_option"`
	Several []struct {
		Value string `json:"value"`
	} `json:"selected_options"`
}

// filled reads the inputs of a person. The error is form.Problems.
func filled(f *form.Form, inputs map[string]map[string]input) ([]byte, error) {
	texts := map[string][]string{}
	for i := range f.Fields {
		field := &f.Fields[i]
		texts[field.Name] = inputs[fieldPrefix+strconv.Itoa(i)][fieldValue].texts(field)
	}

	return f.Read(func(name string) []string { return texts[name] })
}

// texts returns the values of a control in the form that package form reads. An invalid option
// number becomes noOption.
func (in input) texts(f *form.Field) []string {
	switch f.Type {
	case form.Boolean:
		if len(in.Several) == 0 {
			return []string{""}
		}

		return []string{in.Several[0].Value}
	case form.Select:
		if in.Selected == nil {
			return nil
		}

		return []string{optionOf(f, in.Selected.Value)}
	case form.Several:
		var out []string
		for _, one := range in.Several {
			out = append(out, optionOf(f, one.Value))
		}

		return out
	}

	if in.Date != "" {
		return []string{in.Date}
	}

	return []string{in.Value}
}

// noOption is a value that no option can have, because options must be printable.
const noOption = "\x00"

func optionOf(f *form.Field, number string) string {
	if !numberForm().MatchString(number) {
		return noOption
	}
	n, err := strconv.Atoi(number)
	if err != nil || n >= len(f.Options) {
		return noOption
	}

	return f.Options[n].Value
}

// fieldErrors returns the errors that the modal shows, one for each wrong input, in our own words.
func fieldErrors(f *form.Form, problems form.Problems) map[string]string {
	out := map[string]string{}
	for i := range f.Fields {
		for _, p := range problems {
			if p.Field == f.Fields[i].Name {
				want, _ := safetext.CutSlack(p.Want, mostHint)
				out[fieldPrefix+strconv.Itoa(i)] = "Expected " + want + "."
			}
		}
	}

	if len(out) == 0 && len(f.Fields) > 0 {
		out[fieldPrefix+"0"] = fmt.Sprintf("Expected an answer that the form takes: %d of its fields don't.", len(problems))
	}

	return out
}
