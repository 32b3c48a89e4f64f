package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/resolve"
)

// asksUser reports whether the call is the agent's question to its user. People answer it here
// instead of in a dialog.
func (r *run) asksUser() bool {
	e := r.event
	return e.product.asks != "" && e.call.Kind == resolve.Tool && e.call.Tool == e.product.asks
}

// ask sends the questions of the call to people. The call then runs with their answers in its
// arguments.
func (r *run) ask(ctx context.Context, key string) (v verdict, over bool, err error) {
	all, err := readQuestions(r.event.call.Args)
	if err != nil {
		return v, false, err
	}
	schema, err := all.schema()
	if err != nil {
		return v, false, err
	}
	o, err := r.desk.Ask(ctx, key, hold.Question{
		Call:   &r.event.call,
		Server: r.event.product.name,
		Prompt: "The agent asks before it goes on.",
		Schema: schema,
	})
	switch {
	case err != nil:
		return v, false, fmt.Errorf("put the question: %w", err)
	case o.Outcome == resolve.Deny || o.Request == nil:
		return denies((&client.NotRunError{Opened: o}).Error()), false, nil
	}

	ended, err := r.decided(ctx, o.Request)
	switch {
	case err != nil:
		return v, false, err
	case ended.State == approval.Pending:
		return r.stillAsked(ended), false, nil
	}

	return r.answered(ctx, all, ended.ID)
}

// answered returns the verdict for the call, with the answers of people in its arguments.
func (r *run) answered(ctx context.Context, all questions, id string) (v verdict, over bool, err error) {
	ended, err := r.desk.Answer(ctx, id)
	switch {
	case errors.Is(err, approval.ErrNotApproved):
		return denies("Not answered. The question is " + string(ended.State) + ". Nobody has answered it."), false, nil
	case err != nil:
		return v, false, fmt.Errorf("read the answer: %w", err)
	case ended.Cause != approval.BySubmission:
		return denies("Not answered. A person dismissed the question. Do not ask it again."), false, nil
	}

	answers, err := all.answers(ended.Data)
	if err != nil {
		return v, false, err
	}
	_, rest := jsonmsg.Take(r.event.call.Args, "answers")

	return allows(jsonmsg.Put(rest, "answers", answers)), false, nil
}

// questions are the questions of one call.
type questions []question

type question struct {
	text    string
	header  string
	options []string
	titles  []string
	several bool
}

func readQuestions(args []byte) (questions, error) {
	in := jsonmsg.Read(args, jsonmsg.Limits())
	var out questions
	for _, q := range in.Objects("questions") {
		one := question{text: q.NonEmpty("question"), header: q.Text("header")}
		if several := q.Bool("multiSelect"); several != nil {
			one.several = *several
		}
		for _, option := range q.Objects("options") {
			label, about := option.NonEmpty("label"), option.Text("description")
			one.options = append(one.options, label)
			one.titles = append(one.titles, strings.TrimSuffix(label+": "+about, ": "))
		}
		out = append(out, one)
	}

	switch {
	case in.Err() != nil:
		return nil, fmt.Errorf("the question can't be read: %w", in.Err())
	case len(out) == 0:
		return nil, errors.New("the question can't be read: it asks nothing")
	}

	return out, nil
}

func field(i int) string { return "question_" + strconv.Itoa(i+1) }

// schema returns the JSON Schema of the form. A question is a choice of one option, a choice of
// several, or a text if it has no options.
func (all questions) schema() ([]byte, error) {
	return jsonmsg.Object(func(w *jsonmsg.Writer) {
		w.Member("type", "object")
		w.Name("properties").Object(func(w *jsonmsg.Writer) {
			for i, q := range all {
				w.Name(field(i)).Object(q.schema)
			}
		})
		w.Name("required").List(len(all), func(w *jsonmsg.Writer, i int) { w.String(field(i)) })
	})
}

func (q question) schema(w *jsonmsg.Writer) {
	w.Member("title", q.text)
	w.Optional("description", q.header)
	switch {
	case len(q.options) == 0:
		w.Member("type", "string")
		w.Name("minLength").Int(1)
	case q.several:
		w.Member("type", "array")
		w.Name("minItems").Int(1)
		w.Name("items").Object(func(w *jsonmsg.Writer) { q.picks(w, "anyOf") })
	default:
		w.Member("type", "string")
		q.picks(w, "oneOf")
	}
}

func (q question) picks(w *jsonmsg.Writer, name string) {
	w.Name(name).List(len(q.options), func(w *jsonmsg.Writer, i int) {
		w.Object(func(w *jsonmsg.Writer) {
			w.Member("const", q.options[i])
			w.Member("title", q.titles[i])
		})
	})
}

// answers returns the answers by the text of their question. Several selected options become one
// text, separated by commas.
func (all questions) answers(data json.RawMessage) ([]byte, error) {
	given := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &given); err != nil {
		return nil, fmt.Errorf("the answer can't be read: %w", err)
	}
	out := map[string]string{}
	for i, q := range all {
		text, err := q.answer(given[field(i)])
		if err != nil {
			return nil, err
		}
		out[q.text] = text
	}

	return jsonmsg.Marshal(out)
}

func (q question) answer(raw json.RawMessage) (string, error) {
	if q.several {
		var picks []string
		err := json.Unmarshal(raw, &picks)

		return strings.Join(picks, ", "), err
	}

	var text string
	err := json.Unmarshal(raw, &text)

	return text, err
}
