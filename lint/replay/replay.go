// Package replay decides recorded calls again: under one plan and the
// outcomes on record, or under two plans. It counts what would change,
// lists the calls that would go unasked, and the calls that a person
// denied and that nobody would be asked about any more
// (docs/contracts/replay.md).
//
// It reads forward once. What it keeps does not grow with the records
// but for what is named there: targets, rules and days up to a bound,
// and the requests of a ledger that are open at one time.
package replay

import (
	"errors"
	"fmt"
	"io"

	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// Options say what is replayed, and against what.
type Options struct {
	Agent *schema.Agent // of New; the names in transcripts are looked up in it
	New   *resolve.Plan
	// Old is what New is compared with; nil for the outcomes on record,
	// which only a ledger has.
	Old  *resolve.Plan
	From Form // of every input; Detect looks for itself
	// Workers is how many batches are decided at once, at least 1. It
	// changes nothing in the answer.
	Workers int
	// List bounds the calls that are listed; 0 lists all. All are
	// counted.
	List int
	// Bad hears of every line that can't be read, in order.
	Bad func(file string, line int, err error)
}

// Found is a call that is listed.
type Found struct {
	Kind    string `json:"kind"` // Unasked or Denied
	File    string `json:"file"`
	Line    int    `json:"line"`
	Time    string `json:"time,omitempty"` // RFC 3339, of the record
	Request string `json:"request,omitempty"`
	Target  string `json:"target"`
	// Call is the call as assent decide takes it, on one line, with
	// HiddenValue in the place of what a policy of either side hides.
	Call   JSON   `json:"call"`
	Old    string `json:"old"` // allow, ask or deny
	New    string `json:"new"`
	Hidden int    `json:"hidden,omitempty"` // values that a policy hides
}

// The kinds of Found.
const (
	// Unasked: it was asked about or denied, and would run now.
	Unasked = "unasked"
	// Denied: a person denied it, and nobody would be asked now.
	Denied = "denied"
)

// JSON is a text that is JSON already.
type JSON string

// MarshalJSON writes the text.
func (j JSON) MarshalJSON() ([]byte, error) { return []byte(j), nil }

// Printer writes what a replay finds: calls as they come, and the
// figures at the end.
type Printer interface {
	Found(f Found) error
	Close(r *Report) error
}

// Replay reads records, one input after the other.
type Replay struct {
	opt   Options
	out   Printer
	names *names
	tally *tally
}

// New begins a replay that writes to out.
func New(opt Options, out Printer) *Replay {
	opt.Workers = max(opt.Workers, 1)
	return &Replay{opt: opt, out: out, names: namesOf(opt.Agent), tally: newTally(opt, out)}
}

// Read replays one input. name is what lists call it. The error is one
// of reading or writing, or says that the form can't be told: what is
// wrong with single lines is counted, and told to Options.Bad.
func (r *Replay) Read(name string, in io.Reader) error {
	src, err := open(in, r.opt.From)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	r.tally.begin(name, src.form)
	parse := r.parser(src.form)
	err = pipeline(src, r.opt.Workers, func(b *batch) { r.decide(b, parse) }, func(b *batch) error {
		return r.tally.add(b)
	})
	var broken *readError
	if errors.As(err, &broken) {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err == nil {
		r.tally.end()
	}
	return err
}

// Close writes the figures, and returns them.
func (r *Replay) Close() (*Report, error) {
	report := r.tally.report()
	return report, r.out.Close(report)
}

// parser is how entries of a form are read.
func (r *Replay) parser(f Form) parser {
	switch f {
	case Ledger:
		return ledger{agent: r.opt.Agent.Metadata.ID}.entry
	case OTel:
		return r.names.document
	case ClaudeCode:
		return r.names.transcript
	default:
		return callLine
	}
}

// decide reads the entries of a batch, and decides their calls.
func (r *Replay) decide(b *batch, parse parser) {
	for i := range b.frames {
		f := &b.frames[i]
		from := len(b.entries)
		if f.err != nil {
			b.entries = append(b.entries, entry{line: f.line, err: f.err})
		} else {
			b.entries = parse(f, b.entries)
		}
		for j := range b.entries[from:] {
			r.weigh(b, &b.entries[from+j])
		}
	}
}

// weigh decides one call on both sides.
func (r *Replay) weigh(b *batch, e *entry) {
	if e.call == nil || e.err != nil {
		return
	}
	e.new, e.spokeNew = spoken(b, r.opt.New, e.call)
	if r.opt.Old != nil {
		e.old, e.spokeOld = spoken(b, r.opt.Old, e.call)
		e.known = true
	}
}

// spoken weighs a call; the indexes of its gates stand in the memory of
// the batch.
func spoken(b *batch, p *resolve.Plan, c *resolve.Call) (resolve.Outcome, []int) {
	from := len(b.spoke)
	var outcome resolve.Outcome
	outcome, b.spoke = p.Weigh(c, b.spoke)
	return outcome, b.spoke[from:len(b.spoke):len(b.spoke)]
}
