package slack_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/notify/slack"
)

const (
	answers = "assent_answer"
	flight  = `{"type":"object","title":"Your *flight*","properties":{
	"name":{"type":"string","title":"Passenger","description":"As in the passport\nAgent: innocent","minLength":2,"maxLength":40},
	"mail":{"type":"string","format":"email","default":"m@x.org"},
	"page":{"type":"string","format":"uri"},
	"day":{"type":"string","format":"date","default":"2026-03-01"},
	"bags":{"type":"integer","minimum":0,"maximum":3,"default":1},
	"price":{"type":"number"},
	"aisle":{"type":"boolean","default":true},
	"class":{"type":"string","enum":["eco","biz"],"enumNames":["Economy","Business"],"default":"biz"},
	"extras":{"type":"array","items":{"type":"string","enum":["wifi","seat","lounge"]},"maxItems":2,"default":["seat"]},
	"note":{"type":"string","title":"Anything else"}},
	"required":["name","class"]}`
)

// asksForm lets an agent ask by itself, or during a call, with context.
func (w *world) asksForm(schema string, call *resolve.Call, groups ...string) *approval.Request {
	w.t.Helper()
	out, err := w.service.Ask(w.t.Context(), approval.AskInput{
		Tenant: tenant,
		Asker:  approval.Asker{Token: "ci"},
		Agent:  agentID,
		Key:    approval.NewKey(),
		Question: approval.Question{
			Asker:  "booking",
			Prompt: "Who flies?\nMay answer: everybody",
			Schema: json.RawMessage(schema),
			Groups: groups,
		},
		Call: call,
		Context: []info.Item{
			{Label: "Secret label", Text: "secret words"},
			{Label: "L", Link: "https://secret.example/"},
		},
	})
	if err != nil || out.Request == nil {
		w.t.Fatalf("ask: %+v, %v", out, err)
	}
	w.deliver()

	return out.Request
}

// opened returns the view that was opened last, and its inputs.
func (w *world) opened() (view map[string]any, inputs []block) {
	w.t.Helper()
	w.slack.mu.Lock()
	defer w.slack.mu.Unlock()
	if len(w.slack.views) == 0 {
		w.t.Fatal("no form was opened")
	}
	raw := w.slack.views[len(w.slack.views)-1]
	var blocks struct{ Blocks []block }
	if json.Unmarshal(raw, &view) != nil || json.Unmarshal(raw, &blocks) != nil {
		w.t.Fatal(string(raw))
	}
	for _, b := range blocks.Blocks {
		if b.Type == "input" {
			inputs = append(inputs, b)
		}
	}

	return view, inputs
}

type (
	values = map[string]any
	picked = map[string]any
)

// fills submits the view that was opened last, and returns the errors by block.
func (w *world) fills(user string, given map[string]values) map[string]string {
	w.t.Helper()
	view, _ := w.opened()
	state := map[string]any{}
	for block, v := range given {
		state[block] = map[string]any{"value": v}
	}
	view["state"] = map[string]any{"values": state}
	answer, err := http.DefaultClient.Do(w.signed(encode(w.t, map[string]any{
		"type": "view_submission",
		"team": map[string]any{"id": team},
		"user": map[string]any{"id": user, "team_id": team},
		"view": view,
	})))
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		w.t.Fatalf("%d %s, %v", answer.StatusCode, body, err)
	}
	w.app.Wait()
	if len(body) == 0 {
		return nil
	}
	var out struct {
		Action string            `json:"response_action"`
		Errors map[string]string `json:"errors"`
	}
	if err := json.Unmarshal(body, &out); err != nil || out.Action != "errors" || len(out.Errors) == 0 {
		w.t.Fatalf("%s, %v", body, err)
	}

	return out.Errors
}

func option1(n string) picked { return picked{"value": n} }

// TestFormInSlack checks that the facts come first, then the asker's text. The button opens
// Slack's inputs, and wrong inputs are rejected.
func TestFormInSlack(t *testing.T) {
	w := newWorld(t)
	r := w.asksForm(flight, &resolve.Call{}, "risk")
	p := w.only()
	text := texts(p.blocks)
	rest := text
	for _, part := range []string{
		"An agent asks",
		"Asks by itself, outside any call, as: booking",
		"Agent: trader",
		"What the agent says about it: 2 items, in the inbox",
		"May answer: one of risk",
		"The agent says, in words of its own that nobody checked:",
		"│ Who flies?",
		"│ May answer: everybody",
		"booking asks for 10 things in a form.",
		"[Answer…]",
		"[Dismiss]",
		"gets no answer",
	} {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			t.Fatalf("%q is not there, or too early:\n%s", part, text)
		}
		rest = after
	}

	lacks(t, text, "secret", "Secret", "Arguments", "no call", "Tool server", "\nMay answer: everybody")

	w.click(p, answers, "U0RITA")
	_, inputs := w.opened()
	var kinds []string
	for _, b := range inputs {
		e := b.Element
		kinds = append(kinds, fmt.Sprintf("%s %t %s%s", e.Type, b.Optional, e.InitialValue, e.InitialDate))
	}
	want := "plain_text_input false \nemail_text_input true m@x.org\nurl_text_input true \ndatepicker true 2026-03-01\n" +
		"number_input true 1\nnumber_input true \ncheckboxes true \nradio_buttons false \ncheckboxes true \n" +
		"plain_text_input true "
	if got := strings.Join(kinds, "\n"); got != want {
		t.Errorf("got\n%s", got)
	}
	name, note := inputs[0].Element, inputs[9].Element
	bags, price := inputs[4].Element, inputs[5].Element
	if name.MinLength != 2 || name.MaxLength != 40 || name.Multiline || !note.Multiline || *bags.Decimal ||
		!*price.Decimal || bags.MinValue != "0" || bags.MaxValue != "3" ||
		inputs[7].Element.InitialOption.Value != "1" ||
		len(inputs[6].Element.InitialOptions) != 1 || inputs[8].Element.InitialOptions[0].Text.Text != "seat" {
		t.Errorf("%+v", inputs)
	}

	holds(t, inputs[0].Label.Text, "│ Passenger")
	holds(t, inputs[0].Hint.Text, "Takes a text, 2 to 40 characters.\n│ As in the passport\n│ Agent: innocent")

	given := map[string]values{
		"field_0": {"type": "plain_text_input", "value": "M"},
		"field_1": {"type": "email_text_input", "value": nil},
		"field_3": {"type": "datepicker", "selected_date": "2026-13-01"},
		"field_4": {"type": "number_input", "value": "4"},
		"field_6": {"type": "checkboxes", "selected_options": []any{}},
		"field_7": {"type": "radio_buttons", "selected_option": option1("2")},
		"field_8": {"type": "checkboxes", "selected_options": []any{option1("0"), option1("-1")}},
	}
	wrong := w.fills("U0RITA", given)
	if got := strings.Join(slices.Sorted(maps.Keys(wrong)), " "); got != "field_0 field_3 field_4 field_7 field_8" ||
		wrong["field_4"] != "Expected a whole number from 0 to 3." {
		t.Errorf("%v", wrong)
	}
	w.unanswered(r.ID, "wrong fields")

	given["field_0"]["value"], given["field_4"]["value"] = "Mara", "2"
	given["field_3"]["selected_date"] = "2026-03-02"
	given["field_7"]["selected_option"] = option1("0")
	given["field_8"]["selected_options"] = []any{option1("2"), option1("0")}
	if wrong := w.fills("U0RITA", given); wrong != nil {
		t.Fatal(wrong)
	}
	got := w.request(r.ID)
	const data = `{"aisle":false,"bags":2,"class":"eco","day":"2026-03-02","extras":["lounge","wifi"],"name":"Mara"}`
	if string(got.Data) != data || got.By != "rita@acme.example" || !got.Votes[0].Full ||
		got.Votes[0].Channel != "slack" {
		t.Errorf("%s %+v", got.Data, got.Votes)
	}
	w.hears("Your answer: Answered by rita@acme.example")
	w.answeredMessage("Question: answered", "Answered by rita@acme.example at 2026-03-01 12:00 UTC")
	lacks(t, texts(w.only().blocks), "Mara", "lounge")
}

// TestTextInSlack checks that a text is one input. Dismissing it gives no answer.
func TestTextInSlack(t *testing.T) {
	w := newWorld(t)
	call := &resolve.Call{Kind: resolve.Tool, Tool: "trade", Args: []byte(`{"what":"gold"}`)}
	r := w.asksForm(`{"type":"string","maxLength":10}`, call)
	p := w.only()
	p.shows(t, "A tool asks", "Tool server: booking", "Asks before it goes on with: tool trade", `"what": "gold"`,
		"booking asks for a text.")
	w.click(p, answers, "U0RITA")
	if wrong := w.fills("U0RITA", map[string]values{"field_0": {"value": "far too long a text"}}); wrong["field_0"] !=
		"Expected a text, at most 10 characters." {
		t.Errorf("%v", wrong)
	}
	w.fills("U0RITA", map[string]values{"field_0": {"value": "12a"}})
	if got := w.request(r.ID); string(got.Data) != `"12a"` {
		t.Errorf("%+v", got)
	}
	w.fills("U0RITA", map[string]values{"field_0": {"value": "13b"}})
	w.hears("too late")

	other := w.asksForm(`{"type":"string"}`, call)
	for _, p := range w.slack.now() {
		if strings.Contains(texts(p.blocks), other.ID) {
			w.click(p, dismiss, "U0RITA")
		}
	}
	if got := w.request(other.ID); got.Cause != approval.ByDismissal || len(got.Data) > 0 {
		t.Errorf("%+v", got)
	}
	w.hears("Dismissed without an answer by rita@acme.example")
}

// TestWhoeverElseFillsInIsRefused checks that the form doesn't open for people who may not
// answer, and that their answers to an open form don't count.
func TestWhoeverElseFillsInIsRefused(t *testing.T) {
	w := newWorld(t)
	r := w.asksForm(`{"type":"string"}`, &resolve.Call{}, "leads")
	for user, want := range map[string]string{"U0RITA": "not eligible to answer", "U0NOBODY": "not mapped to anybody"} {
		w.click(w.only(), answers, user)
		w.hears(want)
		if len(w.slack.views) > 0 {
			t.Errorf("%s: the form opened", user)
		}
	}

	w.click(w.only(), answers, "U0ALICE")
	for user, want := range map[string]string{"U0RITA": "not eligible to answer", "U0NOBODY": "not mapped to anybody"} {
		w.fills(user, map[string]values{"field_0": {"value": "mine"}})
		w.hears(want)
		w.unanswered(r.ID, user)
	}
	w.fills("U0ALICE", map[string]values{"field_0": {"value": "mine"}})
	if got := w.request(r.ID); string(got.Data) != `"mine"` {
		t.Errorf("%+v", got)
	}
}

// TestWhatSlackCanNotHold checks that questions with too many fields or options, with long
// texts, or with confidential contents are answered in the inbox.
func TestWhatSlackCanNotHold(t *testing.T) {
	options := func(n int, title string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"%s%d"`, title, i))
		}

		return `{"type":"string","enum":[` + strings.Join(all, ",") + `]}`
	}
	object := func(fields ...string) string {
		fields = slices.Clone(fields)
		for i, f := range fields {
			fields[i] = fmt.Sprintf(`"f%d":%s`, i, f)
		}

		return `{"type":"object","properties":{` + strings.Join(fields, ",") + `}}`
	}
	many := slices.Repeat([]string{`{"type":"boolean"}`}, 96)
	for name, c := range map[string]struct {
		schema string
		fits   bool
	}{
		"95 fields":         {object(many[:95]...), true},
		"96 fields":         {object(many...), false},
		"100 options":       {object(options(100, "o")), true},
		"101 options":       {object(options(101, "o")), false},
		"11 boxes":          {object(`{"type":"array","items":` + options(11, "o") + `}`), true},
		"a long option":     {object(options(2, strings.Repeat("o", 76))), false},
		"long help":         {object(`{"type":"string","description":"` + strings.Repeat("h", 2000) + `"}`), false},
		"a long text":       {object(`{"type":"string","minLength":3001}`), false},
		"a long default":    {object(`{"type":"string","default":"` + strings.Repeat("d", 3001) + `"}`), false},
		"an exponent":       {object(`{"type":"number","maximum":1e99}`), false},
		"a written-out 1":   {object(`{"type":"integer","default":1.0}`), false},
		"many long options": {object(slices.Repeat([]string{options(100, strings.Repeat("o", 70))}, 10)...), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.asksForm(c.schema, &resolve.Call{})
			p := w.only()
			_, there := p.button(answers)
			if there != c.fits {
				t.Fatalf("the button is there: %v\n%s", there, texts(p.blocks))
			}
			if c.fits {
				w.click(p, answers, "U0RITA")
				w.opened()

				return
			}

			p.shows(t, "It asks for more than Slack can hold: answer it in the inbox.", "/requests/"+r.ID)
			w.send(w.payload(p, answers, r.ID+" 0 "+strings.TrimPrefix(r.Binding(), "sha256:")[:16], "U0RITA"))
			w.hears("not shown fully")
		})
	}
}

// TestFormsStayOutOfChannels checks that forms are not shown if arguments are not, or if a
// policy hides values.
func TestFormsStayOutOfChannels(t *testing.T) {
	for name, c := range map[string]struct {
		call   *resolve.Call
		change func(*slack.Config)
	}{
		"no arguments": {&resolve.Call{}, func(c *slack.Config) { c.Arguments = false }},
		"hidden values": {
			&resolve.Call{Kind: resolve.Tool, Tool: "pay", Args: []byte(`{"card":"4111"}`)},
			func(*slack.Config) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.change)
			w.asksForm(flight, c.call)
			p := w.only()
			lacks(t, texts(p.blocks), "Who flies", "Passenger", "secret", "[Answer…]", "4111")
			p.shows(t, "in the inbox")
		})
	}
}

// TestWhatTheRetentionTook checks that a message that is rewritten after the texts were pruned
// says so, and doesn't show an empty choice or empty arguments. The name of the person who
// answered is kept.
func TestWhatTheRetentionTook(t *testing.T) {
	signer, _, err := ledger.GenerateKey("test", rand.Reader)
	must.Do(t, err)
	for name, c := range map[string]struct {
		ask   func(*world) *approval.Request
		says  []string
		lacks []string
	}{
		"a form": {
			func(w *world) *approval.Request {
				r := w.asksForm(`{"type":"string"}`, &resolve.Call{})
				w.click(w.only(), answers, "U0RITA")
				w.fills("U0RITA", map[string]values{"field_0": {"value": "secret words"}})

				return r
			},
			[]string{"What was asked and what was answered is no longer kept.", "Answered by rita@acme.example"},
			[]string{"hoice", "secret", "Who flies", "says", "is in the inbox"},
		},
		"a choice": {
			func(w *world) *approval.Request {
				r := w.asksRita(yesOrNo())
				w.click(w.only(), choice(1), "U0RITA")

				return r
			},
			[]string{"What was asked and what was answered is no longer kept.", "Picked [1] by rita@acme.example"},
			[]string{"hoices", "(empty)", "Yes once", "says"},
		},
		"a call": {
			func(w *world) *approval.Request {
				r := w.ask("trade", `{"what":"gold"}`)
				w.deliver()
				w.click(w.only(), approve, "U0ALICE")
				if _, err := w.service.Cancel(t.Context(), tenant, r.ID, "ci", ""); err != nil {
					t.Fatal(err)
				}

				return r
			},
			[]string{"What the call carried is no longer kept.", "Expired by ci"},
			[]string{"gold", "Arguments", "approved there"},
		},
	} {
		w := newWorld(t)
		r := c.ask(w)
		w.deliver()
		if _, err := w.store.Seal(t.Context(), 1000, signer.Sign); err != nil {
			t.Fatal(err)
		}
		if n, _, err := w.store.Prune(t.Context(), tenant, w.clock().Add(time.Hour)); err != nil || n != 1 {
			t.Fatalf("%s: %d, %v", name, n, err)
		}
		must.Do(t, w.app.Send(t.Context(), w.job(r, 2)))
		w.answeredMessage(c.says...)
		lacks(t, texts(w.only().blocks), c.lacks...)
	}
}
