package a2a

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/assent-dev/assent/agent"
)

// journal is a conversation with the thread in which it is stored, so that it survives the end
// of its process.
type journal struct {
	*conversation
	remote *Remote
	place  *agent.Thread // nil if it is not stored
	found  bool          // a previous process began it
}

// journalKey is the key of the thread state that holds the conversation.
const journalKey = "a2a/under-way"

// open finds the conversation that an earlier attempt with this input has begun in this thread,
// or begins one. The journal is written before the message is sent.
func (r *Remote) open(ctx context.Context, input string) (*journal, error) {
	j := &journal{
		remote: r,
		conversation: &conversation{
			MessageID: rand.Text(),
			ContextID: rand.Text(),
			Begun:     r.cfg.Now().UTC(),
		},
	}
	if r.cfg.Journal == nil {
		return j, nil
	}
	outer := ""
	if inv := agent.InvocationOf(ctx); inv != nil && inv.Options.Thread != nil {
		outer = inv.Options.Thread.ID
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", outer, r.cfg.Name, input))
	if err := j.load(ctx, "a2a-"+hex.EncodeToString(sum[:])); err != nil {
		return nil, err
	}
	if j.found {
		return j, nil
	}
	return j, j.keep(ctx)
}

// reopen finds the journal of a conversation that a thread kept. The journal's version is
// newer, because it is written before an answer is sent.
func (r *Remote) reopen(ctx context.Context, c *conversation) (*journal, error) {
	j := &journal{conversation: c, remote: r}
	if r.cfg.Journal == nil || c.Place == "" {
		return j, nil
	}
	if err := j.load(ctx, c.Place); err != nil {
		return nil, err
	}
	switch {
	case j.found && j.MessageID != c.MessageID:
		j.place = nil // the journal is about a later message
		j.conversation = c
	case !j.found || j.task == nil:
		j.conversation = c
	}

	return j, nil
}

// load reads the conversation from the journal, if it is there.
func (j *journal) load(ctx context.Context, id string) error {
	t, err := agent.LoadOrNew(ctx, j.remote.cfg.Journal, id)
	if err != nil {
		return fmt.Errorf("the journal of remote tasks: %w", err)
	}
	t.Keep(j.remote.cfg.Journal)
	j.place = t
	j.Place = id
	text, ok := t.State[journalKey]
	if !ok {
		return nil
	}
	c, err := decodeConversation(text)
	if err != nil {
		return fmt.Errorf("the journal of remote tasks: %w", err)
	}
	j.found, j.conversation = true, c
	return nil
}

// keep stores the conversation. If two processes begin the same message, one of them fails here
// before it sends anything.
func (j *journal) keep(ctx context.Context) error {
	if j.place == nil {
		return nil
	}
	text, err := j.encode()
	if err != nil {
		return err
	}
	if err := j.place.Put(journalKey, text); err != nil {
		return err
	}
	return j.save(ctx)
}

// drop removes a conversation that has ended.
func (j *journal) drop(ctx context.Context) error {
	if j.place == nil {
		return nil
	}
	j.place.Drop(journalKey)
	return j.save(context.WithoutCancel(ctx))
}

func (j *journal) save(ctx context.Context) error {
	if err := j.place.Save(ctx); err != nil {
		return fmt.Errorf("the journal of remote tasks: %w", err)
	}
	return nil
}
