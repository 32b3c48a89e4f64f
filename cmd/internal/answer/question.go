package answer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/form"
	"github.com/assent-dev/assent/cmd/internal/remote"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/template"
)

// question prints a question of a tool or an agent: first the verified facts, then the agent's text
// about it and the asker's own text, each with bars.
func (s *view) question(r *approval.Request) {
	q, rev := r.Question, r.Current()
	s.Printf(
		"%s  %s  %s\n",
		term.Bold.Of(r.ID),
		s.state(r.State, r.Cause),
		strings.Replace(s.timing(r), "decided", "answered", 1),
	)
	asker := s.asking(r)
	s.asker(r)
	s.says(r)
	s.Printf("\nThe %s says, in words of its own that nobody checked:\n", asker)
	s.repeats(r)
	s.text("  | ", q.Prompt, template.Escape)
	switch f := q.Form(); {
	case f != nil:
		s.form(r, f)
	case kept(q):
		s.choices(r)
	default:
		s.Printf("\nWhat it asked for is no longer kept.\n")
	}

	s.Printf("\nMay answer\n  %s\n", answerers(r))
	for i := range r.Votes {
		s.vote(r, &r.Votes[i])
	}
	s.answered(r)
	s.Printf("\nBinding  %s (version %d)\n", rev.Binding, r.Version)
}

// kept reports whether the content of a question still exists: retention removes the schema of a
// form.
func kept(q *approval.Question) bool { return len(q.Choices) > 0 || len(q.Schema) > 0 }

// asking prints who asks, and the call during which the question was asked, if there is one. It
// returns a name for the asker.
func (s *view) asking(r *approval.Request) term.Ready {
	q, call := r.Question, &r.Current().Call
	if call.Kind == "" {
		s.Printf("Agent %s asks by itself, outside any call\n", term.Bold.Of(agentName(r.Agent)))
		if kept(q) {
			s.Printf("%s\n", q.Words())
		}

		return "agent"
	}

	s.Printf(
		"Tool server %s asks before it goes on with %s of %s\n\n",
		term.Bold.Of(q.Asker),
		term.Bold.Of(call.Target()),
		term.Bold.Of(agentName(r.Agent)),
	)
	s.call(r)

	return "tool"
}

// choices prints all labels in full and in the tool's order, each on one line. The number
// identifies the choice, because labels may be empty or equal. Our marks come before the number,
// where no label can imitate them.
func (s *view) choices(r *approval.Request) {
	s.Printf("\nIts choices; [%d] is the default, picked when you dismiss:\n", r.Question.Default)
	for i, label := range r.Question.Choices {
		mark := "  "
		if i == r.Question.Default {
			mark = "* "
		}
		if r.Chosen != nil && *r.Chosen == i {
			mark = "> "
		}
		s.Printf("%s[%d] %s", term.Yellow.Of(mark), i, label)
		switch {
		case r.Pruned():
			s.Printf("%s", term.Dim.Of("(no longer kept)"))
		case label == "":
			s.Printf("%s", term.Dim.Of("(empty)"))
		case strings.TrimSpace(label) == "":
			s.Printf("%s", term.Dim.Of(" (blank)"))
		}

		s.Printf("\n")
	}
}

// answerers prints who may answer a question.
func answerers(r *approval.Request) string {
	switch {
	case len(r.Question.Groups) > 0:
		return "one of " + GroupNames(r.Question.Groups)
	case r.Requester.Principal != "":
		return r.Requester.Principal + ", for whom the agent acts"
	}

	return "any approver"
}

// answered prints how to answer, or how it ended.
func (s *view) answered(r *approval.Request) {
	s.Printf("\n")
	switch {
	case r.State == approval.Pending:
		s.howTo(r)
		return
	case r.Chosen != nil:
		s.Printf(
			"%s [%d] by %s.\n",
			map[bool]string{
				true:  "Dismissed, which picked the default",
				false: "Picked",
			}[r.Cause == approval.ByDismissal],
			*r.Chosen,
			r.By,
		)
	case r.Cause == approval.ByDismissal:
		s.Printf("Dismissed by %s: it gets no answer.\n", r.By)
	case r.Cause == approval.BySubmission:
		s.Printf("Answered by %s.\n", r.By)
	default:
		s.field("by", r.By)
	}

	s.field("reason", r.Reason)
}

// howTo prints how to answer, and what happens without an answer.
func (s *view) howTo(r *approval.Request) {
	if f := r.Question.Form(); f != nil {
		s.Printf(
			"Answer with `assent answer %s %s`, or `assent dismiss %s`, which gives no answer.\n",
			r.ID, writeWith(f), r.ID,
		)
		s.Printf("Without an answer by %s it expires.\n", term.Stamp(r.Deadline))

		return
	}

	s.Printf("Answer with `assent choose %s NUMBER`, or `assent dismiss %s`.\n", r.ID, r.ID)
	s.Printf(
		"Without an answer by %s nothing is picked, not the default either (expired).\n",
		term.Stamp(r.Deadline),
	)
}

func writeWith(f *form.Form) term.Ready {
	if f.FreeText() {
		return "--text TEXT"
	}

	return "--field NAME=VALUE"
}

// endingOf describes the result of a question for a text or form.
func endingOf(r *approval.Request) term.Ready {
	if r.Cause == approval.ByDismissal {
		return "dismissed: it gets no answer"
	}

	return "answered: it gets what you wrote"
}

// isQuestion refuses to answer a question as if it were a call.
func isQuestion(r *approval.Request) error {
	if r.Question == nil {
		return nil
	}
	return notACall(r.ID)
}

func notACall(id string) error {
	id = term.ScrubLine(id)
	return term.No(
		"%s is a question, not a call to approve or deny: answer with `assent choose %s NUMBER`, `assent answer %s` "+
			"where it asks for a text or a form, or `assent dismiss %s`",
		id,
		id,
		id,
		id,
	)
}

// isCall refuses to answer a call as if it were a question.
func isCall(r *approval.Request) error {
	id := term.ScrubLine(r.ID)
	return term.No(
		"%s is no question but a call: answer with `assent approve %s` or `assent deny %s`",
		id,
		id,
		id,
	)
}

// readNumber reads the number of a choice, which must be written exactly as it was printed.
func readNumber(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || strconv.Itoa(n) != text {
		return 0, fmt.Errorf(
			"%q is no NUMBER: expected the one in brackets in front of a choice, without the brackets",
			text,
		)
	}

	return n, nil
}

// answerQuestion shows a question and answers it with the choice of that number, or dismisses it if
// there is no number.
func (a commands) answerQuestion(ctx context.Context, f answerFlags, id string, number *int) error {
	if err := a.attended(f, "answer"); err != nil {
		return err
	}
	server, r, err := a.look(ctx, f.Connection, id, f.binding)
	if err != nil {
		return err
	}
	what, err := picked(r, number)
	if err != nil {
		return err
	}
	shown := a.shownOn(f.AsJSON)
	viewOn(shown, f.all).question(r)
	shown.Printf("\n%s\n", what)
	if !f.yes {
		if err := a.confirm(shown, "answer "+r.ID, r.ID, r.Binding()); err != nil {
			return err
		}
	}
	if err := shown.Done(); err != nil { // what was not printed was not shown
		return err
	}
	body := openapi.VoteBody{
		Verdict:    approval.Dismiss,
		Binding:    r.Binding(),
		Reason:     f.reason,
		ShownFully: true,
	}
	if number != nil {
		body.Verdict, body.Choice = approval.Choose, number
	}
	return a.vote(ctx, server, r, body, f.AsJSON)
}

// picked describes the choice that an answer selects, or returns the reason why it is invalid.
func picked(r *approval.Request, number *int) (string, error) {
	q := r.Question
	switch {
	case q == nil:
		return "", isCall(r)
	case q.Form() != nil && number == nil:
		return "Your answer: dismiss; it gets no answer", nil
	case q.Form() != nil:
		return "", takesChoice(r)
	case q.Default < 0 || q.Default >= len(q.Choices):
		return "", fmt.Errorf("the question %s names a default that is none of its choices", term.ScrubLine(r.ID))
	case number == nil:
		return "Your answer: dismiss, which picks the default " + choiceOf(r, q.Default), nil
	case *number >= len(q.Choices):
		return "", fmt.Errorf("there is no choice %d: expected a NUMBER from 0 to %d", *number, len(q.Choices)-1)
	}

	return "Your answer: " + choiceOf(r, *number), nil
}

// choiceOf returns a choice with its number.
func choiceOf(r *approval.Request, number int) string {
	if number < 0 || number >= len(r.Question.Choices) {
		return fmt.Sprintf("[%d]", number)
	}
	return fmt.Sprintf("[%d] %s", number, r.Question.Choices[number])
}

// completeChoices completes the ids of pending requests, and then the numbers of the choices. If an
// error occurs, there are no completions.
func (a commands) completeChoices(c *remote.Connection) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return a.completeIDs(c)(cmd, args, typed)
		}
		server, err := a.Dial(*c)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		r, err := server.Request(cmd.Context(), args[0])
		if err != nil || r.Question == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		out := make([]string, len(r.Question.Choices))
		for i, label := range r.Question.Choices {
			out[i] = strconv.Itoa(i) + "\t" + template.Escape(label)
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// ask lets a person at watch select a number or dismiss the question. The input must be confirmed.
func (b *inbox) ask(ctx context.Context, key byte) error {
	f := answerFlags{Connection: b.flags.Connection, all: true}
	switch {
	case key == 'x':
		return b.answerQuestion(ctx, f, b.selected, nil)
	case key >= '0' && key <= '9':
		number := int(key - '0')
		return b.answerQuestion(ctx, f, b.selected, &number)
	}

	r, err := b.server.Request(ctx, b.selected)
	if err != nil {
		return remote.Explain(err)
	}
	if r.Question == nil {
		_, err := picked(r, nil)
		return err
	}
	if r.Question.Form() != nil {
		return b.submit(ctx, f, b.selected)
	}
	viewOn(&b.out, true).question(r)
	b.out.Printf(
		"\nTo answer …%s write the number of a choice, or dismiss; an empty line stops: ",
		term.Bold.Of(lastOf(r.ID)),
	)
	text, err := b.readAnswer(&b.out)
	if err != nil {
		return err
	}
	switch text {
	case "":
		return errors.New("stopped: nothing was done")
	case "dismiss":
		return b.answerQuestion(ctx, f, b.selected, nil)
	}

	number, err := readNumber(text)
	if err != nil {
		return err
	}
	return b.answerQuestion(ctx, f, b.selected, &number)
}
