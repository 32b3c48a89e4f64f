package engine

import (
	"bytes"

	"github.com/assent-dev/assent/resolve"
)

// Decider decides calls of one agent. The agent's plan is compiled only once.
type Decider struct{ plan *resolve.Plan }

// Open compiles the plan of a JSON request and ignores the calls in it. The answer is the same
// as for the request without calls. It has the findings that the plan works without, or the
// reason why there is no Decider.
func Open(request []byte) (*Decider, Answer) {
	r, err := ParseRequest(request)
	switch {
	case err != nil:
		return nil, unusable(err)
	case r.Kind != Decide:
		return nil, failed(errOpen)
	}

	plan, findings, err := r.plan()
	if err != nil {
		return nil, failed(err, findings...)
	}

	return &Decider{plan}, Answer{Findings: findings}
}

// Decide answers one JSON call, or a question about the next step, in the same way as a line of calls. A
// call that can't be read is denied.
func (d *Decider) Decide(call []byte) ([]byte, error) {
	var answer any
	if step := d.plan.NextOf(call); step != nil {
		answer = step
	} else {
		answer, _ = decideLine(d.plan, call)
	}
	var b bytes.Buffer
	if err := writeLine(&b, answer); err != nil {
		return nil, err
	}

	return bytes.TrimSpace(b.Bytes()), nil
}
