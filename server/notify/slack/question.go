package slack

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/safetext"
)

// The ids of the elements that answer a question.
const (
	actionChoose  = "assent_choose"
	actionDismiss = "assent_dismiss"
	actionAnswer  = "assent_answer"
)

const (
	maxButtons   = 25  // maximum number of choices as buttons in one block
	maxOptions   = 100 // of a menu
	maxButton    = 70  // of 75 characters on a button or in a menu
	maxArguments = 2   // sections with the contents of the call
	maxPrompt    = 2   // sections with the tool's text
	maxLabel     = 2000
)

// whoAsks returns what to call the asker of a question.
func whoAsks(r *approval.Request) string {
	if r.Current().Call.Kind == "" {
		return "agent"
	}

	return "tool"
}

// renderQuestion shows a question of a tool or an agent: first the facts, then the asker's own
// text with a bar before every line. A choice can be answered here only if all labels are shown
// completely, and a form only if Slack's inputs can hold all of it. private is set if only the
// person who may answer can read the message.
func (a *App) renderQuestion(r *approval.Request, private bool) message {
	title := "A tool asks"
	if whoAsks(r) == "agent" {
		title = "An agent asks"
	}
	if r.State != approval.Pending {
		title = "Question: " + strings.ToLower(string(r.State))
	}
	m := message{text: title + ": " + r.ID}
	m.add(slack.NewHeaderBlock(plain(title)))
	m.lines(answerOf(r), 1)
	m.lines(questionFacts(r), maxFacts)
	switch {
	case r.Pruned():
		m.say("What was asked and what was answered is no longer kept.")
	case !a.cfg.Arguments:
		m.say("What the call carries and what the tool says is not shown in Slack. Read it in the inbox.")
	case r.OnlyUser() && !private:
		m.say(
			"This question is for one person, whom the directory knows by another Slack account or by none, so what " +
				"the call carries and what the tool says is not shown here. Read and answer it in the inbox.",
		)
	default:
		m.asked(r)
	}

	for _, b := range a.answers(r, m.full) {
		m.add(b)
	}
	return m
}

// answerOf describes how a question ended. It returns nothing for an open question.
func answerOf(r *approval.Request) []string {
	if r.State != approval.Answered {
		return ending(r)
	}
	when := r.Decided
	if when == nil {
		when = r.Closed
	}
	by := " by " + short(r.By) + at(when)
	switch {
	case r.Chosen == nil && r.Cause == approval.ByDismissal:
		return []string{"Dismissed without an answer" + by}
	case r.Chosen == nil && r.Pruned():
		return []string{"Answered" + by}
	case r.Chosen == nil:
		return []string{"Answered" + by + ". What was written is in the inbox"}
	case r.Cause == approval.ByDismissal:
		return []string{fmt.Sprintf("Dismissed, which picked the default [%d]%s", *r.Chosen, by)}
	}

	return []string{fmt.Sprintf("Picked [%d]%s", *r.Chosen, by)}
}

// questionFacts returns the facts of the call, without those that apply only to approvals.
func questionFacts(r *approval.Request) []string {
	lines := []string{"Tool server: " + short(r.Question.Asker)}
	if whoAsks(r) == "agent" {
		lines = []string{"Asks by itself, outside any call, as: " + short(r.Question.Asker)}
	}
	for _, line := range facts(r) {
		if call, ok := strings.CutPrefix(line, "Wants to run: "); ok {
			if whoAsks(r) == "agent" {
				continue
			}
			line = "Asks before it goes on with: " + call
		}

		if !strings.HasPrefix(line, "Needs: ") && !strings.HasPrefix(line, "Because of: ") {
			lines = append(lines, line)
		}
	}

	return append(lines, "May answer: "+answerers(r))
}

// answerers describes who may answer a question.
func answerers(r *approval.Request) string {
	switch {
	case len(r.Question.Groups) > 0:
		return "one of " + short(strings.Join(r.Question.Groups, ", "))
	case r.Requester.Principal != "":
		return short(r.Requester.Principal) + ", for whom the agent acts"
	}

	return "any approver"
}

// asked shows the contents of the call, then the tool's text: all labels completely or none,
// and as much of the rest as fits. If a policy hides a value, the tool's text is not shown,
// because it may repeat the value.
func (m *message) asked(r *approval.Request) {
	if r.Question.Form() != nil {
		m.askedForm(r)
		return
	}
	p := carried(r)
	labels, all := choiceLines(r)
	choices, left := pack(labels, max(0, m.room(0)-2)) // reserve room for the facts and the prompt
	room := m.room(sizeOf(choices))
	m.arguments(p, min(maxArguments, room-1))
	if p.hidden {
		m.say(
			"A policy hides values of this call. The tool's words are not shown here: they may repeat them. Read " +
				"and answer in the inbox.",
		)
		return
	}

	m.prompt(r, min(maxPrompt, m.room(sizeOf(choices))))
	if !all || left > 0 {
		m.say("Not all of the choices fit here. Read them in the inbox, it can only be answered there.")
		return
	}
	m.say(fmt.Sprintf("Its choices; [%d] is the default, picked when you dismiss:", r.Question.Default))
	for _, t := range choices {
		m.say(t)
	}
	m.full = true
}

// askedForm shows the contents of the call and the asker's text. The fields are in the modal,
// either all or none.
func (m *message) askedForm(r *approval.Request) {
	p := carried(r)
	if whoAsks(r) == "tool" {
		m.arguments(p, maxArguments)
	}
	if p.hidden {
		m.say(
			"A policy hides values of this call. The tool's words are not shown here: they may repeat them. Read " +
				"and answer in the inbox.",
		)
		return
	}

	m.prompt(r, maxPrompt)
	words, _ := safetext.CutSlack(r.Question.Words(), 2*maxValue)
	m.say(words + ".")
	_, m.full = modalOf(r)
	if !m.full {
		m.say("It asks for more than Slack can hold: answer it in the inbox.")
	}
}

// room returns how many sections are left if aside characters are reserved.
func (m *message) room(aside int) int { return (maxTotal - m.size - aside) / maxText }

func sizeOf(texts []string) int {
	n := 0
	for _, t := range texts {
		n += safetext.SlackLength(t)
	}
	return n
}

func (m *message) arguments(p *printer, most int) {
	left := m.pack(p.lines, most)
	if p.cut || left+p.left > 0 {
		m.say("Not all of what the call carries is shown. Read it in the inbox.")
	}
}

// prompt shows the tool's text as a quotation, so that its lines can't be mistaken for ours.
func (m *message) prompt(r *approval.Request, most int) {
	var lines []string
	for line := range strings.Lines(r.Question.Prompt) {
		shown, whole := safetext.CutSlack(strings.TrimRight(line, "\n"), maxString)
		lines = append(lines, "│ "+shown)
		if !whole {
			lines = append(lines, "(a part of this line is not shown here: read it in the inbox)")
		}
	}

	m.say("The " + whoAsks(r) + " says, in words of its own that nobody checked:")
	if left := m.pack(lines, most); left > 0 {
		m.say(fmt.Sprintf("%d further lines of these words are not shown here. Read them in the inbox.", left))
	}
}

// choiceLines returns one line for each label, with its number first, and reports whether all
// labels are shown completely.
func choiceLines(r *approval.Request) (lines []string, all bool) {
	all = true
	for i, label := range r.Question.Choices {
		shown, whole := safetext.CutSlack(label, maxLabel)
		all = all && whole
		lines = append(lines, choiceLine(r, i, label, shown))
	}
	return lines, all
}

// choiceLine puts our marks before the number, because a label can't imitate them there.
func choiceLine(r *approval.Request, i int, label, shown string) string {
	mark := ""
	if i == r.Question.Default {
		mark = "* "
	}
	if r.Chosen != nil && *r.Chosen == i {
		mark = "> "
	}
	line := fmt.Sprintf("│ %s[%d] %s", mark, i, shown)
	switch {
	case label == "":
		line += "(empty)"
	case strings.TrimSpace(label) == "":
		line += " (blank)"
	}

	return line
}

// answers returns the elements below a question: a button for each choice, or a menu if there
// are too many, a button to dismiss the question, and the link. It returns only the link if the
// question can't be answered in Slack.
func (a *App) answers(r *approval.Request, full bool) []slack.Block {
	open := a.opens(r)
	if r.State != approval.Pending || !full || len(r.Question.Choices) > maxOptions {
		return []slack.Block{slack.NewActionBlock("", open)}
	}
	t := ticketOf(r)
	if r.Question.Form() != nil {
		return []slack.Block{slack.NewActionBlock("", fills(t)...), slack.NewActionBlock("", open)}
	}
	dismiss := slack.NewButtonBlockElement(actionDismiss, t.String(), plain("Dismiss")).
		WithStyle(slack.StyleDanger)
	dismiss.WithConfirm(confirmAnswer(t, fmt.Sprintf("the default, [%d]", r.Question.Default), "Dismiss"))
	return []slack.Block{slack.NewActionBlock("", picks(r, t)...), slack.NewActionBlock("", dismiss, open)}
}

// fills returns the elements for a text or a form: one opens the form, the other dismisses the
// question.
func fills(t ticket) []slack.BlockElement {
	fill := slack.NewButtonBlockElement(actionAnswer, t.String(), plain("Answer…")).WithStyle(slack.StylePrimary)
	dismiss := slack.NewButtonBlockElement(actionDismiss, t.String(), plain("Dismiss")).WithStyle(slack.StyleDanger)
	dismiss.WithConfirm(slack.NewConfirmationBlockObject(
		plain("Dismiss this question?"),
		plain("Request "+short(t.Request)+", binding "+short(t.Binding)+". Whoever asks gets no answer."),
		plain("Dismiss"), plain("Not now"),
	))

	return []slack.BlockElement{fill, dismiss}
}

// chooseID returns the id of a choice's button. Ids must be unique within a block.
func chooseID(i int) string { return actionChoose + "_" + strconv.Itoa(i) }

// picks returns the elements that select a choice. The message contains the full text of a
// shortened label.
func picks(r *approval.Request, t ticket) []slack.BlockElement {
	var buttons []slack.BlockElement
	var options []*slack.OptionBlockObject
	for i, label := range r.Question.Choices {
		value := choiceTicket{t, i}.String()
		name := plain(buttonName(i, label))
		b := slack.NewButtonBlockElement(chooseID(i), value, name)
		b.WithConfirm(confirmAnswer(t, fmt.Sprintf("[%d]", i), "Pick"))
		buttons = append(buttons, b)
		options = append(options, slack.NewOptionBlockObject(value, name, nil))
	}

	if len(buttons) <= maxButtons {
		return buttons
	}
	menu := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, plain("Pick a choice"), actionChoose, options...)
	menu.Confirm = confirmAnswer(t, "the choice that you selected", "Pick")
	return []slack.BlockElement{menu}
}

func confirmAnswer(t ticket, what, verb string) *slack.ConfirmationBlockObject {
	return slack.NewConfirmationBlockObject(
		plain("Answer this question?"),
		plain("Request "+short(t.Request)+", binding "+short(t.Binding)+". The tool is told "+what+"."),
		plain(verb), plain("Not now"),
	)
}

// buttonName returns a number and as much of its label as fits on a button.
func buttonName(i int, label string) string {
	number := fmt.Sprintf("[%d]", i)
	if strings.TrimSpace(label) == "" {
		return number
	}
	room := maxButton - safetext.SlackLength(number) - 2

	return number + " " + safetext.HeadSlack(label, room)
}
