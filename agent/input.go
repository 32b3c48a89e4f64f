package agent

import (
	"fmt"
	"slices"

	"github.com/assent-dev/assent/agent/content"
)

// input is the input of a run, split into its parts.
type input struct {
	history []*content.Message // messages that the model may see
	anchor  int                // index in history of the calls that this run finishes
	answers []content.InputResponse
	refused []Refusal                 // answers in messages of other roles than user
	results []*content.FunctionResult // results of calls that the caller runs
	more    bool                      // the user wrote something other than answers
}

// inputReader splits the messages of a run into its parts. Requests, answers and expected
// results belong to the thread, so they are removed from the history.
type inputReader struct {
	t        *Thread
	lasting  bool // the caller keeps the thread from run to run
	messages []*content.Message
	first    int // only the user's messages from this index on can answer
	in       input
}

func readInput(t *Thread, lasting bool, messages []*content.Message, first int) input {
	r := &inputReader{
		t:        t,
		lasting:  lasting,
		messages: messages,
		first:    first,
		in:       input{anchor: -1},
	}
	for i := range messages {
		r.message(i)
	}
	if r.in.anchor < 0 {
		r.in.anchor = len(r.in.history)
	}
	return r.in
}

func (r *inputReader) message(i int) {
	m := r.messages[i]
	kept, answered := r.sift(i)
	if answered {
		r.in.anchor = len(r.in.history)
	}
	if len(kept) == 0 {
		return
	}
	if i >= r.first && m.Role == content.User {
		r.in.more = true
		if r.in.anchor < 0 {
			r.in.anchor = len(r.in.history)
		}
	}

	if len(kept) != len(m.Contents) {
		m = m.With(kept)
	}
	r.in.history = append(r.in.history, m)
}

// sift returns the contents of a message that a model may see, and whether it contained an
// answer.
func (r *inputReader) sift(i int) (kept []content.Content, answered bool) {
	m := r.messages[i]
	apart := func(c content.Content) bool { return r.apart(i, c) }
	if !slices.ContainsFunc(m.Contents, apart) {
		return m.Contents, false
	}
	for _, c := range m.Contents {
		switch {
		case !apart(c):
			kept = append(kept, c)
		case i >= r.first:
			answered = r.take(c, m.Role) || answered
		}
	}

	return kept, answered
}

// apart reports whether a content of a message is removed from the history.
func (r *inputReader) apart(i int, c content.Content) bool {
	fresh := i >= r.first
	if result, ok := c.(*content.FunctionResult); ok {
		return fresh && r.wantsResult(result.CallID, i)
	}
	if fresh {
		return isQuestion(c)
	}
	return !r.t.keeps(c)
}

// take stores an answer or a result for the thread. It returns false for an answer in a message
// of another role than user.
func (r *inputReader) take(c content.Content, role content.Role) bool {
	switch c := c.(type) {
	case content.InputResponse:
		if role != content.User {
			r.in.refused = append(
				r.in.refused,
				Refusal{
					RequestID: c.InputResponseTo(),
					Reason:    NotOfUser,
					Detail: fmt.Sprintf(
						"an answer comes in a message of the user, and this one stands in one of role %q",
						role,
					),
				},
			)
			return false
		}

		r.in.answers = append(r.in.answers, c)
		return true
	case *content.FunctionResult:
		r.in.results = append(r.in.results, c)
		return true
	}

	return false
}

// wantsResult reports whether a new result is meant for the thread and not for the history: it
// belongs to a waiting call, or to a call that doesn't exist.
func (r *inputReader) wantsResult(callID string, i int) bool {
	return r.t.pendingCall(callID) != nil || r.lasting && !holdsCall(r.messages[:i+1], callID)
}

// holdsCall searches from the end, since a result usually follows its call closely.
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

// keeps reports whether a content belongs in the history. Requests and answers don't, except
// for requests of the model's service that this thread has closed, and answers that match the
// recorded outcome.
func (t *Thread) keeps(c content.Content) bool {
	switch c := c.(type) {
	case content.InputRequest:
		return t.forService(c.InputRequestID(), func(closedRequest) bool { return true })
	case content.InputResponse:
		return t.forService(c.InputResponseTo(), func(ended closedRequest) bool {
			return ended.Yes == !content.Rejects(c)
		})
	}

	return true
}

// forService reports whether a request of the model's service has been closed in a way that how
// accepts.
func (t *Thread) forService(id string, how func(closedRequest) bool) bool {
	return slices.ContainsFunc(t.closed, func(c closedRequest) bool { return c.Service && c.ID == id && how(c) })
}

// FirstNew returns the index of the first new message of a run: Options.Fresh messages before
// the end, or by default after the last message whose role is neither user nor tool. Only new
// messages can answer requests.
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

// tidy returns a history that every provider accepts: each call has exactly one result,
// directly after it. It removes calls without a result and results without a call, and moves
// results that come later. It returns a valid history unchanged.
func tidy(messages []*content.Message) []*content.Message {
	if inOrder(messages) {
		return messages
	}
	results := map[string][]*content.FunctionResult{}
	for r := range content.All[*content.FunctionResult](messages) {
		results[r.CallID] = append(results[r.CallID], r)
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

// pair removes results, and calls that have none. It returns the results of the remaining calls
// separately.
func pair(
	contents []content.Content,
	results map[string][]*content.FunctionResult,
) (kept, found []content.Content) {
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

// inOrder reports whether each call of a history has exactly one result, with only results
// between the two.
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
