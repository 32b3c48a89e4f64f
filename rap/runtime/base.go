package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/internal/names"
	"github.com/assent-dev/assent/rap/peer"
)

// base is what all parts of a runtime share.
type base struct {
	cfg       Config
	names     names.Namer
	log       *slog.Logger
	callbacks string                 // CallbackURL without trailing slashes
	servers   map[string]*toolServer // by name
	engine    *durable.Engine[part]
	known     *durable.Vault[thread]
	events    *durable.Vault[keptNews]
	views     *durable.Vault[keptView]
	threads   locks
}

// toolServer is a registered server with its HTTP client.
type toolServer struct {
	Server
	peer   *peer.Peer
	base   string
	bodies chan struct{} // one slot per callback in memory
}

func (b *base) now() time.Time { return b.cfg.Now() }

func (b *base) register(s Server) error {
	switch {
	case s.Name == "":
		return errors.New("its name is missing")
	case b.servers[s.Name] != nil:
		return errors.New("the name is used twice")
	case s.Peer.URL == "":
		return errors.New("its URL is missing")
	}

	p, err := peer.New(s.Peer)
	if err != nil {
		return err
	}
	b.servers[s.Name] = &toolServer{s, p, strings.TrimRight(s.Peer.URL, "/"), make(chan struct{}, maxBodies)}
	return nil
}

// note records an event that has happened already. A failure is only logged.
func (b *base) note(ctx context.Context, event string, c *call, facts map[string]any) {
	if err := b.record(ctx, event, c, facts); err != nil {
		b.log.Error("the ledger lacks an event", "call", callName(c.Key), "error", plainError(err))
	}
}

// record writes an event to the ledger, with the asker and the user that it named. The subject
// is derived from the digest of the call's ids.
func (b *base) record(ctx context.Context, event string, c *call, facts map[string]any) error {
	if b.cfg.Record == nil {
		return nil
	}
	p := &c.Part
	operation := p.Operation
	if p.Server == "" {
		operation = "unknown" // the text may come from a model
	}
	all := map[string]any{
		"server":    p.Server,
		"operation": operation,
		"thread":    durable.Hash(p.Thread),
		"arguments": "sha256:" + durable.Hash(string(c.Args())),
		"person":    c.Asker.Person,
		"principal": p.User,
	}
	for name, fact := range facts {
		all[name] = fact
	}
	if err := b.cfg.Record(ctx, event, callName(c.Key), c.Asker.Token, all); err != nil {
		return fmt.Errorf("write %s to the ledger: %w", event, err)
	}
	return nil
}

// expired reports whether an expiry has passed. The record may still be stored.
func (b *base) expired(expires time.Time) bool {
	return !expires.IsZero() && !b.now().Before(expires)
}

// changeThread changes the state of a thread, which may be new.
func (b *base) changeThread(ctx context.Context, key string, change func(*thread)) (thread, error) {
	d, err := b.known.Edit(ctx, key, func(d *durable.Doc[thread]) error {
		change(&d.Body)
		d.Expires = b.now().Add(keepLive)
		return nil
	})
	if err != nil {
		return thread{}, err
	}
	return d.Body, nil
}

// closeThread marks a thread as closed, and reports whether it was before.
func (b *base) closeThread(ctx context.Context, key string) (before bool, err error) {
	_, err = b.changeThread(ctx, key, func(t *thread) { before, t.Closed = t.Closed, true })
	return before, err
}

func (b *base) isClosed(ctx context.Context, key string) (bool, error) {
	d, err := b.known.Get(ctx, key)
	if errors.Is(err, approval.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return d.Body.Closed, nil
}

// userOf returns the person of the directory whom a call is made for, or an empty string.
func (b *base) userOf(ctx context.Context, c *call) (string, error) {
	if c.Part.User == "" || b.cfg.Person == nil {
		return c.Asker.Person, nil
	}
	id, known, err := b.cfg.Person(ctx, c.Part.User)
	if err != nil {
		return "", fmt.Errorf("find the call's user: %w", err)
	}
	if !known {
		return "", nil
	}

	return id, nil
}

// lease returns the time limit for a request to a call's server.
func (b *base) lease(c *call) time.Duration {
	const most, spare = 10 * time.Second, 15 * time.Second
	if s := b.servers[c.Part.Server]; s != nil && s.Peer.Timeout > 0 {
		return s.Peer.Timeout + spare
	}

	return most + spare
}

// writeEnding stores how a call ended. An answer that was not delivered is not posted any more.
func (b *base) writeEnding(c *call, how durable.Ending) {
	p := &c.Part
	if p.Choice != nil && p.Choice.State != choiceDelivered {
		p.Choice.State = choiceFailed
	}
	p.Told.SignIn, p.Told.SignInHost = "", ""
	if how.Why == durable.Returned { // the tool's own result is stored
		return
	}

	why, text := describeEnding(c, how)
	p.Told.Outcome = &rap.Outcome{Text: "Error: " + text}
	p.Told.Why = why
	p.Told.Failed = true
	p.tell = toldOf(c, how.Why)
}

// asksToSignIn reports whether a call waits for its user to sign in.
func (b *base) asksToSignIn(c *call) bool {
	return c.Part.Told.SignIn != "" && !c.Over() && !b.expired(c.Expires) &&
		(c.Deadline.IsZero() || b.now().Before(c.Deadline))
}
