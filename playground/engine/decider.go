package engine

import (
	"bytes"

	"github.com/assent-dev/assent/resolve"
)

// Decider decides calls of one agent, whose plan is compiled once.
type Decider struct{ plan *resolve.Plan }

// Open compiles the plan of a request in JSON, whose calls, if it has
// any, are passed over. The answer is that to the request without
// calls: what the plan goes on without, or why there is no Decider.
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

// Decide answers one call in JSON as a line of calls is answered, and
// one that can't be read with the denial of such a line.
func (d *Decider) Decide(call []byte) ([]byte, error) {
	decision, _ := decideLine(d.plan, call)
	var b bytes.Buffer
	if err := writeDecision(&b, decision); err != nil {
		return nil, err
	}

	return bytes.TrimSpace(b.Bytes()), nil
}
