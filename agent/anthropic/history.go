package anthropic

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assent-dev/assent/agent/content"
)

// The roles of the API.
const (
	user      = "user"
	assistant = "assistant"
)

// turn is one message of the API. Results of calls precede all other blocks.
type turn struct {
	role    string
	results [][]byte
	blocks  [][]byte
}

// history converts messages to turns and checks the rules of the API.
type history struct {
	system [][]byte
	turns  []*turn
	open   map[string]bool // calls of the last assistant turn that have no result yet
	inert  map[string]bool // ids of calls that are not sent
	skip   map[*content.FunctionCall]bool
	mcp    bool // there are blocks of the MCP connector
}

// newHistory determines which marked calls are sent. Loops mark calls that they have run, and
// these are sent with their results. A marked call without a result was handled elsewhere and
// is not sent.
func newHistory(messages []*content.Message) *history {
	h := &history{
		open:  map[string]bool{},
		inert: map[string]bool{},
		skip:  map[*content.FunctionCall]bool{},
	}
	waiting := map[string]int{} // number of results for which no earlier call has been found yet
	for _, m := range slices.Backward(messages) {
		if m == nil {
			continue
		}
		for _, c := range slices.Backward(m.Contents) {
			h.look(c, waiting)
		}
	}

	return h
}

func (h *history) look(c content.Content, waiting map[string]int) {
	switch c := c.(type) {
	case *content.FunctionResult:
		waiting[c.CallID]++
	case *content.FunctionCall:
		switch {
		case waiting[c.CallID] > 0:
			waiting[c.CallID]--
		case c.InformationalOnly:
			h.inert[c.CallID], h.skip[c] = true, true
		}
	}
}

// addSystem adds to the system prompt.
func (h *history) addSystem(s string) {
	if !blank(s) {
		h.system = append(h.system, object(text("type", "text"), text("text", s)))
	}
}

// blank reports whether the API rejects a text as blank.
func blank(s string) bool { return strings.TrimSpace(s) == "" }

// add adds one message. Each content is assigned to a turn separately, so a message may contain
// calls and their results.
func (h *history) add(where string, m *content.Message) error {
	if m == nil {
		return badContent(where, "there is no message")
	}
	role := user
	switch m.Role {
	case content.System:
		return h.addSystemMessage(where, m)
	case content.Assistant:
		role = assistant
	case content.User, content.ToolRole:
	default:
		return unsupported(where+".role", fmt.Sprintf("there is no role %q", m.Role))
	}

	for i, c := range m.Contents {
		if err := h.put(fmt.Sprintf("%s.contents[%d]", where, i), role, c); err != nil {
			return err
		}
	}
	return nil
}

func (h *history) addSystemMessage(where string, m *content.Message) error {
	for i, c := range m.Contents {
		t, ok := c.(*content.Text)
		if !ok {
			return unsupported(
				fmt.Sprintf("%s.contents[%d]", where, i),
				"only text can stand in a system message",
			)
		}

		h.addSystem(t.Text)
	}

	return nil
}

// put adds one content of a message.
func (h *history) put(where, role string, c content.Content) error {
	switch c := c.(type) {
	case *content.FunctionCall:
		return h.putCall(where, role, c)
	case *content.FunctionResult:
		return h.putResult(where, c)
	case *content.MCPCall, *content.MCPResult:
		h.mcp = true
	}

	raw, err := block(where, role, c)
	if err != nil || raw == nil {
		return err
	}
	t, err := h.turn(where, role)
	if err != nil {
		return err
	}
	t.blocks = append(t.blocks, raw)
	return nil
}

func (h *history) putCall(where, role string, c *content.FunctionCall) error {
	switch {
	case h.skip[c]:
		return nil
	case role != assistant:
		return badHistory(where, "a call outside of an assistant's message")
	case c.CallID == "" || c.Name == "":
		return badHistory(where, "a call without an id or a name")
	}

	t, err := h.turn(where, role)
	if err != nil {
		return err
	}
	if h.open[c.CallID] {
		return badHistory(where, fmt.Sprintf("two calls %q in one turn", c.CallID))
	}
	h.open[c.CallID] = true
	t.blocks = append(t.blocks, callBlock(c))
	return nil
}

// putResult adds the result of a call to the turn after it. Results of marked calls are left
// out if the call was.
func (h *history) putResult(where string, r *content.FunctionResult) error {
	if !h.open[r.CallID] {
		if h.inert[r.CallID] {
			return nil
		}
		return badHistory(
			where,
			fmt.Sprintf("the result of %q answers no open call of the turn before", r.CallID),
		)
	}

	delete(h.open, r.CallID)
	if last := h.turns[len(h.turns)-1]; last.role != user {
		h.turns = append(h.turns, &turn{role: user})
	}
	t := h.turns[len(h.turns)-1]
	t.results = append(t.results, resultBlock(r))
	return nil
}

// turn returns the last turn if it has the role, or begins another one. An assistant turn can't
// begin before all calls have results.
func (h *history) turn(where, role string) (*turn, error) {
	if n := len(h.turns); n > 0 && h.turns[n-1].role == role {
		return h.turns[n-1], nil
	}
	if role == assistant {
		if err := h.closed(where); err != nil {
			return nil, err
		}
	}
	t := &turn{role: role}
	h.turns = append(h.turns, t)
	return t, nil
}

// closed returns an error unless every call has its result.
func (h *history) closed(where string) error {
	if len(h.open) == 0 {
		return nil
	}
	return badHistory(where, fmt.Sprintf("no result follows the calls %q", slices.Sorted(maps.Keys(h.open))))
}

// finish writes the turns.
func (h *history) finish() ([]byte, error) {
	if err := h.closed("messages"); err != nil {
		return nil, err
	}
	if len(h.turns) == 0 {
		return nil, badHistory("messages", "there is nothing to answer")
	}
	var out [][]byte
	for _, t := range h.turns {
		blocks := array(slices.Concat(t.results, t.blocks))
		out = append(out, object(text("role", t.role), pair{"content", blocks}))
	}
	return array(out), nil
}
