package main

import (
	"fmt"
	"io"

	"github.com/assent-dev/assent/bench/internal/measure"
	"github.com/assent-dev/assent/bench/internal/model"
	"github.com/assent-dev/assent/bench/internal/subject"
)

// row has the cost of one subject on the calls that no rule matches, and on the calls that a
// rule matches.
type row struct {
	entry
	allow, ask measure.Result
}

// mean returns the p10 over all calls: half of them match.
func (r *row) mean() float64 { return (r.allow.P10 + r.ask.P10) / 2 }

// table has the measurements of one workload.
type table struct {
	load *model.Workload
	rows []*row
}

func measured(load *model.Workload, entries []entry, rounds int) *table {
	var tasks []measure.Task
	for _, e := range entries {
		allow, ask := split(e.load)
		tasks = append(tasks, task(e, allow), task(e, ask))
	}
	results := measure.Interleave(tasks, rounds)
	t := &table{load: load}
	for i, e := range entries {
		t.rows = append(t.rows, &row{e, results[2*i], results[2*i+1]})
	}
	return t
}

// split separates the calls by the answer of the reference.
func split(load *model.Workload) (allow, ask []int) {
	for i := range load.Calls {
		if len(load.Reference(&load.Calls[i])) == 0 {
			allow = append(allow, i)
		} else {
			ask = append(ask, i)
		}
	}

	return allow, ask
}

func task(e entry, calls []int) measure.Task {
	return measure.Task{
		Name: e.subject.Name(), Ops: len(calls),
		Pass: func() {
			for _, i := range calls {
				e.subject.Decide(i) // a call through a pointer: the compiler can't remove it
			}
		},
	}
}

// find returns the row of a subject. The workload is that of the table, or d10k in the table of
// (d).
func (t *table) find(load, engine string, in subject.Input) *row {
	for _, r := range t.rows {
		if r.load.Name == load && r.subject.Engine == engine && r.subject.Input == in {
			return r
		}
	}
	panic("no subject " + load + " " + engine + " " + string(in))
}

// floor returns the row to compare a subject with: slots for raw bytes, and the map for all
// decoded input.
func (t *table) floor(in subject.Input) *row {
	if in == subject.Raw {
		return t.find(t.load.Name, "slots", subject.Raw)
	}
	return t.find(t.load.Name, "map", subject.Decoded)
}

func (t *table) print(w io.Writer) {
	fmt.Fprintf(
		w,
		"\n### (%s) %s: %d rules, %d for the call's tool, %d bytes\n\n",
		t.load.Name,
		t.load.Title,
		len(t.load.Rules),
		len(t.load.Relevant(t.load.Calls[0].Tool)),
		len(t.load.Calls[0].Raw),
	)
	fmt.Fprintln(
		w,
		"| engine | rules | from | no match: p10 | median | × floor | allocs | match: p10 | allocs | mean | × floor |",
	)
	fmt.Fprintln(w, "|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, r := range t.rows {
		floor := t.floor(r.subject.Input)
		name := r.subject.Engine
		if r.load != t.load {
			name += " (" + r.load.Name + ")"
		}
		fmt.Fprintf(
			w,
			"| %s | %s | %s | %s | %s | %.1f | %.4g | %s | %.4g | %s | %.1f |\n",
			name,
			r.subject.Scope,
			r.subject.Input,
			ns(r.allow.P10),
			ns(r.allow.Median),
			r.allow.P10/floor.allow.P10,
			r.allow.Allocs,
			ns(r.ask.P10),
			r.ask.Allocs,
			ns(r.mean()),
			r.mean()/floor.mean(),
		)
	}
}

// ns formats nanoseconds with three digits.
func ns(v float64) string {
	switch {
	case v < 1e3:
		return fmt.Sprintf("%.3g ns", v)
	case v < 1e6:
		return fmt.Sprintf("%.3g µs", v/1e3)
	default:
		return fmt.Sprintf("%.3g ms", v/1e6)
	}
}
