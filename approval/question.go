package approval

import (
	"context"
	"errors"
	"time"

	"github.com/assent-dev/assent/resolve"
)

// Question is what a tool asks somebody before it goes on: a RAP user choice. Prompt and Choices are the tool's own words; every channel
// shows what we know of the call first, and these as a quotation.
type Question struct {
	Asker   string   `json:"asker"` // who asks: the name under which the tool server is registered with us
	Prompt  string   `json:"prompt"`
	Choices []string `json:"choices"` // in the tool's order; an answer is an index, also where labels are equal or empty
	Default int      `json:"default"` // index of what a dismissal picks
	// Groups may answer, with the bars that approvals have: not the requester, not the person whom the agent acts for, not an owner. Without
	// groups it is the user who is asked, as the protocol has it: the person whom the agent acts for, or any approver when nobody is named.
	Groups []string `json:"groups,omitempty"`
}

// AskInput puts a question to people.
type AskInput struct {
	Tenant   string
	Agent    string
	Runtime  string
	Person   string
	Key      string // the same key is the same question; required
	Call     *resolve.Call
	Question Question
	Within   time.Duration // until it expires; Config.Within when 0
}

// Ask makes a request of a question. It doesn't decide whether the call may run: that was decided before. It is refused only where the rules
// deny the call now or a freeze stops the agent. Questions are not coalesced, no standing approval and no cool-down answers them: the protocol
// forbids answering one question by the answer to another (U13, U19).
func (s *Service) Ask(ctx context.Context, in AskInput) (*Opened, error) {
	return nil, errors.New("being written")
}
