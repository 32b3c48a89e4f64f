package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/upstream"
)

// Events that the gateway records about calls. A run that people approved records eventRuns before
// anything is sent, and eventRan or eventNotSent afterwards. If neither follows, the process died
// and the outcome is unknown.
const (
	eventDenied  = "mcp_call_denied"
	eventRuns    = "mcp_call_runs"
	eventRan     = "mcp_call_ran"
	eventNotSent = "mcp_call_not_sent"
)

// outcomeFacts returns the facts that the ledger keeps of a result: its digest instead of its
// content.
func outcomeFacts(out upstream.Answer) map[string]any {
	if out.Error != nil {
		return map[string]any{"outcome": "error", "code": out.Error.Code}
	}
	sum := sha256.Sum256(out.Result)
	return map[string]any{
		"outcome":  "returned",
		"is_error": string(jsonmsg.Get(out.Result, "isError")) == "true",
		"result":   "sha256:" + hex.EncodeToString(sum[:]),
	}
}

// unknownFacts returns the facts of a run whose outcome is unknown.
func unknownFacts() map[string]any { return map[string]any{"outcome": "unknown"} }

// note records a call in the background, so that no write to a store delays the answer to an
// allowed call. It blocks only if the ledger can't keep up.
func (g *Gateway) note(ctx context.Context, event string, q *request, facts map[string]any) {
	ctx = context.WithoutCancel(ctx)
	g.notes <- struct{}{}
	g.ledger.Go(func() {
		defer func() { <-g.notes }()
		facts := with(facts, map[string]any{
			"server":     q.call.Server,
			"tool":       q.call.Tool,
			"definition": q.call.ToolDefinition,
			"binding":    q.bound(),
		})
		subject := subjectOf(q.call.Server, q.call.Tool)
		err := g.cfg.Record(ctx, event, subject, q.caller.asker.Token, facts)
		if err != nil {
			g.cfg.Log.ErrorContext(ctx, "the ledger takes no record", "event", event, "error", err)
		}
	})
}

// bound returns the binding of a call, or an empty string if its arguments can't be bound.
func (q *request) bound() string {
	if q.decision.Binding != "" || q.plan == nil {
		return q.decision.Binding
	}
	binding, err := q.plan.Bind(q.call)
	if err != nil {
		return ""
	}
	return binding
}

// noteRecord records what happens to a call that asked.
func (g *Gateway) noteRecord(ctx context.Context, event string, c *record, facts map[string]any) error {
	p := &c.Part
	facts = with(facts, map[string]any{
		"server":     p.Server,
		"tool":       p.Tool,
		"definition": p.Definition,
		"binding":    p.ran(),
	})
	if p.Grant != "" {
		facts["grant"] = p.Grant
	} else {
		facts["request"] = p.Ref
	}
	subject := subjectOf(p.Server, p.Tool)
	return g.cfg.Record(context.WithoutCancel(ctx), event, subject, c.Asker.Token, facts)
}

// ran returns the binding of what runs, including an approver's edit. Until that is known it
// returns the binding of the original call.
func (p *part) ran() string {
	if p.Runs != "" {
		return p.Runs
	}
	return p.Binding
}

// noteLost records a run whose outcome is unknown because the server gave no valid answer or the
// process died.
func (g *Gateway) noteLost(ctx context.Context, was durable.State, c *record) {
	if was != durable.Running || !c.Over() || c.Ending.Why == durable.Returned {
		return
	}
	if err := g.noteRecord(ctx, eventRan, c, unknownFacts()); err != nil {
		g.cfg.Log.ErrorContext(ctx, "the ledger takes no record", "event", eventRan, "error", err)
	}
}

// with adds facts to the common facts of a record.
func with(facts, common map[string]any) map[string]any {
	for name, fact := range facts {
		common[name] = fact
	}
	return common
}

// subjectOf returns the ledger's subject for a tool.
func subjectOf(alias, tool string) string { return "mcp/" + alias + "/" + tool }
