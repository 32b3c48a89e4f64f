package raptools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/rap/runtime"
)

const (
	signInID = "sign_in" // id of the sign-in request; references of questions begin differently
	dismiss  = "dismiss" // the choice that selects the tool's default
)

// requests returns the requests that the loop shows while a call waits. There are none if the
// call doesn't wait for a person.
func (t *tool) requests(ctx context.Context, c runtime.Call) ([]content.InputRequest, error) {
	var out []content.InputRequest
	if c.Question != "" {
		q, err := t.question(ctx, c)
		if err != nil {
			return nil, err
		}
		if q != nil {
			out = append(out, q)
		}
	}

	if link, ok := t.signIn(c); ok {
		out = append(out, link)
	}

	return out, nil
}

func (t *tool) question(ctx context.Context, c runtime.Call) (content.InputRequest, error) {
	if t.cfg.User == nil {
		return &content.TextApprovalRequest{
			RequestID: c.Question,
			Text: fmt.Sprintf(
				"People are asked about the call %s of the tool server %s.",
				c.Operation,
				c.Server,
			),
			Note: content.Note{Where: t.cfg.Inbox, Agent: c.Server},
		}, nil
	}

	q, err := t.cfg.User.read(ctx, c.Question)
	switch {
	// the runtime continues with the answer
	case errors.Is(err, hold.ErrNoRequest), err == nil && q.State != hold.Pending:
		return nil, nil
	case err != nil:
		return nil, err
	case q.Binding != "":
		return &content.ToolApprovalRequest{
			RequestID: c.Question,
			Call:      &content.FunctionCall{CallID: c.ID, Name: q.Tool, Arguments: q.Arguments},
			Note:      content.Note{Message: q.Prompt, Agent: c.Server},
		}, nil
	}

	return choice(c, q)
}

// choice asks for one of the labels by number, since labels may be empty or equal.
func choice(c runtime.Call, q *asked) (content.InputRequest, error) {
	type option struct {
		Const string `json:"const"`
		Title string `json:"title"`
	}
	var options []option
	for i, label := range q.Choices {
		options = append(options, option{strconv.Itoa(i), cmp.Or(label, "(empty)")})
	}
	picks := cmp.Or(q.Choices[q.Default], "(empty)")
	options = append(options, option{dismiss, "Dismiss the question, which picks: " + picks})
	schema, err := json.Marshal(map[string]any{
		"type":                 "object",
		"required":             []string{"choice"},
		"additionalProperties": false,
		"properties":           map[string]any{"choice": map[string]any{"type": "string", "oneOf": options}},
	})
	if err != nil {
		return nil, err
	}

	return &content.StructuredInputRequest{
		RequestID: c.Question,
		Text:      asks(c, q),
		Schema:    schema,
		Note:      content.Note{Agent: c.Server},
	}, nil
}

// asks returns the text of a question. The part that is known comes first, followed by the
// tool's own text.
func asks(c runtime.Call, q *asked) string {
	text := fmt.Sprintf("The tool server %s asks about %s %s:\n", c.Server, q.Tool, diag.Printable(string(q.Arguments)))
	for line := range strings.Lines(q.Prompt) {
		text += "> " + line
	}

	return text
}

// signIn returns a request to sign in if the tool needs it. It is only shown to the user of the
// loop, not to people elsewhere.
func (t *tool) signIn(c runtime.Call) (content.InputRequest, bool) {
	if t.cfg.User == nil || c.SignInHost == "" {
		return nil, false
	}

	return &content.TextApprovalRequest{
		RequestID: signInID,
		Text: fmt.Sprintf("The tool server %s wants you to sign in at %s. Agree once you have: %s",
			c.Server, c.SignInHost, c.SignIn),
		Note: content.Note{Agent: c.Server},
	}, true
}

// answer applies an answer. It returns a refusal if the answer can't be applied.
func (t *tool) answer(ctx context.Context, w waiting, answer content.InputResponse) (*agent.Refusal, error) {
	id := answer.InputResponseTo()
	switch {
	case id == signInID:
		if content.Rejects(answer) {
			err := t.cfg.Threads.Cancel(ctx, t.cfg.Thread, w.ID, "the user did not sign in")
			if !errors.Is(err, runtime.ErrDone) {
				return nil, err
			}
		}

		return nil, nil
	case t.cfg.User == nil:
		return &agent.Refusal{RequestID: id, Reason: agent.HeldElsewhere, Detail: "people elsewhere are asked"}, nil
	}

	err := t.cfg.User.settle(ctx, w.Question, func(q *asked) error { return q.take(answer, t.cfg.For) })
	var wrong *agent.Refusal
	switch refused := (*refusal)(nil); {
	case errors.As(err, &refused):
		wrong = &agent.Refusal{RequestID: id, Reason: refused.reason, Detail: refused.detail}
		return wrong, nil
	case errors.Is(err, hold.ErrNoRequest):
		return &agent.Refusal{RequestID: id, Reason: agent.ClosedRequest, Detail: "the question has ended"}, nil
	}

	return nil, err
}

// refusal is the reason why an answer is not applied.
type refusal struct {
	reason agent.RefusalReason
	detail string
}

func (r *refusal) Error() string { return r.detail }

// take stores an answer in the question. Declining withdraws the call. Only the choice to
// dismiss selects the tool's default.
func (q *asked) take(answer content.InputResponse, by string) error {
	if q.State != hold.Pending {
		return &refusal{agent.ClosedRequest, "the question has ended"}
	}
	switch a := answer.(type) {
	case *content.ToolApprovalResponse:
		return q.takeApproval(a, by)
	case *content.StructuredInputResponse:
		return q.takeChoice(a, by)
	}

	return &refusal{agent.WrongKind, "the answer is of another kind than the question"}
}

func (q *asked) takeApproval(a *content.ToolApprovalResponse, by string) error {
	switch {
	case q.Binding == "":
		return &refusal{agent.WrongKind, "the answer is of another kind than the question"}
	case a.Edited != nil:
		return &refusal{agent.BadAnswer, "the arguments of a tool server's call can't be changed here"}
	}

	q.State = hold.Denied
	q.By = by
	q.Reason = a.Reason
	if a.Approved {
		q.State = hold.Approved
	}

	return nil
}

func (q *asked) takeChoice(a *content.StructuredInputResponse, by string) error {
	if q.Binding != "" {
		return &refusal{agent.WrongKind, "the answer is of another kind than the question"}
	}
	if a.Declined {
		q.State, q.Reason = hold.Cancelled, cmp.Or(a.Reason, "the user gave no answer")
		return nil
	}
	var data struct{ Choice string }
	if err := json.Unmarshal(a.Data, &data); err != nil {
		return &refusal{agent.BadAnswer, "expected an object with choice"}
	}
	if data.Choice == dismiss {
		q.State = hold.Dismissed
		q.Selected = q.Default
		q.By = by
		return nil
	}

	n, err := strconv.Atoi(data.Choice)
	if err != nil || n < 0 || n >= len(q.Choices) {
		return &refusal{agent.BadAnswer, "expected the number of a choice, or dismiss"}
	}
	q.State = hold.Chosen
	q.Selected = n
	q.By = by

	return nil
}
