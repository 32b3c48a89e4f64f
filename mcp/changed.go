package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/store"
)

// decisionOn returns the rules' decision on a call of the tool, with its binding. A call that the
// rules allow still asks if the tool's definition is not the accepted one. Past calls are known only if
// approvers answer, through the service that counts them.
func (b *base) decisionOn(t *tool, plan *resolve.Plan, call *resolve.Call) resolve.Decision {
	d := plan.DecideAt(call, b.now())
	if b.cfg.Ask == AskApprovers {
		d = hold.Decide(plan, call, b.now())
	}
	if d.Outcome != resolve.Allow || t.asks == "" {
		return d
	}
	var err error
	if d.Binding, err = plan.Bind(call); err != nil {
		d.Outcome, d.Message = resolve.Deny, "the arguments can't be bound to a decision"
		return d
	}
	d.Outcome = resolve.Ask
	return d
}

// The bounds of what people are shown of a definition, in bytes.
const (
	mostChanges    = 8 << 10
	mostDefinition = 24 << 10
)

// about returns what people are shown if a tool's definition is not the accepted one: the
// differences and both definitions.
func (t *tool) about() []info.Item {
	if t.asks == "" || t.verdict == nil {
		return nil
	}
	var changes []string
	for _, c := range t.verdict.Changes {
		changes = append(changes, c.String())
	}
	var out []info.Item
	for _, it := range []info.Item{
		{Label: "What has changed", Text: cut(strings.Join(changes, "\n"), mostChanges)},
		{Label: "The definition that was accepted", Text: indented(t.verdict.Accepted)},
		{Label: "The definition now", Text: indented(t.verdict.Tool.Raw)},
	} {
		if it.Text != "" {
			out = append(out, it)
		}
	}

	return out
}

// indented returns a definition with indentation, for people to read.
func indented(definition []byte) string {
	var out bytes.Buffer
	if json.Indent(&out, definition, "", "  ") != nil {
		return ""
	}
	return cut(out.String(), mostDefinition)
}

// cut shortens a text to a number of bytes and marks that there is more.
func cut(text string, most int) string {
	const more = "\n…"
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(more)], "") + more
}

// outdate ends the questions about tools whose definitions the server no longer lists.
func (k *keeper) outdate(
	ctx context.Context, before, now map[string]catalog.Judgement, failed map[string]error,
) {
	changed := map[string]bool{}
	for alias, j := range now {
		if failed[alias] == nil && digests(before[alias]) != digests(j) {
			changed[alias] = true
		}
	}
	if len(changed) == 0 {
		return
	}

	var ends []string
	err := k.engine.Each(ctx, "", func(r store.Record) {
		if !r.Expires.IsZero() {
			return
		}
		c, err := k.engine.Open(r)
		if err == nil && changed[c.Part.Server] && !isPseudo(c.Part.Tool) && !lists(now[c.Part.Server], c) {
			ends = append(ends, r.Key)
		}
	})
	for _, key := range ends {
		err = errors.Join(err, k.overtake(ctx, key, toTell))
	}
	if err != nil {
		k.cfg.Log.WarnContext(ctx, "calls of changed tools can't be ended", "error", err)
	}
}

// digests joins the digests of a list of tools in order.
func digests(j catalog.Judgement) string {
	var all strings.Builder
	for _, v := range j.Tools {
		all.WriteString(v.Digest + " ")
	}
	return all.String()
}

// lists reports whether a list has the tool of a call with the definition that the call was made
// for.
func lists(j catalog.Judgement, c *record) bool {
	for _, v := range j.Tools {
		if v.Tool.Name == c.Part.Tool && v.Digest == c.Part.Definition {
			return true
		}
	}
	return false
}

// telling is true if the caller is informed that its call was overtaken.
type telling bool

const (
	toTell telling = false // when it makes the call again
	told   telling = true  // its call asks again immediately
)

// overtake ends a call that was asked under other rules, or of another
// definition of its tool.
func (k *keeper) overtake(ctx context.Context, key string, how telling) error {
	_, err := k.engine.Change(ctx, key, func(c *record) error {
		if c.Over() || c.State == durable.Running {
			return durable.ErrUnchanged
		}
		k.engine.Finish(c, durable.Ending{Why: durable.Refused, Reason: textChanged})
		c.Part.Told = bool(how)
		return nil
	})
	if errors.Is(err, durable.ErrUnchanged) {
		return nil
	}
	return err
}

// withdrawn returns the reason that people are given when they needn't answer a call any more.
func withdrawn(c *record) string {
	if c.Ending != nil && c.Ending.Why == durable.Refused {
		return c.Ending.Reason
	}
	return "nobody waits for the call any more"
}
