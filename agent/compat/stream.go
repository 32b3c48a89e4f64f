package compat

import (
	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// stream yields a run in pieces.
type stream struct {
	r     *run
	yield func(*agent.Update, error) bool
}

// nameMessages makes the two ids of a streamed run: all results of the run are one message, and
// so are the calls whose own message is unknown.
func (s *stream) nameMessages() (err error) {
	if s.r.toolID, err = s.r.freshID(); err == nil {
		s.r.callID, err = s.r.freshID()
	}
	return err
}

func (s *stream) give(u *agent.Update) error {
	if !s.yield(u, nil) {
		return errLeft
	}
	return nil
}

// emit yields a message that was made here.
func (s *stream) emit(m *content.Message) error {
	return s.give(&agent.Update{
		Role:           m.Role,
		AuthorName:     m.AuthorName,
		MessageID:      m.ID,
		Contents:       m.Contents,
		ConversationID: s.r.opt.ConversationID,
	})
}

// turn yields a turn of the model as it arrives.
func (s *stream) turn() (turn, error) {
	h := &heldBack{s: s}
	for u, err := range s.r.model.Stream(s.r.ctx, s.r.send, s.r.opt) {
		if err == nil && u == nil {
			err = agent.ErrNilUpdate
		}
		if err == nil {
			err = h.take(u)
		}
		if err != nil {
			return turn{}, err
		}
	}

	if err := h.release(); err != nil {
		return turn{}, err
	}
	whole := agent.Join(h.all)
	return turn{
		messages:     whole.Messages,
		conversation: whole.ConversationID,
		asked:        h.asked,
	}, nil
}

// heldBack holds pieces until it is known whether their calls need approval.
type heldBack struct {
	s       *stream
	all     []*agent.Update // updates of the turn so far
	given   int             // how many of them were yielded
	holding bool            // a live call has arrived
	asked   bool            // one of the calls needs approval, so nothing is held any more
	served  served
}

// take adds a piece and yields the pieces that need not be held. A result that arrives after
// its call became a request can't undo the request, but marks the call in it as handled.
func (h *heldBack) take(u *agent.Update) error {
	h.all = append(h.all, u)
	h.served.note(u.Contents)
	for _, c := range liveIn(u.Contents) {
		h.holding = true
		h.asked = h.s.r.needsApproval(c) || h.asked
	}
	if h.holding && !h.asked {
		return nil
	}
	return h.release()
}

func (h *heldBack) release() error {
	for ; h.given < len(h.all); h.given++ {
		u := h.all[h.given]
		if h.asked {
			wrapped := *u
			wrapped.Contents = h.s.r.wrap(u.Contents)
			u = &wrapped
		}
		if err := h.s.give(u); err != nil {
			return err
		}
	}

	return nil
}
