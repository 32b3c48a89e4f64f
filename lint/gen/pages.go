package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/policytest"
	"github.com/assent-dev/assent/lint/rules"
	"github.com/assent-dev/assent/policy/people"
)

// The areas that pages treat in their own way.
const (
	configArea = "Suppressions and configuration"
	policyArea = "Policies"

	authoringArea = "Authoring"
	peopleArea    = "People"
	testArea      = "Tests"
)

// areas are those of agf-validate, and what is said of people.yaml and
// of test files.
func areas() []lint.Area {
	return append(
		lint.Areas(rules.All()),
		lint.Area{Name: peopleArea, Rules: people.Rules()},
		lint.Area{Name: testArea, Rules: policytest.Rules()},
	)
}

// pages are all pages of docs/rules by file name.
func pages() map[string]string {
	areas := areas()
	all := map[string]string{"README.md": index(areas)}
	for _, a := range areas {
		for _, r := range a.Rules {
			all[r.ID+".md"] = page(a.Name, r)
		}
	}
	return all
}

// page returns the page of one rule.
func page(area string, r diag.RuleInfo) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s.\n\n%s · %s · %s\n\n%s\n", r.ID, title(r), r.Severity, area, r.Spec, wrapped(r.Why))
	if r.Tools != "" {
		fmt.Fprintf(&b, "\n## The list of tools\n\nBoth examples are checked with `--tools tools.json`:\n\n```json\n%s```\n",
			r.Tools)
	}
	if r.Bad != "" {
		fmt.Fprintf(&b, "\n## Reported\n\n%s\n%s", yaml(r.Bad), printed(area, r))
	}
	if r.Good != "" {
		fmt.Fprintf(&b, "\n## Not reported\n\n%s", yaml(r.Good))
	}
	fmt.Fprintf(&b, "\n## Silence it\n\n%s", silencing(area, r))
	b.WriteString("\n[All rules](README.md). This page is made by `go run ./lint/gen`.\n")
	return b.String()
}

func title(r diag.RuleInfo) string { return strings.ToUpper(r.Title[:1]) + r.Title[1:] }

func yaml(text string) string { return "```yaml\n" + text + "```\n" }

// printed returns what agf-validate prints for the example. For a piece of a
// file the places would be wrong, so only sentences are shown.
func printed(area string, r diag.RuleInfo) string {
	s := exampleOf(area, r, r.Bad)
	found := s.lint(r.ID)
	if len(found) == 0 {
		return ""
	}
	if s.whole {
		var out bytes.Buffer
		w := diag.NewText(&out, diag.Options{Source: func(string) []byte { return []byte(s.text) }})
		// A buffer takes everything.
		_ = w.File(diag.Report{File: s.file, Findings: found})
		return "```text\n" + strings.TrimRight(out.String(), "\n") + "\n```\n"
	}

	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "%s: %s [%s]\n", f.Severity, diag.Printable(f.Message), f.Rule)
		if f.Expected != "" {
			fmt.Fprintf(&b, "  = expected: %s\n", diag.Printable(f.Expected))
		}
		if f.Nearest != "" {
			fmt.Fprintf(&b, "  = did you mean: %s\n", diag.Printable(f.Nearest))
		}
	}

	return "```text\n" + b.String() + "```\n"
}

// silencing says how findings of the rule can be silenced.
func silencing(area string, r diag.RuleInfo) string {
	config := fmt.Sprintf(
		"For all files, in the file that `--decisions` names:\n\n```yaml\nrules:\n  %s: off # or info, warning, error\n"+
			"```\n",
		r.ID,
	)
	switch {
	case area == peopleArea:
		return "It can't be silenced: who may answer is never in doubt.\n"
	case area == testArea:
		return "It can't be silenced: a test that is not understood could pass.\n"
	case r.ID == "config-invalid":
		return "It can't be silenced: the configuration is not used.\n"
	case !lint.Silenceable(r.ID):
		return "A comment can't silence it, only the owner's configuration can.\n\n" + config
	}

	comment := fmt.Sprintf(
		"On the first line of the finding, or alone on the line above it, with a reason:\n\n```yaml\n# "+
			"agf-validate: ignore %s -- why it is right here\n```\n\n",
		r.ID,
	)
	switch found := exampleOf(area, r, r.Bad).lint(r.ID); {
	case r.Severity == diag.Error && area != authoringArea && len(found) == 0:
		return "It can't be suppressed if it stops the load. Otherwise:\n\n" + comment + config
	case len(found) > 0 && !slices.ContainsFunc(found, func(f diag.Finding) bool { return !f.Stops }):
		return "It can't be silenced: it stops the load, and nothing may be decided from such a file.\n"
	}

	return comment + config
}

// index lists every rule by area, errors first.
func index(areas []lint.Area) string {
	var b strings.Builder
	b.WriteString("# Rules\n\n" + wrapped("Everything that `agf-validate` may report, and what `assent` says of "+
		"`people.yaml`. Errors break a gate or a file, warnings are in doubt, infos are asides. "+
		"`agf-validate explain RULE` prints the same in a terminal.") + "\n")
	for _, a := range areas {
		fmt.Fprintf(&b, "\n## %s\n\n| rule | severity | what |\n|---|---|---|\n", a.Name)
		for _, severity := range []diag.Severity{diag.Error, diag.Warning, diag.Info} {
			for _, r := range a.Rules {
				if r.Severity == severity {
					fmt.Fprintf(
						&b,
						"| [%s](%s.md) | %s | %s |\n",
						r.ID,
						r.ID,
						r.Severity,
						strings.ReplaceAll(title(r), "|", `\|`),
					)
				}
			}
		}
	}

	b.WriteString("\nMade by `go run ./lint/gen` from the rules themselves.\n")
	return b.String()
}

// pageWidth is how many columns the prose of a page has.
const pageWidth = 116

// wrapped breaks prose into lines. Lines that are short enough stay as
// they are.
func wrapped(text string) string {
	var out []string
	for _, line := range strings.Split(text, "\n") {
		for len([]rune(line)) > pageWidth {
			at := strings.LastIndex(string([]rune(line)[:pageWidth]), " ")
			if at <= 0 {
				break
			}

			out = append(out, line[:at])
			line = line[at+1:]
		}

		out = append(out, line)
	}

	return strings.Join(out, "\n")
}
