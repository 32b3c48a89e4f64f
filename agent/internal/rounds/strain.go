package rounds

import (
	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// strainAll returns the messages without the contents that Take removes. Messages that become
// empty are removed too.
func (r *Round) strainAll(messages []*content.Message) ([]*content.Message, error) {
	if r.Take == nil {
		return messages, nil
	}
	var out []*content.Message
	for _, m := range messages {
		kept, err := strain(m.Contents, r.Take)
		if err != nil {
			return nil, err
		}
		if len(kept) == len(m.Contents) {
			out = append(out, m)
		} else if len(kept) > 0 {
			out = append(out, m.With(kept))
		}
	}

	return out, nil
}

func strain(contents []content.Content, take func(content.Content) (bool, error)) ([]content.Content, error) {
	var kept []content.Content
	for _, c := range contents {
		ok, err := take(c)
		if err != nil {
			return nil, err
		}
		if ok {
			kept = append(kept, c)
		}
	}

	return kept, nil
}

// strainer removes contents from updates. If an update becomes empty, its message fields are
// used for the next one, so that joining the updates gives the same result as straining whole
// messages.
type strainer struct {
	take func(content.Content) (bool, error)
	head *agent.Update
}

// update returns the remaining part of an update, or nil if nothing remains.
func (s *strainer) update(u *agent.Update) (*agent.Update, error) {
	if s.take == nil {
		return u, nil
	}
	kept, err := strain(u.Contents, s.take)
	if err != nil {
		return nil, err
	}
	out := *u
	out.Contents = kept
	s.follow(&out)
	if len(kept) > 0 || len(u.Contents) == 0 {
		return &out, nil
	}
	s.head = &agent.Update{
		Role:       out.Role,
		MessageID:  out.MessageID,
		AuthorName: out.AuthorName,
	}
	out.Role = ""
	out.MessageID = ""
	out.AuthorName = ""
	if out.ID == "" && out.Model == "" && out.ConversationID == "" && out.FinishReason == "" &&
		len(out.Refused) == 0 {
		return nil, nil
	}
	return &out, nil
}

// follow copies the message fields of an emptied update to the update that continues its
// message.
func (s *strainer) follow(u *agent.Update) {
	h := s.head
	if h == nil || len(u.Contents) == 0 && u.MessageID == "" && u.Role == "" {
		return
	}
	s.head = nil
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	if differ(h.MessageID, u.MessageID) || differ(string(h.Role), string(u.Role)) ||
		differ(h.AuthorName, u.AuthorName) {
		return
	}
	fill := func(to *string, v string) {
		if *to == "" {
			*to = v
		}
	}
	fill((*string)(&u.Role), string(h.Role))
	fill(&u.MessageID, h.MessageID)
	fill(&u.AuthorName, h.AuthorName)
}
