package decide

import (
	"fmt"
	"io"
	"strings"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/lint/flip"
	"github.com/assent-dev/assent/lint/listing"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// textPrinter writes decisions for people: the outcome, the reasons, and what would change it.
type textPrinter struct {
	plan *resolve.Plan
	sem  condition.Semantics
	out  *term.Printer
	more bool
}

// newText returns a printer to w with the colours of a.
func (a Decider) newText(plan *resolve.Plan, sem condition.Semantics, w io.Writer) *textPrinter {
	out := a.Printer()
	out.W = w
	return &textPrinter{plan: plan, sem: sem, out: out}
}

// print writes one decision. call is nil if the line was no call.
func (p *textPrinter) print(call *resolve.Call, d resolve.Decision) error {
	if p.more {
		p.out.Printf("\n")
	}
	p.more = true
	style := map[resolve.Outcome]term.Style{
		resolve.Allow: term.Green,
		resolve.Ask:   term.Yellow,
		resolve.Deny:  term.Red,
	}[d.Outcome]
	target := "no valid call"
	if call != nil {
		target = call.Target()
	}
	p.out.Printf("%s %s\n", style.Of(d.Outcome.String()), term.Bold.Of(target))
	if d.Outcome == resolve.Ask {
		p.out.Printf("  message   %s\n", term.Ready(d.Message))
	}
	p.reasons(d.Reasons)
	if d.Outcome == resolve.Ask {
		p.requires(&d)
	}
	if call != nil {
		p.change(flip.Of(p.plan, p.sem, call))
	}
	return p.out.Done()
}

func (p *textPrinter) reasons(reasons []resolve.Reason) {
	if len(reasons) == 0 {
		p.out.Printf("  because   no rule asks about it or denies it\n")
	}
	for i := range reasons {
		r := &reasons[i]
		name := r.Rule
		if r.Policy != "" {
			name = strings.TrimSuffix(r.Policy+"/"+r.Rule, "/")
		}
		if name == "" {
			name = strings.ReplaceAll(string(r.Source), "_", " ")
		}
		p.out.Printf("  because   %s: %s\n", name, term.Ready(r.Detail))
		if r.Description != "" {
			p.out.Printf("            %s\n", term.Dim.Of(r.Description))
		}
		if r.File != "" {
			p.out.Printf("            %s\n", term.Dim.Of(fmt.Sprintf("%s:%d:%d", r.File, r.Line, r.Column)))
		}
	}
}

func (p *textPrinter) requires(d *resolve.Decision) {
	if d.Require == nil {
		p.out.Printf("  requires  one approver\n")
		return
	}
	p.out.Printf(
		"  requires  %s; deadline: %s; without an answer: %s\n",
		listing.People(d.Require),
		listing.Deadline(d.Require),
		listing.Fallback(d.Require),
	)
}

// change prints what would lead to the other outcome.
func (p *textPrinter) change(a flip.Answer) {
	if len(a.Changes) == 0 {
		p.out.Printf("  change    %s\n", a.Why)
		return
	}
	verb := "it would be allowed"
	if a.To == resolve.Ask {
		verb = "it would ask"
	}
	parts := make([]string, len(a.Changes))
	for i, c := range a.Changes {
		parts[i] = changed(c)
	}
	p.out.Printf("  change    %s with %s\n", verb, strings.Join(parts, ", and "))
}

func changed(c flip.Change) string {
	switch {
	case c.New.Kind == value.Absent:
		return fmt.Sprintf("no %s instead of %s", c.Key, c.Old.AppendJSON(nil))
	case c.Old.Kind == value.Absent:
		return fmt.Sprintf("%s %s, which is not there", c.Key, c.New.AppendJSON(nil))
	default:
		return fmt.Sprintf("%s %s instead of %s", c.Key, c.New.AppendJSON(nil), c.Old.AppendJSON(nil))
	}
}
