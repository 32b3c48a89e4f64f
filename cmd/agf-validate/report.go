package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/lint/posture"
)

// printReport prints what a comparison found.
func (v compiling) printReport(format string, r posture.Report) error {
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

// plain formats the report for a terminal.
func plain(r posture.Report) string {
	var b strings.Builder
	for _, row := range rows(r) {
		fmt.Fprintf(&b, "%s\n", row.sentence())
		for _, d := range row.details {
			fmt.Fprintf(&b, "  %s\n", d.words)
			for _, line := range d.lines() {
				fmt.Fprintf(&b, "      %s\n", line)
			}
		}
		if row.left > 0 {
			fmt.Fprintf(&b, "  and %d more: --format json lists all\n", row.left)
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

// sentence describes a change.
func sentence(c posture.Change) string {
	if c.Aspect != "outcome" {
		if gains := membersWords(c); gains != "" {
			return fmt.Sprintf("%s: %s: %s", c.Effect, aspectWords(c.Aspect), gains)
		}
		return fmt.Sprintf("%s: %s: %s → %s", c.Effect, aspectWords(c.Aspect),
			valueWords(c.Aspect, c.From), valueWords(c.Aspect, c.To))
	}
	return fmt.Sprintf("%s: %s", c.Effect, outcomeWords(c))
}

// aspectWords names an aspect for people who do not know the fields of a
// policy.
func aspectWords(aspect string) string {
	words := map[string]string{
		"stages": "who approves", "within": "by when", "on_timeout": "if nobody answers", "escalate": "called in later",
		"grants": "standing approvals", "arguments": "what approvers see",
	}
	return cmp.Or(words[aspect], aspect)
}

// valueWords writes a value of an aspect for people.
func valueWords(aspect, text string) string {
	switch aspect {
	case "on_timeout":
		words := map[string]string{
			"deny": "denied", "approve": "approved", "escalate": "others are called in",
			"nothing said": "as the service is set",
		}
		return cmp.Or(words[text], text)
	case "grants":
		words := map[string]string{
			`"forbid"`: "forbidden", `"session"`: "within the session", "none": "as the service is set",
		}
		return cmp.Or(words[text], text)
	case "escalate":
		var steps []struct{ After, To, May string }
		if json.Unmarshal([]byte(text), &steps) != nil {
			return text
		}
		var out []string
		for _, s := range steps {
			step := s.To + " after " + s.After
			if s.May == "look" {
				step += " to look"
			}
			out = append(out, step)
		}
		return cmp.Or(strings.Join(out, ", "), "none")
	}

	return text
}

// membersWords describes which people a list gained and lost. It returns an empty string if the
// change is not about a list of people, or about two different lists.
func membersWords(c posture.Change) string {
	was, before, ok := strings.Cut(c.From, ": ")
	is, after, listed := strings.Cut(c.To, ": ")
	if c.Aspect != "people" || !ok || !listed || was != is {
		return ""
	}
	old, new := strings.Split(before, ", "), strings.Split(after, ", ")
	lacks := func(list []string) func(string) bool {
		return func(name string) bool { return slices.Contains(list, name) }
	}
	added := slices.DeleteFunc(slices.Clone(new), lacks(old))
	gone := slices.DeleteFunc(slices.Clone(old), lacks(new))
	text := is
	if len(added) > 0 {
		text += ": added " + strings.Join(added, ", ")
	}
	if len(gone) > 0 {
		text += ": removed " + strings.Join(gone, ", ")
	}
	if text == is {
		return ""
	}

	return text
}

// outcomeWords describes a change of the outcome: what is asked about now, and what was added or
// removed.
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

func placeOf(side string, at *posture.Position) string {
	if at == nil {
		return ""
	}
	return fmt.Sprintf("%s %s:%d:%d, ", side, at.File, at.Line, at.Column)
}

// summary returns the verdict as a sentence.
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

// markdown formats the report for a comment on a pull request.
func markdown(r posture.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**Posture: %s**\n", cellText(summary(r)))
	if len(r.Changes) == 0 {
		return b.String() + comparedMarkdown(r.Compared)
	}
	b.WriteString("\n| effect | what was edited | affects | what changes | example |\n|---|---|---|---|---|\n")
	for _, row := range rows(r) {
		var changes []string
		example := ""
		for _, d := range row.details {
			changes = append(changes, cellText(d.inline()))
			if example == "" && d.Witness != nil {
				example = code(string(d.Witness))
			}
		}
		if row.left > 0 {
			changes = append(changes, fmt.Sprintf("and %d more", row.left))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", row.effect, cellText(row.edited), cellText(row.affects),
			strings.Join(changes, "<br>"), example)
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

// cellText writes a text into a table cell without letting any of it act as markup.
func cellText(s string) string {
	var b strings.Builder
	text := []rune(term.ScrubLine(s))
	inWord := func(i int) bool {
		return i >= 0 && i < len(text) && (unicode.IsLetter(text[i]) || unicode.IsDigit(text[i]))
	}
	for i, r := range text {
		switch {
		case (r == '_' || r == '@') && inWord(i-1) && inWord(i+1): // in a word it is a letter
			b.WriteRune(r)
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
