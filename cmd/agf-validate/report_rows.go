package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/lint/posture"
)

// Limits of a row: further items are only counted. The JSON report has all of them.
const (
	mostNames   = 4
	mostDetails = 8
)

// editRow is one row of the report: an edit of the files in words.
type editRow struct {
	effect  string
	edited  string // "rule large (p.policy.yaml:5): amount above 5,000 → above 8,000"
	affects string // empty if edited says it
	details []detail
	left    int // details that are not among these
}

func (r editRow) sentence() string {
	out := r.edited + ": " + r.effect
	if r.affects != "" {
		out += "; affects " + r.affects
	}
	return out
}

// caused is a change with the names of other rules whose edits cause it too.
type caused struct {
	posture.Change
	with []string
}

// detail is a change that applies to one or more targets of a row.
type detail struct {
	caused
	words   string
	touched string // empty if the row says it
	places  bool   // whether the places of the change are shown
}

// rows returns the edits of a report, most dangerous first.
func rows(r posture.Report) []editRow {
	causes := make([][]string, len(r.Changes)) // names of the rules that cause each change
	for _, e := range r.Edits {
		for _, n := range e.Changes {
			if e.EditedRule != nil {
				causes[n] = append(causes[n], ruleWords(e.EditedRule))
			}
		}
	}
	var out []editRow
	for _, e := range r.Edits {
		changes := make([]caused, len(e.Changes))
		for i, n := range e.Changes {
			changes[i] = caused{Change: r.Changes[n]}
			for _, name := range causes[n] {
				if name != ruleWords(e.EditedRule) {
					changes[i].with = append(changes[i].with, name)
				}
			}
		}
		slices.SortStableFunc(changes, func(a, b caused) int { return cmp.Compare(a.Danger(), b.Danger()) })
		slices.SortStableFunc(changes, func(a, b caused) int { // what is about no calls explains them
			return cmp.Compare(index(ofCalls(a.Change)), index(ofCalls(b.Change)))
		})
		row := editRow{effect: verdictWords(e.Verdict), affects: touchedWords(changes),
			edited: editedWords(e.EditedRule)}
		if row.edited == "" {
			row.edited, row.affects = row.affects, ""
		}
		row.details = detailsOf(changes, e.EditedRule == nil)
		shown := mostDetails
		for _, d := range row.details {
			shown += 1 - index(ofCalls(d.Change))
		}
		if more := len(row.details) - shown; more > 0 {
			row.details, row.left = row.details[:shown], more
		}
		out = append(out, row)
	}

	return out
}

// ofCalls reports whether a change is about calls, rather than about an
// agent, a list or what the owner chose.
func ofCalls(c posture.Change) bool { return c.Region != "" || c.Aspect == "outcome" }

// ofApproval reports whether a change is about what an approval needs.
func ofApproval(c posture.Change) bool { return ofCalls(c) && aspectWords(c.Aspect) != c.Aspect }

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

func verdictWords(v posture.Verdict) string {
	switch v {
	case posture.Equivalent:
		return "changes nothing that protects"
	case posture.Mixed:
		return "loosens and tightens"
	}
	return string(v)
}

// detailsOf merges identical changes into one with all of their targets. Several changes to what an
// approval requires for the same calls are one detail.
func detailsOf(changes []caused, places bool) []detail {
	var order []string
	same := map[string][]caused{}
	for _, c := range changes {
		key := strings.Join([]string{sentence(c.Change), c.Region, c.Below, c.Why, c.Note,
			strings.Join(c.with, "\n")}, "\n")
		if same[key] == nil {
			order = append(order, key)
		}
		same[key] = append(same[key], c)
	}

	var out []detail
	all := touchedWords(changes)
	for _, key := range order {
		c := same[key][0]
		d := detail{caused: c, words: sentence(c.Change), places: places}
		touched := touchedWords(same[key])
		if touched != all && !strings.HasSuffix(all, " of "+strings.TrimPrefix(touched, "agent ")) {
			d.touched = touched
		}
		at := slices.IndexFunc(out, func(o detail) bool {
			return ofApproval(c.Change) && ofApproval(o.Change) && o.Effect == c.Effect &&
				o.touched == d.touched && slices.Equal(o.lines(), d.lines())
		})
		if at < 0 {
			out = append(out, d)
			continue
		}
		out[at].words += "; " + strings.TrimPrefix(d.words, string(c.Effect)+": ")
	}

	return out
}

// lines returns the lines below a detail.
func (d detail) lines() []string {
	var out []string
	add := func(label, text string) {
		if text != "" {
			out = append(out, label+text)
		}
	}
	if d.Aspect != "outcome" {
		add("for ", d.Region)
	}
	add("on ", d.touched)
	add("together with ", strings.Join(d.with, " and "))
	add("below ", d.Below)
	add("undecided: ", d.Why)
	add("note: ", d.Note)
	add("for example ", string(d.Witness))
	if d.places {
		add("", strings.TrimSuffix(placeOf("old", d.Old)+placeOf("new", d.New), ", "))
	}

	return out
}

// inline returns a detail on one line.
func (d detail) inline() string {
	out := d.words
	if d.Region != "" && d.Aspect != "outcome" {
		out += ", for " + d.Region
	}
	if d.touched != "" {
		out += ", on " + d.touched
	}
	if len(d.with) > 0 {
		out += ", together with " + strings.Join(d.with, " and ")
	}
	if d.Below != "" {
		out += ", below " + d.Below
	}
	for _, text := range []string{d.Why, d.Note} {
		if text != "" {
			out += " (" + text + ")"
		}
	}

	return out
}

// editedWords describes how a rule was edited. It returns an empty string if there is no rule.
func editedWords(r *posture.EditedRule) string {
	if r == nil {
		return ""
	}
	var parts []string
	for _, p := range r.Parts {
		parts = append(parts, partWords(p))
	}
	return ruleWords(r) + ": " + strings.Join(parts, "; ")
}

// ruleWords names a rule with its place on the new side, or on the old one
// if it is gone.
func ruleWords(r *posture.EditedRule) string {
	name := "approval of " + r.Rule
	switch {
	case r.Policy != "":
		name = "rule " + r.Rule
	case r.Rule == "decisions.yaml":
		name = r.Rule
	}
	at, old := r.New, ""
	if at == nil {
		at, old = r.Old, "old "
	}
	switch {
	case at == nil:
		return name
	case at.Line == 0:
		return fmt.Sprintf("%s (%s%s)", name, old, at.File)
	}

	return fmt.Sprintf("%s (%s%s:%d)", name, old, at.File, at.Line)
}

// partWords describes the difference in a rule.
func partWords(p posture.Part) string {
	switch {
	case p.Aspect == "rule" && p.From == "absent":
		return "now " + p.To
	case p.Aspect == "rule" && p.To == "absent":
		return "no longer " + p.From
	case p.Aspect == "rule", p.Aspect == "condition":
		return p.From + " → " + p.To
	}

	return aspectWords(p.Aspect) + ": " + valueWords(p.Aspect, p.From) + " → " + valueWords(p.Aspect, p.To)
}

// touchedWords names the targets and agents that changes are about, or
// counts them.
func touchedWords(changes []caused) string {
	var targets, agents []string
	add := func(list *[]string, name string) {
		if name != "" && !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	for _, c := range changes {
		if c.Kind != "agent" {
			add(&targets, targetOf(c.Change))
		}
		add(&agents, c.AgentID)
	}
	who := strings.Join(agents, "")
	if len(agents) > 1 {
		who = fmt.Sprintf("%d agents", len(agents))
	}
	what := strings.Join(targets, ", ")
	switch {
	case len(targets) == 0 && len(agents) == 1:
		return "agent " + who
	case len(targets) == 0:
		return who
	case len(targets) > mostNames:
		what = fmt.Sprintf("%s and %d more", strings.Join(targets[:mostNames], ", "), len(targets)-mostNames)
	}

	return what + " of " + who
}
