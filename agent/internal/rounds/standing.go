package rounds

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/assent-dev/assent/agent/content"
)

// Standing is the state of a standing layer that is kept between runs.
type Standing[Rule any] struct {
	Shown   Book              `json:"shown"`             // requests that a person was shown
	Queue   []*Request        `json:"queue,omitempty"`   // requests that will be shown
	Answers []json.RawMessage `json:"answers,omitempty"` // answers that wait for the rest of the queue
	Waiting []Waiting         `json:"waiting,omitempty"` // automatic approvals that wait for a person's answers
	Rules   []Rule            `json:"rules,omitempty"`
	// Future rules, from answers that the inner client has not accepted yet.
	Wishes []Rule   `json:"wishes,omitempty"`
	Minted int      `json:"minted,omitempty"` // number of rules and wishes so far, for ids
	Manual []string `json:"manual,omitempty"` // requests that only a person can answer now
}

// Waiting is a request that is approved automatically, with the rule or predicate that approves
// it.
type Waiting struct {
	Request *Request `json:"request"`
	Rule    string   `json:"rule,omitempty"`
	Reason  string   `json:"reason"`
}

func (s *Standing[Rule]) whole() bool {
	return s.Shown.whole() && !slices.ContainsFunc(s.Queue, func(q *Request) bool { return !q.whole() }) &&
		!slices.ContainsFunc(s.Waiting, func(w Waiting) bool { return !w.Request.whole() })
}

// WithoutScopes removes the request for a rule from all answers. It is handled here, and inner
// clients don't need it.
func WithoutScopes(messages []*content.Message) []*content.Message {
	out, _ := Rewrite(messages, 0, func(_ At, c content.Content) content.Content { return WithoutScope(c) })
	return out
}

// WithoutScope removes the request for a rule from an answer.
func WithoutScope(c content.Content) content.Content {
	a, ok := c.(*content.ToolApprovalResponse)
	if !ok || a.Always == content.AlwaysNot {
		return c
	}
	plain := *a
	plain.Always = content.AlwaysNot
	return &plain
}

// Collected returns the answers that waited for the queue, and removes them from the state.
func (s *Standing[Rule]) Collected(key string) ([]content.Content, error) {
	var out []content.Content
	for _, raw := range s.Answers {
		c, err := readContent(raw)
		if err != nil {
			return nil, fmt.Errorf("the state %q of the thread: %w", key, err)
		}
		out = append(out, c)
	}

	s.Answers = nil
	return out, nil
}
