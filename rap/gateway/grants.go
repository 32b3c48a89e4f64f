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

// SessionGrant is what rap.SessionGrant says.
type SessionGrant = rap.SessionGrant

// sessionGrant is a session grant with what it rests on. One that ended
// stays until it expires, so that no repetition of its making brings it
// back.
type sessionGrant struct {
	SessionGrant
	Asker  approval.Asker `json:"asker"`  // whose call it was given to
	Thread string         `json:"thread"` // where it was given
	Made   time.Time      `json:"made"`
	Ground ground         `json:"ground"`
	Ended  string         `json:"ended,omitempty"`
}

// grantKey places the grant that an answer to a call makes: below its
// session, once.
func grantKey(call string, c *call) string {
	return threadPrefix(c.Caller, c.root()) + durable.Hash("grant of " + call)[:32]
}

func grantID(key string) string {
	_, thread := keyParts(key)
	return "grant_" + key[len(thread):]
}

func (g *sessionGrant) open(now time.Time) bool {
	return g.Ended == "" && g.Uses < g.MaxUses && now.Before(g.Expires)
}

// covers reports whether a call may run on a grant: the same asker and
// session, user and operation, as it is now, under the rules of now,
// asked about by no rule that the user did not see. Threads hand grants
// down, never up.
func (g *Gateway) covers(s *sessionGrant, r *record, j *judged) bool {
	c := &r.Part
	below := g.cfg.Grants.Children && slices.Contains(c.Ancestors, s.Thread)
	switch {
	case !s.Asker.Same(r.Asker), s.Caller != c.Caller, s.Session != c.root(), s.User != c.User:
		return false
	case s.Operation != c.Operation, s.Thread != c.Thread && !below, !s.Ground.covers(j.ground()):
		return false
	}

	uses, life := g.bounds(j.Require)
	return s.open(g.now()) && s.Uses < uses && g.now().Before(s.Made.Add(life))
}

// covers reports whether the rules that ask now are among those that
// asked, and nothing else has changed.
func (g ground) covers(now ground) bool {
	other := slices.ContainsFunc(now.Rules, func(rule string) bool { return !slices.Contains(g.Rules, rule) })
	return g.Plan == now.Plan && g.Tool == now.Tool && !other
}

// useGrant takes one use of a session grant that covers the call, and
// returns where it is kept; "" when none does.
func (g *Gateway) useGrant(ctx context.Context, r *record, j *judged) (string, error) {
	c := &r.Part
	if !g.cfg.Grants.Offer || c.Stray {
		return "", nil
	}
	all, err := g.grants.List(ctx, threadPrefix(c.Caller, c.root()), "", 1000)
	if err != nil {
		g.refuse(ctx, "session grants can't be read", err, r) // then the user is asked
	}
	for _, s := range all {
		used, err := g.editGrant(ctx, s.Key, func(s *sessionGrant) bool {
			ok := g.covers(s, r, j)
			if ok {
				s.Uses++
			}
			return ok
		})
		if err != nil {
			return "", err
		}
		if used != nil && g.recordGrant(ctx, "rap_grant_used", used) == nil {
			return s.Key, nil
		}
	}

	return "", nil
}

// makeGrant stores what the user allowed for the session. This run is
// its first use. An ending says why nothing runs.
func (g *Gateway) makeGrant(ctx context.Context, r *record) (*durable.Ending, error) {
	c := &r.Part
	now := g.now()
	s := sessionGrant{
		Asker:  r.Asker,
		Thread: c.Thread,
		Made:   now,
		Ground: c.Ground,
		SessionGrant: SessionGrant{
			ID:        grantID(c.Grant),
			Gateway:   g.cfg.Name,
			Caller:    c.Caller,
			Session:   c.root(),
			User:      c.User,
			Operation: c.Operation,
			Uses:      1,
			MaxUses:   c.Question.Uses,
			Expires:   now.Add(c.Question.For),
		},
	}
	if g.recordGrant(ctx, "rap_grant_made", &s) != nil {
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
	err := g.grants.Put(ctx, d)
	if errors.Is(err, approval.ErrVersion) { // made before the process died, and perhaps ended since
		return nil, nil
	}
	return nil, err
}

// editGrant moves a grant by compare-and-set; nil when there was
// nothing to move.
func (g *Gateway) editGrant(
	ctx context.Context,
	key string,
	edit func(*sessionGrant) bool,
) (*sessionGrant, error) {
	d, err := g.grants.Edit(ctx, key, func(d *durable.Doc[sessionGrant]) error {
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

// inForce reports whether a grant whose use was taken still stands.
func (g *Gateway) inForce(ctx context.Context, key string) (bool, error) {
	d, err := g.grants.Get(ctx, key)
	if errors.Is(err, approval.ErrNotFound) {
		return false, nil
	}
	return err == nil && d.Body.Ended == "" && g.now().Before(d.Body.Expires), err
}

func (g *Gateway) endGrant(ctx context.Context, key, how string) error {
	ended, err := g.editGrant(ctx, key, func(s *sessionGrant) bool {
		was := s.Ended
		s.Ended = how
		return was == ""
	})
	if ended != nil {
		_ = g.recordGrant(ctx, "rap_grant_ended", ended)
	}
	return err
}

// dropGrants ends what was given in a thread, and in its whole session
// when it is the root.
func (g *Gateway) dropGrants(ctx context.Context, caller, thread string) error {
	return g.grants.All(ctx, callerPrefix(caller), func(d *durable.Doc[sessionGrant]) error {
		if d.Body.Thread != thread && d.Body.Session != thread {
			return nil
		}
		return g.endGrant(ctx, d.Key, "closed")
	})
}

// Grants lists the session grants in force.
func (g *Gateway) Grants(ctx context.Context) ([]SessionGrant, error) {
	var out []SessionGrant
	err := g.grants.All(ctx, "", func(d *durable.Doc[sessionGrant]) error {
		if d.Body.open(g.now()) {
			out = append(out, d.Body.SessionGrant)
		}
		return nil
	})
	return out, err
}

// Revoke ends a session grant in somebody's name, which the ledger has
// with the reason; hold.ErrNoRequest when there is none in force. An
// error of the ledger leaves the grant ended.
func (g *Gateway) Revoke(ctx context.Context, id, by, reason string) error {
	d, err := g.grants.ByAlias(ctx, id)
	if errors.Is(err, approval.ErrNotFound) || err == nil && !d.Body.open(g.now()) {
		return fmt.Errorf("revoke a session grant: %w", hold.ErrNoRequest)
	}
	if err != nil {
		return fmt.Errorf("revoke a session grant: %w", err)
	}
	ended, err := g.editGrant(ctx, d.Key, func(s *sessionGrant) bool {
		was := s.Ended
		s.Ended = "revoked"
		return was == ""
	})
	if err != nil || ended == nil {
		return err
	}

	return g.noteGrant(ctx, "rap_grant_ended", ended, by, map[string]any{"reason": reason})
}

// recordGrant puts a grant into the ledger in the name of its asker.
func (g *Gateway) recordGrant(ctx context.Context, event string, s *sessionGrant) error {
	return g.noteGrant(ctx, event, s, cmp.Or(s.Asker.Token, g.cfg.Namespace), nil)
}

func (g *Gateway) noteGrant(
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
	err := g.cfg.Record(ctx, event, s.ID, actor, facts)
	if err != nil {
		g.cfg.Log.ErrorContext(ctx, "the ledger takes no record", "event", event, "error", err)
	}

	return err
}
