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

// Question is what a tool or an agent asks before it continues: a choice (as in RAP), or a text or
// form (as in MCP elicitation and an agent's own input requests). Prompt, Choices and the texts in
// Schema are written by the asker. Every channel shows our own facts about the call first and
// quotes these texts below them.
type Question struct {
	Asker  string `json:"asker"` // registered name of the tool server, or name of the agent
	Prompt string `json:"prompt"`
	// Choices are in the asker's order. An answer is an index, so labels may be equal or empty.
	Choices []string `json:"choices,omitempty"`
	Default int      `json:"default"` // index that a dismissal picks
	// Schema describes a text or a form (package form) and is set instead of Choices. Dismissing
	// such a question gives no answer.
	Schema json.RawMessage `json:"schema,omitempty"`
	// Groups may answer; one person of any of them is enough. As for approvals, the requester, the
	// principal and the agent's owners may not answer. If there are no groups, the protocol asks the
	// user: the principal, or any approver if the call has no principal.
	Groups []string `json:"groups,omitempty"`
}

// AskInput is the input of Ask.
type AskInput struct {
	Tenant string
	Agent  string
	Asker  Asker  // the token that asks; an empty principal is replaced by the call's
	Key    string // the asker's key; the same key is the same question, at least until it has ended; required
	// Call is the call during which the question is asked. If it has no kind, the agent asks by
	// itself, for its principal and in its session.
	Call     *resolve.Call
	Question Question
	Context  []info.Item   // what the agent adds to the question
	Within   time.Duration // time until it expires, at most a year; 0 means Config.Within
}

// The limits of a question.
const (
	mostChoices     = 10_000
	mostPrompt      = 64 << 10  // bytes
	mostLabel       = 4 << 10   // bytes
	mostQuestion    = 256 << 10 // bytes of the prompt and all labels
	mostGroups      = 50
	longestQuestion = 8760 * time.Hour
)

// questionPrefix is the prefix of the ids of questions. It distinguishes questions from approvals
// when only the id is known.
const questionPrefix = "qst_"

// QuestionID reports whether an id belongs to a question.
func QuestionID(id string) bool { return strings.HasPrefix(id, questionPrefix) }

// FromTool and CodeQuestion are the reason for asking people a question: the tool needs a choice
// before it continues.
const (
	FromTool     resolve.Source = "tool"
	CodeQuestion resolve.Code   = "question"
)

// Ask creates a request for a question. It doesn't decide whether the call may run; that was
// decided before. It refuses the question only if the rules now deny the call or a freeze stops the
// agent (Opened.Denied is "policy" or "frozen"). Questions are not coalesced and not answered by
// standing approvals or cool-downs, because the protocol forbids answering one question with the
// answer to another.
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
	if in.Call.Kind == "" { // there is no call for the rules to decide
		o.d = resolve.Decision{Outcome: resolve.Ask}
	} else if o.past || o.d.Outcome != resolve.Deny {
		if o.binding, err = c.Plan.Bind(in.Call); err != nil {
			return nil, fmt.Errorf("bind the call: %w", err)
		}
	}

	if o.past || o.d.Outcome != resolve.Deny {
		if o.owners, err = s.owners(ctx, in.Tenant, c); err != nil {
			return nil, err
		}
		if err := s.knownAsker(ctx, open); err != nil {
			return nil, err
		}
	}

	return o.commit(ctx, o.put)
}

// check validates the question and the fields that it shares with OpenInput.
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

// checkGroups returns an error if a group has no valid name. The group of all approvers has an
// empty name and is not accepted: a question without groups asks the user.
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

// put creates the request, unless the key is known, the rules deny the call or a freeze stops the
// agent.
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

// binding returns the digest of the question and its call, so that an answer is bound to exactly
// what was shown. It contains the request's id, so that it never fits another question, even one
// with the same text.
func (q *Question) binding(id, key, call string) string {
	return "sha256:" + digestOf(append([]string{"question", id, key, call}, q.parts()...)...)
}

// why describes the question in our own words.
func (q *Question) why() string {
	if q.takesData() {
		return "input is asked for before it goes on"
	}
	return "the tool asks for a choice before it goes on"
}

// parts returns the texts that identify the question, in a fixed order.
func (q *Question) parts() []string {
	out := []string{q.Asker, q.Prompt, fmt.Sprint(q.Default), fmt.Sprint(len(q.Choices))}
	if q.takesData() { // only added for forms, so that digests of choices stay the same
		out = append(out, "schema", string(q.Schema))
	}
	return slices.Concat(out, q.Choices, q.Groups)
}

// Answer returns an answered question to the runtime that asked it, which may act on it now. It
// returns ErrNotFound if this runtime asked no such question, ErrPending if it has no answer yet,
// ErrNotApproved if it ended without an answer, and ErrFrozen if it has an answer that is withheld
// while the agent is frozen. With ErrPending and ErrNotApproved it also returns the request.
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

	// read after the request, so that a freeze that existed before this call is seen
	freezes, err := s.store.Freezes(ctx, tenant)
	if err != nil {
		return nil, fmt.Errorf("read the freezes: %w", err)
	}
	if slices.ContainsFunc(freezes, stops(r.Agent.ID)) {
		return nil, ErrFrozen
	}
	return r, nil
}
