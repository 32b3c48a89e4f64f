package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval/form"
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/resolve"
)

// Question is what a tool or an agent asks somebody before it goes on:
// a choice, as RAP has it, or a text or form, as MCP's elicitation and
// an agent's own input requests have it. Prompt, Choices and the words
// of Schema are the asker's own; every channel shows what we know of
// the call first, and these as a quotation.
type Question struct {
	Asker  string `json:"asker"` // who asks: the name under which the tool server is registered with us, or the agent's
	Prompt string `json:"prompt"`
	// in the asker's order; an answer is an index, also where labels are
	// equal or empty
	Choices []string `json:"choices,omitempty"`
	Default int      `json:"default"` // index of what a dismissal picks
	// Schema is what a text or form is asked by (package form), instead
	// of choices. Dismissing it gives no answer.
	Schema json.RawMessage `json:"schema,omitempty"`
	// Groups may answer: one person of any of them is enough. The bars
	// that approvals have hold: not the requester, not the person whom
	// the agent acts for, not an owner. Without groups it is the user
	// who is asked, as the protocol has it: the person whom the agent
	// acts for, or any approver when nobody is named.
	Groups []string `json:"groups,omitempty"`
}

// AskInput puts a question to people.
type AskInput struct {
	Tenant string
	Agent  string
	Asker  Asker  // the token that puts the question; an empty principal stands for the call's
	Key    string // the asker's own: the same key is the same question, at least until it has ended; required
	// Call is the call during which it is asked. One without a kind says
	// that the agent asks by itself, for its principal and in its
	// session.
	Call     *resolve.Call
	Question Question
	Context  []info.Item   // what the agent says about it
	Within   time.Duration // until it expires; Config.Within when 0; at most a year
}

// The bounds of a question.
const (
	mostChoices     = 10_000
	mostPrompt      = 64 << 10  // bytes
	mostLabel       = 4 << 10   // bytes
	mostQuestion    = 256 << 10 // bytes of the prompt and all labels
	mostGroups      = 50
	longestQuestion = 8760 * time.Hour
)

// questionPrefix begins the ids of questions: they are told from
// approvals wherever an id is all that is known.
const questionPrefix = "qst_"

// QuestionID reports whether an id is one of a question's request.
func QuestionID(id string) bool { return strings.HasPrefix(id, questionPrefix) }

// FromTool and CodeQuestion are the reason why a question is put to
// people: the tool wants a choice before it goes on.
const (
	FromTool     resolve.Source = "tool"
	CodeQuestion resolve.Code   = "question"
)

// Ask makes a request of a question. It doesn't decide whether the call
// may run: that was decided before. It is refused only where the rules
// deny the call now or a freeze stops the agent (Opened.Denied
// "policy", "frozen"). Questions are not coalesced, no standing
// approval and no cool-down answers them: the protocol forbids
// answering one question by the answer to another.
func (s *Service) Ask(ctx context.Context, in AskInput) (*Opened, error) {
	open := OpenInput{
		Tenant:  in.Tenant,
		Asker:   in.Asker,
		Agent:   in.Agent,
		Call:    in.Call,
		Key:     in.Key,
		Context: in.Context,
		Within:  in.Within,
	}
	if err := in.check(&open); err != nil {
		return nil, err
	}
	o, err := s.opening(ctx, open)
	if err != nil {
		return nil, err
	}
	c, q := o.c, in.Question
	q.Choices, q.Groups = slices.Clone(q.Choices), distinctTexts(q.Groups)
	o.question = &q
	if in.Call.Kind == "" { // there is no call that the rules could judge
		o.d = resolve.Decision{Outcome: resolve.Ask}
	} else if o.d.Outcome != resolve.Deny {
		if o.binding, err = c.Plan.Bind(in.Call); err != nil {
			return nil, fmt.Errorf("bind the call: %w", err)
		}
	}

	if o.d.Outcome != resolve.Deny {
		if o.owners, err = s.owners(ctx, in.Tenant, c); err != nil {
			return nil, err
		}
		if err := s.knownAsker(ctx, open); err != nil {
			return nil, err
		}
	}

	return o.commit(ctx, o.put)
}

// check looks at a question, and at what it has in common with a call
// that wants to run.
func (in *AskInput) check(open *OpenInput) error {
	switch {
	case in.Key == "":
		return &InputError{"key", "a text of this question's own"}
	case in.Within < 0 || in.Within > longestQuestion:
		return &InputError{"within", "at most " + longestQuestion.String()}
	}

	return errors.Join(open.check(), in.Question.check())
}

func (q *Question) check() error {
	switch {
	case q.Asker == "":
		return &InputError{"question.asker", "the name of the tool server that asks"}
	case q.takesData() && (len(q.Choices) > 0 || q.Default != 0):
		return &InputError{"question.schema", "either choices with a default, or a schema"}
	case len(q.Groups) > mostGroups:
		return &InputError{"question.groups", fmt.Sprintf("at most %d", mostGroups)}
	case q.takesData():
	case len(q.Choices) == 0 || len(q.Choices) > mostChoices:
		return &InputError{"question.choices", fmt.Sprintf("1 to %d labels", mostChoices)}
	case q.Default < 0 || q.Default >= len(q.Choices):
		return &InputError{
			"question.default",
			fmt.Sprintf("the index of a choice, 0 to %d", len(q.Choices)-1),
		}
	}

	if err := errors.Join(
		checkName("question.asker", q.Asker),
		checkText("question.prompt", q.Prompt, mostPrompt),
	); err != nil {
		return err
	}

	size := len(q.Prompt)
	for i, label := range q.Choices {
		if err := checkText(fmt.Sprintf("question.choices[%d]", i), label, mostLabel); err != nil {
			return err
		}
		size += len(label)
	}

	if q.takesData() {
		if _, err := form.Parse(q.Schema); err != nil {
			return &InputError{"question.schema", "a flat JSON Schema: " + err.Error()}
		}
	}
	if size > mostQuestion {
		return &InputError{
			"question",
			fmt.Sprintf("a prompt and labels of at most %d bytes together", mostQuestion),
		}
	}

	return q.checkGroups()
}

// checkGroups wants names. The group of every approver has none: asking
// nobody in particular asks the user.
func (q *Question) checkGroups() error {
	for i, g := range q.Groups {
		field := fmt.Sprintf("question.groups[%d]", i)
		if g == "" {
			return &InputError{field, "the name of a group"}
		}
		if err := checkName(field, g); err != nil {
			return err
		}
	}

	return nil
}

// put makes the request, unless it is there, the rules deny the call or
// a freeze stops the agent.
func (o *opening) put(tx Tx) error {
	if stopped, err := o.stopped(tx); stopped || err != nil {
		return err
	}
	if done, err := o.remembered(tx); done || err != nil {
		return err
	}
	if o.d.Outcome == resolve.Deny {
		return o.deny(tx, "policy")
	}
	r, err := o.request(questionPrefix)
	if err != nil {
		return err
	}
	r.Question = o.question
	r.Within = o.in.Within
	r.Redact = require(&o.d).Arguments.Redact
	bound := o.question.binding(r.ID, o.in.Key, o.binding)
	r.Revisions = []Revision{{
		Call:    o.call,
		Binding: bound,
		Plan:    o.c.Plan.Version(),
		At:      o.now,
		Decision: resolve.Decision{
			Outcome: resolve.Ask,
			Binding: bound,
			Reasons: []resolve.Reason{{
				Source: FromTool,
				Code:   CodeQuestion,
				Detail: o.question.why(),
			}},
		},
	}}
	o.out.Decision = r.Current().Decision
	o.out.Binding = bound
	events := r.ask(o.now, o.s.cfg)
	return o.asks(tx, r, Memory{Expires: r.Deadline}, events)
}

// binding is the digest of what is asked, about which call: an answer
// is bound to exactly what was shown. It is this question's alone, so
// that no answer fits another one, however alike.
func (q *Question) binding(id, key, call string) string {
	return "sha256:" + digestOf(append([]string{"question", id, key, call}, q.parts()...)...)
}

// why says in our words what is asked.
func (q *Question) why() string {
	if q.takesData() {
		return "input is asked for before it goes on"
	}
	return "the tool asks for a choice before it goes on"
}

// parts are what makes a question, in order.
func (q *Question) parts() []string {
	out := []string{q.Asker, q.Prompt, fmt.Sprint(q.Default), fmt.Sprint(len(q.Choices))}
	if q.takesData() { // a choice's parts are what they always were
		out = append(out, "schema", string(q.Schema))
	}
	return slices.Concat(out, q.Choices, q.Groups)
}

// Answer returns an answered question to the runtime that asked it,
// which may act on it now. ErrNotFound: this runtime asked no such
// question. ErrPending: nobody has answered. ErrNotApproved: it ended
// without an answer; the request, which comes with these two, says how.
// ErrFrozen: there is an answer, which is held back while the agent is
// frozen.
func (s *Service) Answer(ctx context.Context, tenant, id string, who Asker) (*Request, error) {
	r, err := s.Request(ctx, tenant, id)
	switch {
	case err != nil:
		return nil, err
	case r.Question == nil || !r.AskedBy(who):
		return nil, ErrNotFound
	case r.State == Pending:
		return r, ErrPending
	case r.State != Answered:
		return r, ErrNotApproved
	}

	// after the request: a freeze that was there before this call is seen
	freezes, err := s.store.Freezes(ctx, tenant)
	if err != nil {
		return nil, fmt.Errorf("read the freezes: %w", err)
	}
	if slices.ContainsFunc(freezes, stops(r.Agent.ID)) {
		return nil, ErrFrozen
	}
	return r, nil
}
