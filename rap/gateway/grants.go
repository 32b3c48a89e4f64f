package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap"
)

// SessionGrant is rap.SessionGrant.
type SessionGrant = rap.SessionGrant

// sessionGrant is a stored session grant with what it depends on. An ended grant is kept until
// it expires, so that a repetition of the call that made it can't restore it.
type sessionGrant struct {
	SessionGrant
	Asker  approval.Asker `json:"asker"`  // of the call that made it
	Thread string         `json:"thread"` // of the call that made it
	Made   time.Time      `json:"made"`
	Ground ground         `json:"ground"`
	Ended  string         `json:"ended,omitempty"`
}

// grantBook keeps the session grants that users made.
type grantBook struct {
	*base
	vault *durable.Vault[sessionGrant]
}

// grantKey returns the key of the grant that an answer to a call makes, below its session. It
// is the same for each repetition.
func grantKey(call string, c *call) string {
	return threadPrefix(c.Caller, c.root()) + durable.Hash("grant of " + call)[:32]
}

func grantID(key string) string {
	_, thread := keyParts(key)
	return "grant_" + key[len(thread):]
}

func (g *sessionGrant) open(now time.Time) bool {
	return g.Ended == "" && g.standing().Live(now)
}

// standing returns what the grant has in common with standing approvals of other kinds.
func (g *sessionGrant) standing() approval.Standing {
	return approval.Standing{
		Basis:   []string{g.Caller, g.Session, g.User, g.Operation, g.Ground.Plan, g.Ground.Tool},
		Rules:   g.Ground.Rules,
		Expires: g.Expires,
		Uses:    g.Uses,
		MaxUses: g.MaxUses,
	}
}

// covers reports whether a grant covers a call: same asker, session, user and operation, the
// operation and the rules unchanged, and no rule asks that the user did not see. A grant also
// covers child threads if that is configured, but never parent threads.
func (b *grantBook) covers(s *sessionGrant, r *record, j *judgment) bool {
	c := &r.Part
	below := b.cfg.Grants.Children && slices.Contains(c.Ancestors, s.Thread)
	if s.Ended != "" || !s.Asker.Same(r.Asker) || s.Thread != c.Thread && !below {
		return false
	}

	standing, now := s.standing(), j.ground()
	uses, life := b.bounds(j.Require)
	standing.MaxUses = min(standing.MaxUses, uses)
	if end := s.Made.Add(life); end.Before(standing.Expires) {
		standing.Expires = end
	}

	return standing.Covers([]string{c.Caller, c.root(), c.User, c.Operation, now.Plan, now.Tool}, now.Rules, b.now())
}

// useGrant takes one use of a session grant that covers the call and returns the grant's key,
// or an empty string if none does.
func (b *grantBook) useGrant(ctx context.Context, r *record, j *judgment) (string, error) {
	c := &r.Part
	if !b.cfg.Grants.Offer || c.Stray {
		return "", nil
	}
	all, err := b.vault.List(ctx, threadPrefix(c.Caller, c.root()), "", 1000)
	if err != nil {
		b.refuse(ctx, "session grants can't be read", err, r) // go on without: the user is asked
	}
	for _, s := range all {
		used, err := b.editGrant(ctx, s.Key, func(s *sessionGrant) bool {
			ok := b.covers(s, r, j)
			if ok {
				s.Uses++
			}
			return ok
		})
		if err != nil {
			return "", err
		}
		if used != nil && b.recordGrant(ctx, "rap_grant_used", used) == nil {
			return s.Key, nil
		}
	}

	return "", nil
}

// makeGrant stores the grant that the user gave for the session. This run is its first use. If
// it returns an ending, the call does not run.
func (b *grantBook) makeGrant(ctx context.Context, r *record) (*durable.Ending, error) {
	c := &r.Part
	now := b.now()
	s := sessionGrant{
		Asker:  r.Asker,
		Thread: c.Thread,
		Made:   now,
		Ground: c.Ground,
		SessionGrant: SessionGrant{
			ID:        grantID(c.Grant),
			Gateway:   b.cfg.Name,
			Caller:    c.Caller,
			Session:   c.root(),
			User:      c.User,
			Operation: c.Operation,
			Uses:      1,
			MaxUses:   c.Question.Uses,
			Expires:   now.Add(c.Question.For),
		},
	}
	if b.recordGrant(ctx, "rap_grant_made", &s) != nil {
		return &durable.Ending{
			Why:    whyFailed,
			Reason: "the session grant could not be recorded; nothing was run",
		}, nil
	}

	d := &durable.Doc[sessionGrant]{
		Key:     c.Grant,
		Alias:   s.ID,
		Expires: s.Expires.Add(rememberEnded),
		Body:    s,
	}
	err := b.vault.Put(ctx, d)
	if errors.Is(err, approval.ErrVersion) { // stored before the process died, and perhaps ended since
		return nil, nil
	}
	return nil, err
}

// editGrant changes a grant by compare-and-set. It returns nil if the grant does not exist or
// edit returned false.
func (b *grantBook) editGrant(
	ctx context.Context,
	key string,
	edit func(*sessionGrant) bool,
) (*sessionGrant, error) {
	d, err := b.vault.Edit(ctx, key, func(d *durable.Doc[sessionGrant]) error {
		if d.Version == 0 || !edit(&d.Body) {
			return durable.ErrUnchanged
		}
		return nil
	})
	if errors.Is(err, durable.ErrUnchanged) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &d.Body, nil
}

// inForce reports whether a grant, one use of which was taken, has not ended since.
func (b *grantBook) inForce(ctx context.Context, key string) (bool, error) {
	d, err := b.vault.Get(ctx, key)
	if errors.Is(err, approval.ErrNotFound) {
		return false, nil
	}
	return err == nil && d.Body.Ended == "" && b.now().Before(d.Body.Expires), err
}

func (b *grantBook) endGrant(ctx context.Context, key, how string) error {
	ended, err := b.editGrant(ctx, key, func(s *sessionGrant) bool {
		was := s.Ended
		s.Ended = how
		return was == ""
	})
	if ended != nil {
		_ = b.recordGrant(ctx, "rap_grant_ended", ended)
	}
	return err
}

// dropGrants ends the grants given in a thread and, if it is the root, in its whole session.
func (b *grantBook) dropGrants(ctx context.Context, caller, thread string) error {
	return b.vault.All(ctx, callerPrefix(caller), func(d *durable.Doc[sessionGrant]) error {
		if d.Body.Thread != thread && d.Body.Session != thread {
			return nil
		}
		return b.endGrant(ctx, d.Key, "closed")
	})
}

// Grants lists the session grants that are in force.
func (g *Gateway) Grants(ctx context.Context) ([]SessionGrant, error) {
	var out []SessionGrant
	err := g.grants.vault.All(ctx, "", func(d *durable.Doc[sessionGrant]) error {
		if d.Body.open(g.now()) {
			out = append(out, d.Body.SessionGrant)
		}
		return nil
	})
	return out, err
}

// Revoke ends a session grant on behalf of the person by, and records the reason in the ledger.
// It returns hold.ErrNoRequest if no such grant is in force. If recording fails, it returns
// that error, and the grant has ended nevertheless.
func (g *Gateway) Revoke(ctx context.Context, id, by, reason string) error {
	d, err := g.grants.vault.ByAlias(ctx, id)
	if errors.Is(err, approval.ErrNotFound) || err == nil && !d.Body.open(g.now()) {
		return fmt.Errorf("revoke a session grant: %w", hold.ErrNoRequest)
	}
	if err != nil {
		return fmt.Errorf("revoke a session grant: %w", err)
	}
	ended, err := g.grants.editGrant(ctx, d.Key, func(s *sessionGrant) bool {
		was := s.Ended
		s.Ended = "revoked"
		return was == ""
	})
	if err != nil || ended == nil {
		return err
	}

	return g.grants.noteGrant(ctx, "rap_grant_ended", ended, by, map[string]any{"reason": reason})
}

// recordGrant records an event of a grant in the ledger, on behalf of the asker.
func (b *grantBook) recordGrant(ctx context.Context, event string, s *sessionGrant) error {
	return b.noteGrant(ctx, event, s, cmp.Or(s.Asker.Token, b.cfg.Namespace), nil)
}

func (b *grantBook) noteGrant(
	ctx context.Context, event string, s *sessionGrant, actor string, more map[string]any,
) error {
	facts := map[string]any{
		"caller":    s.Caller,
		"person":    s.Asker.Person,
		"principal": s.User,
		"operation": s.Operation,
		"session":   durable.Hash(s.Session),
		"uses":      s.Uses,
		"max_uses":  s.MaxUses,
		"ended":     s.Ended,
	}
	maps.Copy(facts, more)
	err := b.cfg.Record(ctx, event, s.ID, actor, facts)
	if err != nil {
		b.cfg.Log.ErrorContext(ctx, "the ledger takes no record", "event", event, "error", err)
	}

	return err
}
