package compat

import (
	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// stream gives out a run piece by piece.
type stream struct {
	r     *run
	yield func(*agent.Update, error) bool
}

// nameMessages makes the two ids of a streamed run: results of one run
// are one message, and so are calls whose own message is unknown.
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

// emit gives out a message that was made here.
func (s *stream) emit(m *content.Message) error {
	return s.give(&agent.Update{
		Role:           m.Role,
		AuthorName:     m.AuthorName,
		MessageID:      m.ID,
		Contents:       m.Contents,
		ConversationID: s.r.opt.ConversationID,
	})
}

// turn gives out a turn of the model while it comes.
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

// heldBack keeps pieces back until it is known whether their calls must
// be asked about.
type heldBack struct {
	s       *stream
	all     []*agent.Update // of the turn, as they came
	given   int             // of all
	holding bool            // a live call has come
	asked   bool            // one of them needs approval: from here on nothing is held
	served  served
}

// take looks at a piece and gives out what may be. A result that comes
// after its call was asked about is too late for that, but flags the
// call inside the request.
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
