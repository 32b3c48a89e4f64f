package resolve

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/value"
)

// setHistory reads the past calls. A field that an entry must not have, or a wrong one, makes the
// whole call unreadable.
func (c *Call) setHistory(raw []byte, lim value.Limits) error {
	c.HistoryKnown = true
	for entry, err := range value.SplitArray(raw) {
		if err != nil {
			return fmt.Errorf("expected a list of past calls: %w", err)
		}
		if len(c.History) == MostPast {
			return fmt.Errorf("expected at most %d past calls", MostPast)
		}
		past, err := parsePast(entry, lim)
		if err != nil {
			return fmt.Errorf("past call %d: %w", len(c.History)+1, err)
		}
		c.History = append(c.History, past)
	}

	return nil
}

// parsePast reads one past call.
func parsePast(raw []byte, lim value.Limits) (PastCall, error) {
	past := PastCall{}
	seen := map[string]bool{}
	for m, err := range value.SplitObject(raw) {
		if err != nil {
			return past, err
		}
		if seen[m.Key] {
			return past, fmt.Errorf("%s: the field stands twice", m.Key)
		}
		seen[m.Key] = true
		if err := past.set(m.Key, m.Raw, lim); err != nil {
			return past, fmt.Errorf("%s: %w", m.Key, err)
		}
	}

	must, _ := fieldsOf(past.Kind)
	if must == nil {
		return past, fmt.Errorf("kind: %s is no kind of call, expected tool, mcp_tool, skill or delegation",
			quote(string(past.Kind)))
	}
	for _, field := range append([]string{"at", "states"}, must...) {
		if !seen[field] {
			return past, fmt.Errorf("%s: a past call of kind %s needs this field", field, past.Kind)
		}
	}
	for _, field := range []string{"tool", "server", "agent", "skill", "server_ref"} {
		fits := slices.Contains(must, field) || field == "server_ref" && past.Kind == MCPTool
		if seen[field] && !fits {
			return past, fmt.Errorf("%s: a past call of kind %s has no such field", field, past.Kind)
		}
	}

	return past, nil
}

func (past *PastCall) set(field string, raw []byte, lim value.Limits) (err error) {
	texts := map[string]*string{
		"agent_id": &past.AgentID, "principal": &past.Principal, "session": &past.Session,
		"kind": (*string)(&past.Kind), "tool": &past.Tool, "server": &past.Server, "agent": &past.Agent,
		"skill": &past.Skill, "server_ref": &past.ServerRef,
	}
	switch field {
	case "at":
		past.At, err = parseMoment(raw, lim)
		return err
	case "states":
		return past.setStates(raw, lim)
	case "args":
		past.Args = raw
		v, err := value.Parse(raw, lim)
		if err == nil && v.Kind != value.Object {
			err = errors.New("expected an object")
		}
		return err
	}
	text := texts[field]
	if text == nil {
		const known = "at, states, agent_id, principal, session, kind, tool, server, agent, skill, server_ref or args"
		return errors.New("unknown field, expected one of " + known)
	}
	v, err := value.Parse(raw, lim)
	if err != nil {
		return err
	}
	if v.Kind != value.String || v.Text == "" {
		return errors.New("expected a string that is not empty")
	}
	*text = v.Text

	return nil
}

func (past *PastCall) setStates(raw []byte, lim value.Limits) error {
	v, err := value.Parse(raw, lim)
	if err != nil {
		return err
	}
	var known []string
	for _, s := range condition.PastStates() {
		known = append(known, string(s))
	}
	if v.Kind != value.Array || len(v.Items) == 0 {
		return errors.New("expected a list of states, such as [\"ran\"]")
	}
	for _, item := range v.Items {
		if item.Kind != value.String || !slices.Contains(known, item.Text) {
			hint := ""
			if near := diag.Nearest(item.Text, known); near != "" {
				hint = fmt.Sprintf(", did you mean %q", near)
			}
			return fmt.Errorf("%s is no state of a call%s", item.AppendJSON(nil), hint)
		}
		past.States = append(past.States, condition.PastState(item.Text))
	}

	return nil
}

// history adds the past calls in the form that ParseCall reads.
func (o *callObject) history(calls []PastCall) {
	list := []byte{'['}
	for i := range calls {
		past := &calls[i]
		e := &callObject{}
		e.text("at", past.At.UTC().Format(time.RFC3339Nano))
		e.value("states", past.States)
		e.text("agent_id", past.AgentID)
		e.text("principal", past.Principal)
		e.text("session", past.Session)
		e.text("kind", string(past.Kind))
		e.text("tool", past.Tool)
		e.text("server", past.Server)
		e.text("agent", past.Agent)
		e.text("skill", past.Skill)
		e.text("server_ref", past.ServerRef)
		e.raw("args", past.Args)
		text, err := e.end()
		if err != nil && o.err == nil {
			o.err = err
		}
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, text...)
	}
	o.raw("history", append(list, ']'))
}
