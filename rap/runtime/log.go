package runtime

import (
	"context"
	"fmt"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/durable"
)

// refusal is why a callback was refused: a status for the tool, and
// words for our log only.
type refusal struct {
	code   int
	reason string
}

func (e *refusal) Error() string { return e.reason }

// callName names a call where people read it. It is a digest: ids are
// opaque, of any length, and may be anything.
func callName(key string) string {
	thread, id, _ := strings.Cut(key, "/")
	return fmt.Sprintf("%.12s/%.12s", thread, id)
}

// plainError is an error fit for a log or a result: one line, of some
// length, that acts on nothing.
func plainError(err error) string {
	if err == nil {
		return "no reason given"
	}
	const most = 500
	return diag.Printable(firstBytes(err.Error(), most))
}

// record writes what happened to the ledger: who asked, and for whom as
// that token says. Its subject is a digest of the call's ids, of which
// the names that went out are made too.
func (r *Runtime) record(ctx context.Context, event string, c *call, facts map[string]any) error {
	if r.cfg.Record == nil {
		return nil
	}
	p := &c.Part
	operation := p.Operation
	if p.Server == "" {
		operation = "unknown" // a model's words
	}
	all := map[string]any{
		"server":    p.Server,
		"operation": operation,
		"thread":    durable.Hash(p.Thread),
		"arguments": "sha256:" + durable.Hash(string(c.Args())),
		"person":    c.Asker.Person,
		"principal": p.User,
	}
	for name, fact := range facts {
		all[name] = fact
	}
	if err := r.cfg.Record(ctx, event, callName(c.Key), c.Asker.Token, all); err != nil {
		return fmt.Errorf("write %s to the ledger: %w", event, err)
	}
	return nil
}

// note is record for what has happened already, whether the ledger
// takes it or not.
func (r *Runtime) note(ctx context.Context, event string, c *call, facts map[string]any) {
	if err := r.record(ctx, event, c, facts); err != nil {
		r.log.Error("the ledger lacks an event", "call", callName(c.Key), "error", plainError(err))
	}
}
