// Package replay decides recorded calls again: it compares one plan with the recorded outcomes,
// or two plans. It counts the changes, and lists the calls for which no approval would be
// needed any more, including those that a person had denied (docs/contracts/replay.md).
//
// It reads its input once, forward. Its memory doesn't grow with the size of the records,
// except for targets, rules and days up to a limit, and the requests of a ledger that are open
// at the same time.
package replay

import (
	"errors"
	"fmt"
	"io"

	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// Options selects what is replayed and compared.
type Options struct {
	Agent *schema.Agent // agent of New; names in transcripts are looked up in it
	New   *resolve.Plan
	// Old is compared with New. If it is nil, the recorded outcomes are used, which only a
	// ledger has.
	Old  *resolve.Plan
	From Form // form of every input; with Detect it is determined from the input
	// Workers is the number of batches that are decided concurrently, at least 1. It has no
	// effect on the results.
	Workers int
	// List limits the number of listed calls. Zero lists all. All calls are counted.
	List int
	// Bad is called for every line that can't be read, in order.
	Bad func(file string, line int, err error)
}

// Found is a call that is listed.
type Found struct {
	Kind    string `json:"kind"` // Unasked or Denied
	File    string `json:"file"`
	Line    int    `json:"line"`
	Time    string `json:"time,omitempty"` // RFC 3339, from the record
	Request string `json:"request,omitempty"`
	Target  string `json:"target"`
	// Call is the call in the format of assent decide, on one line, with HiddenValue in place
	// of values that a policy of either side hides.
	Call   JSON   `json:"call"`
	Old    string `json:"old"` // allow, ask or deny
	New    string `json:"new"`
	Hidden int    `json:"hidden,omitempty"` // number of values that a policy hides
}

// The kinds of Found.
const (
	// Unasked: the call needed approval or was denied, and would run now.
	Unasked = "unasked"
	// Denied: a person denied the call, and no approval would be needed now.
	Denied = "denied"
)

// JSON is a text that is already JSON.
type JSON string

// MarshalJSON writes the text.
func (j JSON) MarshalJSON() ([]byte, error) { return []byte(j), nil }

// Printer writes the results of a replay: each call when it is found, and the figures at the end.
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

// Read replays one input. name is its name in lists. The error is a read or write error, or
// says that the form could not be determined. Errors in single lines are counted and passed to
// Options.Bad.
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

// Close writes the figures and returns them.
func (r *Replay) Close() (*Report, error) {
	report := r.tally.report()
	return report, r.out.Close(report)
}

// parser returns the parser for the entries of a form.
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

// decide reads the entries of a batch and decides their calls.
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

// weigh decides one call with both plans.
func (r *Replay) weigh(b *batch, e *entry) {
	if e.call == nil || e.err != nil {
		return
	}
	b.timed = *e.call
	if b.timed.At.IsZero() {
		b.timed.At = e.when
	}
	e.new, e.spokeNew = spoken(b, r.opt.New, &b.timed)
	if r.opt.Old != nil {
		e.old, e.spokeOld = spoken(b, r.opt.Old, &b.timed)
		e.known = true
	}
}

// spoken decides a call. The returned indexes of its gates are a slice of the batch's memory.
func spoken(b *batch, p *resolve.Plan, c *resolve.Call) (resolve.Outcome, []int) {
	from := len(b.spoke)
	var outcome resolve.Outcome
	outcome, b.spoke = p.Weigh(c, b.spoke)
	return outcome, b.spoke[from:len(b.spoke):len(b.spoke)]
}
