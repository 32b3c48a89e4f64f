package main

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/assent-dev/assent/bench/internal/measure"
	"github.com/assent-dev/assent/bench/internal/model"
	"github.com/assent-dev/assent/bench/internal/subject"
)

// noise is the largest difference between the ratios of two p10s in different runs on a shared
// machine. If a measurement misses its bar by less, the run reports it and does not fail.
// Allocations have no noise.
const noise = 0.10

// bar is one promise with the measured value.
type bar struct {
	text  string
	got   float64
	limit float64
	least bool // got must be at least the limit; otherwise at most
	exact bool // without noise
}

func (b bar) verdict() string {
	over := b.got / b.limit
	if b.least {
		over = b.limit / b.got
	}
	switch {
	case b.exact && b.got == b.limit, !b.exact && over <= 1:
		return "PASS"
	case !b.exact && over <= 1+noise:
		return "PASS (within noise)"
	default:
		return "FAIL"
	}
}

func (b bar) row() string {
	sign := "≤"
	if b.least {
		sign = "≥"
	}
	if b.exact {
		sign = "="
	}
	return fmt.Sprintf("| %s | %.3g | %s %.4g | %s |", b.text, b.got, sign, b.limit, b.verdict())
}

func printBars(w io.Writer, bars []bar) bool {
	fmt.Fprintf(w, "\n### Bars (noise %.0f %%)\n\n| bar | measured | wanted | |\n|---|--:|--:|---|\n", noise*100)
	ok := true
	for _, b := range bars {
		fmt.Fprintln(w, b.row())
		ok = ok && b.verdict() != "FAIL"
	}
	return ok
}

func allBars(tables []*table) ([]bar, error) {
	var bars []bar
	for _, t := range tables {
		bars = append(bars, t.rawBars()...)
		bars = append(bars, t.decodedBars()...)
		switch t.load.Name {
		case "b":
			ask := t.find("b", "assent", subject.Raw)
			bars = append(bars, bar{
				text:  "(b) ask with message and reasons, µs",
				got:   ask.ask.P10 / 1e3,
				limit: 10,
			})
		case "c":
			bars = append(bars, t.everythingBars()...)
		case "d":
			bars = append(bars, t.everythingBars()...)
			bars = append(bars, t.growthBars()...)
			compile, err := compileBar()
			if err != nil {
				return nil, err
			}
			bars = append(bars, compile)
		}
	}

	return bars, nil
}

// rawBars compares the subjects on the calls that no rule matches. There every subject does the
// same work: it reads the arguments and evaluates every rule for the call to false. After a
// match, assent also writes the message, the observations and the binding, which have a bar of
// their own.
func (t *table) rawBars() []bar {
	assent := t.find(t.load.Name, "assent", subject.Raw)
	peer := t.fastest(subject.Sliced, func(s *subject.Subject) bool {
		return s.Input == subject.Raw && s.Engine != "opa"
	})
	return []bar{
		{
			text:  t.label("raw, allow: allocations"),
			got:   assent.allow.Allocs,
			limit: 0,
			exact: true,
		},
		{
			text:  t.label("raw: assent ÷ slot scanner"),
			got:   assent.allow.P10 / t.floor(subject.Raw).allow.P10,
			limit: 2,
		},
		{
			text:  t.label("raw: fastest sliced peer (" + peer.subject.Engine + ") ÷ assent"),
			got:   peer.allow.P10 / assent.allow.P10,
			limit: 6,
			least: true,
		},
	}
}

// decodedBars also includes Cedar with its own records, without the time to construct them.
func (t *table) decodedBars() []bar {
	assent := t.find(t.load.Name, "assent", subject.Decoded)
	peer := t.fastest(subject.Sliced, func(s *subject.Subject) bool {
		return s.Input != subject.Raw && s.Engine != "opa"
	})
	return []bar{
		{
			text: t.label(
				"decoded: fastest sliced peer (" + peer.subject.Engine + " " + string(
					peer.subject.Input,
				) + ") ÷ assent",
			),
			got:   peer.allow.P10 / assent.allow.P10,
			limit: 2,
			least: true,
		},
	}
}

// everythingBars returns the bars for an agent with many rules: against OPA in any scope, and
// against the fastest engine that gets every rule.
func (t *table) everythingBars() []bar {
	assent := t.find(t.load.Name, "assent", subject.Raw)
	raw := func(s *subject.Subject) bool { return s.Input == subject.Raw }
	opa := func(s *subject.Subject) bool { return raw(s) && s.Engine == "opa" }
	own := t.fastest(subject.Own, raw)
	best := t.fastest(subject.Own, opa)
	if sliced := t.fastest(subject.Sliced, opa); sliced.allow.P10 < best.allow.P10 {
		best = sliced
	}
	return []bar{
		{
			text:  t.label("raw: OPA (" + string(best.subject.Scope) + ") ÷ assent"),
			got:   best.allow.P10 / assent.allow.P10,
			limit: 20,
			least: true,
		},
		{
			text:  t.label("raw: fastest engine handed everything (" + own.subject.Engine + ") ÷ assent"),
			got:   own.allow.P10 / assent.allow.P10,
			limit: 20,
			least: true,
		},
	}
}

// growthBars compares (d) with 10,000 policies and (d) with 1,000.
func (t *table) growthBars() []bar {
	var bars []bar
	for _, in := range []subject.Input{subject.Raw, subject.Decoded} {
		small, large := t.find("d", "assent", in), t.find("d10k", "assent", in)
		bars = append(bars, bar{
			text:  t.label(string(in) + ": 10,000 policies ÷ 1,000"),
			got:   large.allow.P10 / small.allow.P10,
			limit: 1.3,
		})
	}

	return bars
}

func (t *table) label(text string) string { return "(" + t.load.Name + ") " + text }

// fastest returns the fastest peer in a scope.
func (t *table) fastest(scope subject.Scope, admit func(*subject.Subject) bool) *row {
	best := &row{allow: measure.Result{P10: math.Inf(1)}}
	for _, r := range t.rows {
		if r.subject.Scope == scope && r.subject.Engine != "assent" && admit(r.subject) &&
			r.allow.P10 < best.allow.P10 {
			best = r
		}
	}

	return best
}

// compileBar measures resolve.Compile on parsed input: an agent with 100 tools and 1,000
// policies.
func compileBar() (bar, error) {
	plan, err := subject.NewPlan(model.D(1_000))
	if err != nil {
		return bar{}, err
	}
	best, err := measure.Best(5, plan.Compile)
	return bar{
		text:  "(d) compile, ms",
		got:   float64(best) / float64(time.Millisecond),
		limit: 50,
	}, err
}
