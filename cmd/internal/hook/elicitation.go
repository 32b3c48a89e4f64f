package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/form"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/resolve"
)

// elicitation is the name of Claude Code's event for an MCP server that asks the user. The agent
// file declares a tool of this name to allow such questions.
const elicitation = "Elicitation"

// These are the actions in an answer to an MCP server. Decline means that a person refused; cancel
// means that no person decided.
const (
	accept  = "accept"
	decline = "decline"
	cancel  = "cancel"
)

// readElicitation reads a question of an MCP server. It becomes a call of a tool of its own, so
// that rules can match the server and the question in its arguments.
func readElicitation(in jsonmsg.Fields, e *event) {
	e.call.Kind, e.call.Tool = resolve.Tool, elicitation
	in.NonEmpty("mcp_server_name")
	in.NonEmpty("message")
	args, err := jsonmsg.Object(func(w *jsonmsg.Writer) {
		for _, name := range []string{"mcp_server_name", "message", "mode", "url", "requested_schema"} {
			if in.Has(name) {
				w.Name(name).Verbatim(in.Raw(name))
			}
		}
	})
	if err != nil {
		in.Fail(err)
	}
	e.call.Args = args
}

// asked is the form that an MCP server sent.
type asked struct {
	server, message string
	schema          json.RawMessage
	form            *form.Form
}

// readAsked reads the form from the arguments of the call. It returns an error if people can't be
// shown the form.
func readAsked(args []byte) (a asked, err error) {
	in := jsonmsg.Read(args, jsonmsg.Limits())
	a = asked{server: in.Text("mcp_server_name"), message: in.Text("message"), schema: in.Raw("requested_schema")}
	mode := in.Text("mode")
	switch {
	case in.Err() != nil:
		return a, in.Err()
	case mode == "url":
		return a, errors.New("it wants its user to open a link, and people are asked for forms alone")
	case mode != "form" && mode != "":
		return a, fmt.Errorf("the mode %q: expected form", mode)
	case a.schema == nil:
		return a, errors.New("it has no requested_schema: expected the schema of a form")
	}

	a.form, err = form.Parse(a.schema)
	if err == nil && a.form.FreeText() {
		err = errors.New("requested_schema: expected an object, whose properties are what is asked")
	}

	return a, err
}

// elicit asks people to fill in the form of an MCP server. It always creates a new request: two
// forms with the same text are two questions.
func (r *run) elicit(ctx context.Context) (verdict, error) {
	a, err := readAsked(r.event.call.Args)
	if err != nil {
		return unansweredFor("What the MCP server asks can't be put to people: " + reason(err)), nil
	}
	o, err := r.desk.Ask(ctx, approval.NewKey(), hold.Question{
		Call:    &r.event.call,
		Server:  a.server,
		Prompt:  a.message,
		Schema:  a.schema,
		Context: r.says(),
		// No one reads a later answer. The limit also holds if the hook is killed.
		Within: max(r.wait, time.Second),
	})
	switch {
	case err != nil:
		return verdict{}, fmt.Errorf("put the question: %w", err)
	case r.native && undeclared(o):
		return verdict{outcome: silent}, nil
	case o.Outcome == resolve.Deny || o.Request == nil:
		return denies((&client.NotRunError{Opened: o}).Error()), nil
	}

	ended, err := r.decided(ctx, o.Request)
	switch {
	case err != nil:
		return verdict{}, err
	case ended.State == approval.Pending:
		return r.takeBack(ctx, ended.ID)
	}

	return r.elicited(ctx, a.form, ended.ID)
}

func unansweredFor(why string) verdict {
	return verdict{outcome: unanswered, why: "Not answered. " + why}
}

// takeBack cancels a question that was not answered in time.
func (r *run) takeBack(ctx context.Context, id string) (verdict, error) {
	err := r.desk.Cancel(ctx, id, r.event.product.title+" no longer waits for the answer")
	if err != nil && !errors.Is(err, approval.ErrClosed) { // its own deadline ends it at the same moment
		return verdict{}, fmt.Errorf("take back the question: %w", err)
	}

	return unansweredFor("Nobody answered the question (" + id + ") in " + r.wait.String() + ". That is no refusal: " +
		"ask again when somebody is there."), nil
}

// elicited returns the answer of people. It validates the answer against the form again.
func (r *run) elicited(ctx context.Context, asked *form.Form, id string) (verdict, error) {
	ended, err := r.desk.Answer(ctx, id)
	switch {
	case errors.Is(err, approval.ErrNotApproved):
		return unansweredFor("The question is " + string(ended.State) + ", and nobody has answered it."), nil
	case err != nil:
		return verdict{}, fmt.Errorf("read the answer: %w", err)
	case ended.Cause != approval.BySubmission:
		return denies("Not answered. A person dismissed the question. Do not ask it again."), nil
	}

	content, err := asked.Check(ended.Data)
	if err != nil {
		return verdict{}, fmt.Errorf("the answer does not fit what was asked: %w", err)
	}

	return allows(content), nil
}

// sayElicitation writes the answer to an MCP server.
func sayElicitation(w *jsonmsg.Writer, v verdict) {
	w.Optional("reason", v.why)
	w.Name("hookSpecificOutput").Object(func(w *jsonmsg.Writer) {
		w.Member("hookEventName", elicitation)
		switch v.outcome {
		case allowed:
			w.Member("action", accept)
			w.Name("content").Verbatim(v.args)
		case unanswered:
			w.Member("action", cancel)
		default:
			w.Member("action", decline)
		}
	})
}
