package rounds

import "github.com/assent-dev/assent/agent/content"

// At is the position of a content in the messages.
type At struct{ Message, Content int }

// Each visits the contents of messages in order.
func Each(messages []*content.Message, do func(At, content.Content)) {
	for i, m := range messages {
		for j, c := range m.Contents {
			do(At{Message: i, Content: j}, c)
		}
	}
}

// Rewrite replaces the contents of the messages with the results of other, which returns nil to
// remove a content. Messages that become empty are removed. It returns the number of remaining
// messages that were at index first or later.
func Rewrite(
	messages []*content.Message, first int, other func(At, content.Content) content.Content,
) (out []*content.Message, fresh int) {
	for i, m := range messages {
		changed := false
		var kept []content.Content
		for j, c := range m.Contents {
			now := other(At{Message: i, Content: j}, c)
			changed = changed || now != c
			if now != nil {
				kept = append(kept, now)
			}
		}

		if changed && len(kept) == 0 {
			continue
		}
		if changed {
			m = m.With(kept)
		}
		out = append(out, m)
		if i >= first {
			fresh++
		}
	}

	return out, fresh
}

// openCalls returns the live function calls without a result in the same messages.
func openCalls(messages []*content.Message) []*content.FunctionCall {
	done := map[string]bool{}
	for r := range content.All[*content.FunctionResult](messages) {
		done[r.CallID] = true
	}
	var out []*content.FunctionCall
	for call := range content.All[*content.FunctionCall](messages) {
		if !call.InformationalOnly && !done[call.CallID] {
			out = append(out, call)
		}
	}
	return out
}
