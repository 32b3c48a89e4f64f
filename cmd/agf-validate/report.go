package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/posture"
)

// printReport prints what a comparison found.
func (v program) printReport(format string, r posture.Report) error {
	var text string
	switch format {
	case "json":
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(r); err != nil {
			return err
		}
		text = term.JSONSafe(b.String())
	case "markdown":
		text = markdown(r)
	default:
		text = term.Scrub(plain(r))
	}

	_, err := v.Out.Write([]byte(text))

	return err
}

// plain is the report for people at a terminal.
func plain(r posture.Report) string {
	var b strings.Builder
	agent := ""
	for _, c := range r.Changes {
		if c.AgentID != agent {
			agent = c.AgentID
			fmt.Fprintf(&b, "%s\n", agent)
		}
		fmt.Fprintf(&b, "  %s: %s\n", targetOf(c), sentence(c))
		for _, line := range details(c) {
			fmt.Fprintf(&b, "      %s\n", line)
		}
	}

	fmt.Fprintf(&b, "%s\n", summary(r))
	for _, line := range comparedLines(r.Compared) {
		fmt.Fprintf(&b, "%s\n", line)
	}

	return b.String()
}

// comparedLines names the files of each side, once if both sides have
// the same.
func comparedLines(files *posture.Compared) []string {
	switch {
	case files == nil:
		return nil
	case slices.Equal(files.Old, files.New):
		return []string{"compared on both sides: " + strings.Join(files.Old, ", ")}
	}
	list := func(names []string) string { return cmp.Or(strings.Join(names, ", "), "no files") }

	return []string{"compared, old side: " + list(files.Old), "compared, new side: " + list(files.New)}
}

// targetOf names what a change is about.
func targetOf(c posture.Change) string {
	switch {
	case c.Kind == "mcp_tool" && c.Tool == "":
		return "MCP server " + c.Server
	case c.Kind == "mcp_tool":
		return "mcp_tool " + c.Server + "/" + c.Tool
	case c.Kind == "skill" && c.Skill == "":
		return "remote agent " + c.Agent
	case c.Kind == "skill":
		return "skill " + c.Agent + "/" + c.Skill
	case c.Kind == "agent":
		return "agent"
	}

	return strings.TrimSpace(c.Kind + " " + c.Tool + c.Agent)
}

// sentence says what a change is.
func sentence(c posture.Change) string {
	if c.Aspect != "outcome" {
		return fmt.Sprintf("%s: %s: %s → %s", c.Effect, c.Aspect, c.From, c.To)
	}
	return fmt.Sprintf("%s: %s", c.Effect, outcomeWords(c))
}

// outcomeWords says a change of the outcome as people say it: what is
// asked about now, and what is new in it or gone.
func outcomeWords(c posture.Change) string {
	words := map[string]string{
		"ask allow":  "no longer asks for",
		"allow ask":  "now asks for",
		"deny allow": "no longer denies, and allows,",
		"deny ask":   "no longer denies, and asks for,",
		"allow deny": "now denies what was allowed:",
		"ask deny":   "now denies what was asked for:",
	}[c.From+" "+c.To]
	switch {
	case words == "":
		words = "outcome:"
	case c.Asks == "", c.Region == "", c.Effect == posture.Undecided, c.Asks == c.Region:
	case c.To == "allow":
		words = "asks for " + c.Asks + "; no longer for"
	case c.From == "allow" && c.To == "ask":
		words = "asks for " + c.Asks + "; newly for"
	}

	return strings.TrimSpace(words + " " + c.Region)
}

// details are the lines below a change.
func details(c posture.Change) []string {
	var out []string
	if c.Region != "" && c.Aspect != "outcome" {
		out = append(out, "for "+c.Region)
	}
	if c.Below != "" {
		out = append(out, "below "+c.Below)
	}
	if c.Why != "" {
		out = append(out, "undecided: "+c.Why)
	}
	if c.Note != "" {
		out = append(out, "note: "+c.Note)
	}
	if c.Witness != nil {
		out = append(out, "for example "+string(c.Witness))
	}
	places := placeOf("old", c.Old) + placeOf("new", c.New)
	if places != "" {
		out = append(out, strings.TrimSuffix(places, ", "))
	}

	return out
}

func placeOf(side string, at *posture.Position) string {
	if at == nil {
		return ""
	}
	return fmt.Sprintf("%s %s:%d:%d, ", side, at.File, at.Line, at.Column)
}

// summary is the verdict in a sentence.
func summary(r posture.Report) string {
	count := map[posture.Effect]int{}
	for _, c := range r.Changes {
		count[c.Effect]++
	}
	if len(r.Changes) == 0 {
		return "equivalent: every call is decided as before"
	}
	var parts []string
	for _, e := range []posture.Effect{posture.Loosens, posture.Undecided, posture.Tightens, posture.Changes} {
		if count[e] > 0 {
			word := map[posture.Effect]string{
				posture.Loosens: "loosen", posture.Undecided: "undecided", posture.Tightens: "tighten",
				posture.Changes: "change nothing that protects",
			}[e]
			parts = append(parts, fmt.Sprintf("%d %s", count[e], word))
		}
	}

	return fmt.Sprintf("%s: %s", r.Verdict, strings.Join(parts, ", "))
}

// markdown is the report for a comment on a change.
func markdown(r posture.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**Posture: %s**\n", cellText(summary(r)))
	if len(r.Changes) == 0 {
		return b.String() + comparedMarkdown(r.Compared)
	}
	b.WriteString("\n| effect | agent | target | what | before | now | calls | example |\n|---|---|---|---|---|---|---|---|\n")
	for _, c := range r.Changes {
		calls := c.Region
		if c.Aspect == "outcome" {
			calls = outcomeWords(c)
		}
		if c.Why != "" {
			calls = strings.TrimSpace(calls + " (" + c.Why + ")")
		}
		if c.Below != "" {
			calls = strings.TrimSpace(calls + " (below " + c.Below + ")")
		}
		if c.Note != "" {
			calls = strings.TrimSpace(calls + " (" + c.Note + ")")
		}
		example := ""
		if c.Witness != nil {
			example = code(string(c.Witness))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", c.Effect, cellText(c.AgentID), cellText(targetOf(c)),
			c.Aspect, cellText(c.From), cellText(c.To), cellText(calls), example)
	}

	return b.String() + comparedMarkdown(r.Compared)
}

// comparedMarkdown names the files of each side below the table.
func comparedMarkdown(files *posture.Compared) string {
	lines := comparedLines(files)
	if len(lines) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n<details><summary>Compared files</summary>\n")
	for _, line := range lines {
		b.WriteString("\n" + cellText(line) + "\n")
	}
	b.WriteString("\n</details>\n")

	return b.String()
}

// cellText writes a text into a cell of a table, where nothing of it is
// markup.
func cellText(s string) string {
	var b strings.Builder
	for _, r := range term.ScrubLine(s) {
		switch {
		case strings.ContainsRune("\\`*_{}[]<>#|!~@&", r):
			fmt.Fprintf(&b, "&#%d;", r)
		default:
			b.WriteRune(r)
		}
	}

	return b.String()
}

// code writes a text as code in a cell.
func code(s string) string {
	var b strings.Builder
	for _, r := range term.ScrubLine(s) {
		switch r {
		case '|', '<', '>', '&', '`', '@':
			fmt.Fprintf(&b, "&#%d;", r)
		default:
			b.WriteRune(r)
		}
	}

	return "<code>" + b.String() + "</code>"
}
