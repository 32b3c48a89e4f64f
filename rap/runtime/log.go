package runtime

import (
	"context"
	"fmt"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/durable"
)

// refusal is the reason to refuse a callback: a status for the tool, and a text that only our
// log gets.
type refusal struct {
	code   int
	reason string
}

func (e *refusal) Error() string { return e.reason }

// callName names a call for people. It is a digest, because ids are opaque and may have any
// length and content.
func callName(key string) string {
	thread, id, _ := strings.Cut(key, "/")
	return fmt.Sprintf("%.12s/%.12s", thread, id)
}

// plainError returns a text of limited length, on one line and without control characters, for
// a log or a result.
func plainError(err error) string {
	if err == nil {
		return "no reason given"
	}
	const most = 500
	return diag.Printable(firstBytes(err.Error(), most))
}

// record writes an event to the ledger, with the asker and the user that it named. The subject
// is derived from the digest of the call's ids.
func (r *Runtime) record(ctx context.Context, event string, c *call, facts map[string]any) error {
	if r.cfg.Record == nil {
		return nil
	}
	p := &c.Part
	operation := p.Operation
	if p.Server == "" {
		operation = "unknown" // the text may come from a model
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

// note records an event that has happened already. A failure is only logged.
func (r *Runtime) note(ctx context.Context, event string, c *call, facts map[string]any) {
	if err := r.record(ctx, event, c, facts); err != nil {
		r.log.Error("the ledger lacks an event", "call", callName(c.Key), "error", plainError(err))
	}
}
