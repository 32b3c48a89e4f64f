package agent

import (
	"fmt"
	"slices"

	"github.com/assent-dev/assent/agent/content"
)

// input is what a run was given, taken apart.
type input struct {
	history []*content.Message // what a model may see of it
	anchor  int                // place in the history of calls that this run finishes
	answers []content.InputResponse
	refused []Refusal                 // answers that no user gave
	results []*content.FunctionResult // of calls that the caller runs
	more    bool                      // the user wrote something beside answers
}

// readInput takes the messages of a run apart. Requests, answers and results that are waited for
// belong to the thread, so the history goes without them. Only the user's new messages can answer:
// those from first on.
func readInput(messages []*content.Message, first int, t *Thread) input {
	in := input{anchor: -1}
	for i, m := range messages {
		fresh := i >= first
		kept, answered := in.sift(m, fresh, t, messages[:i+1])
		if answered {
			in.anchor = len(in.history)
		}
		if len(kept) == 0 {
			continue
		}
		if fresh && m.Role == content.User {
			in.more = true
			if in.anchor < 0 {
				in.anchor = len(in.history)
			}
		}
		if len(kept) != len(m.Contents) {
			m = m.With(kept)
		}
		in.history = append(in.history, m)
	}
	if in.anchor < 0 {
		in.anchor = len(in.history)
	}
	return in
}

// sift returns the contents of a message that a model may see, and whether something in it was an
// answer.
func (in *input) sift(m *content.Message, fresh bool, t *Thread, upTo []*content.Message) (kept []content.Content, answered bool) {
	apart := func(c content.Content) bool {
		if r, ok := c.(*content.FunctionResult); ok {
			return fresh && t.wantsResult(r.CallID, upTo)
		}
		return fresh && isQuestion(c) || !fresh && !t.tells(c)
	}
	if !slices.ContainsFunc(m.Contents, apart) {
		return m.Contents, false
	}
	for _, c := range m.Contents {
		if !apart(c) {
			kept = append(kept, c)
			continue
		}
		if !fresh {
			continue
		}
		switch c := c.(type) {
		case content.InputResponse:
			if m.Role != content.User {
				detail := fmt.Sprintf("an answer comes in a message of the user, and this one stands in one of role %q", m.Role)
				in.refused = append(in.refused, Refusal{c.InputResponseTo(), NotOfUser, detail})
				continue
			}
			in.answers, answered = append(in.answers, c), true
		case *content.FunctionResult:
			in.results, answered = append(in.results, c), true
		}
	}
	return kept, answered
}

// wantsResult tells whether a new result is for the thread and not for the history: of a call that
// waits, or of one that nobody made.
func (t *Thread) wantsResult(callID string, upTo []*content.Message) bool {
	return t.pendingCall(callID) != nil || t.lasting && !holdsCall(upTo, callID)
}

// holdsCall looks from the end, since a result mostly follows its call.
func holdsCall(messages []*content.Message, callID string) bool {
	for _, m := range slices.Backward(messages) {
		for _, c := range m.Contents {
			if call, ok := c.(*content.FunctionCall); ok && call.CallID == callID {
				return true
			}
		}
	}
	return false
}

// tells holds for what belongs into a history: all but questions and answers, and of these the two
// halves of what the model's side asked and this thread got answered, as it was answered.
func (t *Thread) tells(c content.Content) bool {
	switch c := c.(type) {
	case content.InputRequest:
		return t.forService(c.InputRequestID(), func(closedRequest) bool { return true })
	case content.InputResponse:
		return t.forService(c.InputResponseTo(), func(ended closedRequest) bool { return ended.Yes == !content.Rejects(c) })
	}
	return true
}

// forService tells whether a question of the model's side has ended in some way.
func (t *Thread) forService(id string, how func(closedRequest) bool) bool {
	return slices.ContainsFunc(t.closed, func(c closedRequest) bool { return c.Service && c.ID == id && how(c) })
}

// FirstNew is where the new messages of a run begin: the count of Options.Fresh from the end;
// without one, after the last message that is neither the user's nor a tool's. Only new messages
// can answer.
func FirstNew(messages []*content.Message, fresh int) int {
	switch {
	case fresh > 0:
		return max(0, len(messages)-fresh)
	case fresh < 0:
		return len(messages)
	}
	for i, m := range slices.Backward(messages) {
		if m.Role != content.User && m.Role != content.ToolRole {
			return i + 1
		}
	}
	return 0
}

// tidy makes a history that any provider takes: each call has exactly one result, right after it.
// Calls without a result and results without a call are left out; a result that stands later is
// moved. A history that is in order is returned as it is.
func tidy(messages []*content.Message) []*content.Message {
	if inOrder(messages) {
		return messages
	}
	results := map[string][]*content.FunctionResult{}
	for _, m := range messages {
		for _, c := range m.Contents {
			if r, ok := c.(*content.FunctionResult); ok {
				results[r.CallID] = append(results[r.CallID], r)
			}
		}
	}
	var out []*content.Message
	for _, m := range messages {
		kept, found := pair(m.Contents, results)
		if len(kept) > 0 || len(m.Contents) == 0 {
			out = append(out, m.With(kept))
		}
		if len(found) > 0 {
			out = append(out, content.NewMessage(content.ToolRole, found...))
		}
	}
	return out
}

// pair drops results, and calls that have none; the results of the other calls are returned apart.
func pair(contents []content.Content, results map[string][]*content.FunctionResult) (kept, found []content.Content) {
	for _, c := range contents {
		switch c := c.(type) {
		case *content.FunctionResult:
			continue
		case *content.FunctionCall:
			of := results[c.CallID]
			if len(of) == 0 {
				continue
			}
			results[c.CallID] = of[1:]
			found = append(found, of[0])
		}
		kept = append(kept, c)
	}
	return kept, found
}

// inOrder tells whether each call of a history has exactly one result before anything but results
// follows.
func inOrder(messages []*content.Message) bool {
	var waiting []string
	for _, m := range messages {
		if len(waiting) > 0 && m.Role != content.ToolRole {
			return false
		}
		for _, c := range m.Contents {
			switch c := c.(type) {
			case *content.FunctionCall:
				waiting = append(waiting, c.CallID)
			case *content.FunctionResult:
				i := slices.Index(waiting, c.CallID)
				if i < 0 {
					return false
				}
				waiting = slices.Delete(waiting, i, i+1)
			}
		}
	}
	return len(waiting) == 0
}
