package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/policytest"
	"github.com/assent-dev/assent/lint/rules"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/resolve"
)

// infos returns every rule that has a page: those of agf-validate, and those of assent for
// people.yaml and test files.
func infos() []diag.RuleInfo {
	return slices.Concat(lint.Infos(rules.All()), people.Rules(), policytest.Rules())
}

// explain prints the page of one rule, or the table of silent points.
func explain(w io.Writer, id string) error {
	if id == "semantics" {
		return explainSemantics(w)
	}
	var known []string
	for _, info := range infos() {
		if info.ID == id {
			return explainRule(w, info)
		}
		known = append(known, info.ID)
	}

	if near := diag.Nearest(id, known); near != "" {
		return fmt.Errorf("no rule is called %q, did you mean %s", id, near)
	}
	return fmt.Errorf("no rule is called %q: `agf-validate rules` lists them", id)
}

func explainRule(w io.Writer, info diag.RuleInfo) error {
	text := fmt.Sprintf("%s (%s): %s\n\n%s", info.ID, info.Severity, info.Title, indent(wrap(info.Why), "  "))
	if info.Tools != "" {
		text += "\nWith these tools:\n" + indent(info.Tools, "    ")
	}
	if info.Bad != "" {
		text += "\nReported:\n" + indent(info.Bad, "    ")
	}
	if info.Good != "" {
		text += "\nInstead:\n" + indent(info.Good, "    ")
	}
	if info.Spec != "" {
		text += "\nRests on: " + info.Spec + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

func explainSemantics(w io.Writer) error {
	if _, err := io.WriteString(
		w,
		wrap("Where Agent Format is silent, assent asks or denies. A point with another reading can be switched by "+
			"the runtime owner."),
	); err != nil {
		return err
	}

	for _, p := range resolve.Points() {
		text := "\n" + p.Name + "\n" + indent(wrap(p.Question), "  ") + indent(wrap("→ "+p.Default), "  ")
		if p.Alternatives != "" {
			text += "  or: " + p.Switch() + "\n"
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}

	return nil
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+by) + "\n"
}

// wrap breaks prose between words, so that it fits a terminal of 80
// columns with its indentation.
func wrap(text string) string {
	const width = 76
	var b strings.Builder
	for _, line := range strings.Split(text, "\n") {
		used := 0
		for _, word := range strings.Fields(line) {
			n := utf8.RuneCountInString(word)
			switch {
			case used == 0:
			case used+1+n > width:
				b.WriteByte('\n')
				used = 0
			default:
				b.WriteByte(' ')
				used++
			}

			b.WriteString(word)
			used += n
		}

		b.WriteByte('\n')
	}

	return b.String()
}
