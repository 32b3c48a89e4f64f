package mcp

import (
	"crypto/sha256"
	"encoding/hex"

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

// ran returns the binding of what runs, including an approver's edit. Until that is known it
// returns the binding of the original call.
func (p *part) ran() string {
	if p.Runs != "" {
		return p.Runs
	}
	return p.Binding
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
