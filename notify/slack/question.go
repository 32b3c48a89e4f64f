package slack

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"github.com/assent-dev/assent/approval"
)

// The ids of the elements that answer a question. A button's id is the first with its number, since ids must differ within a block.
const (
	actionChoose  = "assent_choose"
	actionDismiss = "assent_dismiss"
)

const (
	maxButtons   = 25  // of choices: what Slack takes in one block
	maxOptions   = 100 // of a menu
	maxButton    = 70  // of 75 characters on a button or in a menu
	maxPrompt    = 2   // sections of the tool's words
	maxChoices   = 4   // sections of labels
	maxLabelLine = 2000
)

// renderQuestion shows what a tool asks: what we know first, then the tool's own words, every line of them fenced. It can be answered here
// only when all labels are shown whole.
func (a *App) renderQuestion(r *approval.Request) message {
	title := "A tool asks"
	if r.State != approval.Pending {
		title = "Question: " + strings.ToLower(string(r.State))
	}
	m := message{text: title + ": " + r.ID}
	m.add(slack.NewHeaderBlock(plain(title)))
	m.lines(answerOf(r), 1)
	m.lines(questionFacts(r), maxFacts)
	if !a.cfg.Arguments {
		m.say("What the call carries and what the tool says is not shown in Slack. Read it in the inbox.")
	} else {
		m.asked(r)
	}
	for _, b := range a.answers(r, m.full) {
		m.add(b)
	}
	return m
}

// answerOf says how a question ended; nothing while it is open.
func answerOf(r *approval.Request) []string {
	if r.State != approval.Answered || r.Chosen == nil {
		return ending(r)
	}
	did := "Picked"
	if r.Cause == approval.ByDismissal {
		did = "Dismissed, which picked the default"
	}
	when := r.Decided
	if when == nil {
		when = r.Closed
	}
	return []string{fmt.Sprintf("%s [%d] by %s%s", did, *r.Chosen, short(r.By), at(when))}
}

func questionFacts(r *approval.Request) []string {
	lines := []string{"Tool server: " + short(r.Question.Asker)}
	for _, line := range facts(r) {
		if !strings.HasPrefix(line, "Needs: ") {
			lines = append(lines, line)
		}
	}
	return append(lines, "May answer: "+answerers(r))
}

// answerers says who may answer a question.
func answerers(r *approval.Request) string {
	switch {
	case len(r.Question.Groups) > 0:
		return "one of " + short(strings.Join(r.Question.Groups, ", "))
	case r.Requester.Principal != "":
		return short(r.Requester.Principal) + ", for whom the agent acts"
	}
	return "any approver"
}

// asked shows what the call carries, then the tool's words. What a policy hides these could repeat, so then they stay out.
func (m *message) asked(r *approval.Request) {
	p := carried(r)
	texts, left := pack(p.lines, 2)
	for _, t := range texts {
		m.say(t)
	}
	switch {
	case p.hidden:
		m.say("A policy hides values of this call. The tool's words are not shown here: they may repeat them. Read and answer in the inbox.")
		return
	case p.cut || left+p.left > 0:
		m.say("Not all of the arguments is shown. Read them in the inbox.")
	}
	m.prompt(r.Question.Prompt)
	m.full = m.choices(r)
}

// prompt shows the tool's words as a quotation: no line of them passes for one of ours.
func (m *message) prompt(text string) {
	var lines []string
	for line := range strings.Lines(text) {
		shown, whole := cut(strings.TrimRight(line, "\n"), maxString)
		lines = append(lines, "│ "+shown)
		if !whole {
			lines = append(lines, "(a part of this line is not shown here: read it in the inbox)")
		}
	}
	m.say("The tool says, in words of its own that nobody checked:")
	texts, left := pack(lines, maxPrompt)
	for _, t := range texts {
		m.say(t)
	}
	if left > 0 {
		m.say(fmt.Sprintf("%d further lines of the tool's words are not shown here. Read them in the inbox.", left))
	}
}

// choices shows every label on a line of its own, with its number first, and reports whether all of them are there, whole.
func (m *message) choices(r *approval.Request) bool {
	q := r.Question
	all := true
	var lines []string
	for i, label := range q.Choices {
		shown, whole := cut(label, maxLabelLine)
		all = all && whole
		lines = append(lines, choiceLine(r, i, label, shown))
	}
	texts, left := pack(lines, min(maxChoices, (maxTotal-m.size)/maxText))
	m.say("Its choices:")
	for _, t := range texts {
		m.say(t)
	}
	if left > 0 || !all {
		m.say("Not all of the choices are shown. Read them in the inbox, it can only be answered there.")
	}
	return all && left == 0
}

func choiceLine(r *approval.Request, i int, label, shown string) string {
	line := fmt.Sprintf("│ [%d] %s", i, shown)
	switch {
	case label == "":
		line += "(empty)"
	case strings.TrimSpace(label) == "":
		line += " (blank)"
	}
	if i == r.Question.Default {
		line += " (default: picked when you dismiss)"
	}
	if r.Chosen != nil && *r.Chosen == i {
		line += " (picked)"
	}
	return line
}

// answers are the elements below a question: a button for each choice, or a menu when there are too many, one to dismiss, and the link.
func (a *App) answers(r *approval.Request, full bool) []slack.Block {
	open := slack.NewButtonBlockElement(actionOpen, "", plain("Open in the inbox")).WithURL(a.link(r.ID))
	if r.State != approval.Pending || !full || len(r.Question.Choices) > maxOptions {
		return []slack.Block{slack.NewActionBlock("", open)}
	}
	t := ticket{Request: r.ID, Revision: r.Current().Number, Binding: prefix(r.Binding())}
	dismiss := slack.NewButtonBlockElement(actionDismiss, t.String(), plain("Dismiss")).WithStyle(slack.StyleDanger)
	dismiss.WithConfirm(confirmAnswer(t, fmt.Sprintf("the default, [%d]", r.Question.Default), "Dismiss"))
	return []slack.Block{slack.NewActionBlock("", picks(r, t)...), slack.NewActionBlock("", dismiss, open)}
}

// picks are the elements that pick a choice. What a label's cut leaves out stands in the message.
func picks(r *approval.Request, t ticket) []slack.BlockElement {
	var buttons []slack.BlockElement
	var options []*slack.OptionBlockObject
	for i, label := range r.Question.Choices {
		value := choiceTicket{t, i}.String()
		name := plain(buttonName(i, label))
		b := slack.NewButtonBlockElement(actionChoose+"_"+strconv.Itoa(i), value, name)
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

// buttonName is a number and as much of its label as a button holds.
func buttonName(i int, label string) string {
	number := fmt.Sprintf("[%d]", i)
	if strings.TrimSpace(label) == "" {
		return number
	}
	room := maxButton - length(number) - 2
	if shown := safe(label); length(shown) <= room {
		return number + " " + shown
	}
	runes := []rune(strings.ToValidUTF8(label, "\uFFFD"))
	n := fitting(runes, room, func(n int) []rune { return runes[:n] })
	return number + " " + safe(string(runes[:n])) + "…"
}
