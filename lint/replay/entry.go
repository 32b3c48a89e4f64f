package replay

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// entry is the data of one entry of a record.
type entry struct {
	line int
	err  error         // it can't be read
	call *resolve.Call // nil if the entry is not about a call of this agent
	when time.Time     // zero if not recorded

	known              bool // old is known
	old, new           resolve.Outcome
	spokeOld, spokeNew []int // indexes of the plans' gates that applied

	ledger *ledgerEntry // only for a ledger
}

// parser reads the entries of one frame and appends them.
type parser func(f *frame, to []entry) []entry

// The first and the last year that a record may contain.
const firstYear, lastYear = 1970, 2199

// timeOf reads a time of a record.
func timeOf(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("expected a time such as 2026-11-22T09:30:00Z, found %q", text)
	}
	return inRange(t.UTC())
}

func inRange(t time.Time) (time.Time, error) {
	if y := t.Year(); y < firstYear || y > lastYear {
		return time.Time{}, fmt.Errorf("the year %d is none that calls are made in", y)
	}
	return t, nil
}

// callLine reads a line in the format of assent decide, with an optional time.
func callLine(f *frame, to []entry) []entry {
	e := entry{line: f.line}
	text := f.text
	if bytes.Contains(text, []byte(`"time"`)) {
		text, e.when, e.err = withoutTime(text)
	}
	if e.err == nil {
		e.call, e.err = resolve.ParseCall(text, value.Limits{})
	}
	return append(to, e)
}

// withoutTime removes the field time from a call.
func withoutTime(line []byte) (call []byte, when time.Time, err error) {
	call = append(make([]byte, 0, len(line)), '{')
	for m, err := range value.SplitObject(line) {
		switch {
		case err != nil:
			return nil, when, &resolve.CallError{Err: err}
		case m.Key != "time":
			if len(call) > 1 {
				call = append(call, ',')
			}
			call = append(value.Value{Kind: value.String, Text: m.Key}.AppendJSON(call), ':')
			call = append(call, m.Raw...)
			continue
		case !when.IsZero():
			return nil, when, &resolve.CallError{Field: "time", Err: errors.New("the field stands twice")}
		}

		if when, err = timeValue(m.Raw); err != nil {
			return nil, when, &resolve.CallError{Field: "time", Err: err}
		}
	}

	return append(call, '}'), when, nil
}

func timeValue(raw []byte) (time.Time, error) {
	v, err := value.Parse(raw, value.Limits{})
	if err != nil {
		return time.Time{}, err
	}
	if v.Kind != value.String {
		return time.Time{}, fmt.Errorf("expected a text with a time, found JSON of kind %s", v.Kind)
	}
	return timeOf(v.Text)
}
