package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// record is the stored form of a call that asks.
type record = durable.Call[part]

// part holds the gateway's own fields of a stored call.
type part struct {
	Caller     string `json:"caller"`
	Server     string `json:"server"` // alias
	Tool       string `json:"tool"`   // the server's own name
	Definition string `json:"definition,omitempty"`
	Binding    string `json:"binding"`        // of the call when it was made, whatever an approver edited
	Runs       string `json:"runs,omitempty"` // the binding of what runs
	Ref        string `json:"ref,omitempty"`  // of the request to people
	// Grant is the id of the standing approval that allowed the call. It is empty if people were
	// asked.
	Grant string    `json:"grant,omitempty"`
	Until time.Time `json:"until,omitzero"` // people have to answer by then
	// Wanted is the time until which a caller waits for the result. The call must start before it,
	// so that no result is lost.
	Wanted   time.Time       `json:"wanted,omitzero"`
	WantedBy string          `json:"wanted_by,omitempty"` // the process in which they wait
	Trouble  string          `json:"trouble,omitempty"`   // why the last attempt to run it came to nothing
	Meta     json.RawMessage `json:"meta,omitempty"`      // _meta that is passed on
	Result   json.RawMessage `json:"result,omitempty"`    // of the run, as the server sent it
	Failed   *fault          `json:"failed,omitempty"`    // the error of the protocol that the server answered
	Told     bool            `json:"told,omitempty"`      // the caller was informed how it ended
	// Said is the hash of the call's content (see request.said). States counts the states that the
	// caller was given, and State is the one that it may bring back.
	Said   string `json:"said,omitempty"`
	States int    `json:"states,omitempty"`
	State  int    `json:"state,omitempty"`
	// Earlier is the time at which the same call ran before, or may have run. It is zero if it
	// didn't. The earlier result may have been lost on the way to the client.
	Earlier time.Time `json:"earlier,omitzero"`
	Task    *task     `json:"task,omitempty"` // the caller follows it as a task; nil when it doesn't

	User        string          `json:"user,omitempty"` // the principal, who let it run
	Annotations map[string]bool `json:"annotations,omitempty"`
	Declared    []string        `json:"declared,omitempty"`
	InPlace     bool            `json:"in_place,omitempty"` // the principal may be asked in the client itself
	Linked      bool            `json:"linked,omitempty"`   // the client was sent to the request's page
}

// fault is the stored form of a protocol error.
type fault struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// keeper keeps the records of calls that ask, decides on them again, and runs those that are
// approved.
type keeper struct {
	*base
	lister    *lister
	forwarder *forwarder
	engine    *durable.Engine[part]
	process   string // this process, among those that work on the same records
	waiters   waiters
	pending   pending
}

// newKeeper opens the records and creates the engine that works on calls.
func newKeeper(b *base, l *lister, f *forwarder) (k *keeper, err error) {
	k = &keeper{
		base:      b,
		lister:    l,
		forwarder: f,
		process:   rand.Text(),
		waiters:   waiters{of: map[string][]*server.Exchange{}},
		pending:   pending{most: b.cfg.MaxPending},
	}
	k.engine, err = durable.New(durable.Config{
		Sealing:   b.sealing,
		People:    b.cfg.People,
		Log:       b.cfg.Log,
		Now:       b.cfg.Now,
		Poll:      b.cfg.Poll,
		Finish:    finishRuns,
		FirstLook: firstLook,
	}, durable.Transport[part]{
		Decide:    k.decide,
		Question:  k.question,
		Answered:  k.userAnswered,
		Run:       k.run,
		Abandoned: k.abandoned,
		Keep:      k.keep,
		Asked:     k.asked,
		Moved:     k.moved,

		WithdrawReason: withdrawn,
	})
	return k, err
}

// place finds the records of a caller's calls with the same content, one after the other.
type place struct {
	Turn int `json:"turn"` // of the record that counts
}

// request is one tools/call with the decision on it.
type request struct {
	caller   *caller
	tool     *tool
	call     *resolve.Call
	plan     *resolve.Plan // that decided; nil: none could
	decision resolve.Decision
	meta     json.RawMessage // that is passed on; nil for none
	back     state           // that the client sent back; zero for none
	// what a modern client answers to the questions that were sent with that state
	responses json.RawMessage
	content   string    // what said returns, once it was needed
	round     *round    // that a server's question belongs to; nil: none was asked
	looked    string    // the reference about which nothing more is shown in the client
	gaveUp    bool      // its user was asked in the client, and gave no answer
	earlier   time.Time // when the same call ran before; zero: it didn't, as far as is known
	// with is the client if it waits for a new call in any case, and until is the time for which it
	// waits. If with is nil, the client may be shown something first.
	with  *server.Exchange
	until time.Time
}

// said returns a hash of the call's content that doesn't depend on the formatting of its JSON, the
// rules or the tool's definition. It returns an empty string if the arguments can't be read.
func (q *request) said() string {
	if q.content != "" {
		return q.content
	}
	canonical, err := value.AppendCanonicalText(nil, q.call.Args, value.DefaultLimits())
	if err != nil {
		return ""
	}
	c := q.call
	q.content = durable.Hash(fmt.Sprintf("%q %q %q %q %s", c.Server, c.Tool, c.Principal, c.Session, canonical))
	return q.content
}

// errUnreadable means that the arguments of a call can't be read, so its content can't be compared.
var errUnreadable = errors.New("the arguments can't be read")

const (
	maxTurns    = 8                   // how often a place is tried that others change
	keepPlace   = 30 * 24 * time.Hour // longer than any record in it
	textChanged = "The rules or the tool's definition changed after it was asked"
)

// enter returns the record of a call. It creates a new one if there is none, or if the caller has
// already been informed how the last one ended.
func (k *keeper) enter(ctx context.Context, q *request) (*record, error) {
	said := q.said()
	if said == "" {
		return nil, errUnreadable
	}
	at := url.PathEscape(q.caller.Name) + "/" + said
	for range maxTurns {
		turn, err := k.turn(ctx, at)
		if err != nil {
			return nil, err
		}
		c, err := k.inTurn(ctx, q, key(at, turn))
		if err != nil || c != nil {
			return c, err
		}
		if err := k.nextTurn(ctx, at, turn); err != nil {
			return nil, err
		}
	}

	return nil, durable.ErrBusy
}

// key returns the key of the record with a turn's number in a place.
func key(at string, turn int) string { return fmt.Sprintf("%s/%d", at, turn) }

// turn returns the number of the current record in a place.
func (k *keeper) turn(ctx context.Context, at string) (int, error) {
	d, err := k.places.Get(ctx, at)
	if errors.Is(err, approval.ErrNotFound) {
		return 1, nil
	}
	if err != nil {
		return 0, err
	}
	return d.Body.Turn, nil
}

// nextTurn moves a place to its next record, unless another process has done so.
func (k *keeper) nextTurn(ctx context.Context, at string, was int) error {
	_, err := k.places.Edit(ctx, at, func(d *durable.Doc[place]) error {
		if max(d.Body.Turn, 1) != was {
			return durable.ErrUnchanged
		}
		d.Body.Turn = was + 1
		d.Expires = k.now().Add(keepPlace)
		return nil
	})
	if errors.Is(err, durable.ErrUnchanged) {
		return nil
	}
	return err
}

// inTurn returns the record with a key, or nil if its turn is over.
func (k *keeper) inTurn(ctx context.Context, q *request, key string) (*record, error) {
	c, err := k.engine.Get(ctx, key)
	switch {
	case errors.Is(err, approval.ErrNotFound):
		return k.add(ctx, q, key)
	case err != nil:
		return nil, err
	case c.Over() && c.Part.Told:
		q.earlier = ranAt(c)
		return nil, nil
	case c.Over() || c.Part.Binding == q.decision.Binding || c.State == durable.Running:
		return c, nil
	}

	return nil, k.overtake(ctx, key, told)
}

// ranAt returns when an ended call ran or may have run. It returns the zero time if the call did
// not run.
func ranAt(c *record) time.Time {
	if c.Ending.Why == durable.Returned || c.Ending.Why == durable.Unknown {
		return c.EndedAt
	}
	return time.Time{}
}

// add stores a new call.
func (k *keeper) add(ctx context.Context, q *request, key string) (*record, error) {
	if err := k.pending.enter(ctx, q.caller.Name, k.count); err != nil {
		return nil, err
	}
	c := q.record(key)
	if q.with != nil {
		// The call is wanted from its start: a change right after it is added would collide with the
		// engine, which would decide and ask again.
		k.waiters.enter(key, q.with)
		c.Part.Wanted, c.Part.WantedBy = q.until.Add(together), k.process
	}
	err := k.engine.Add(ctx, c)
	if err != nil {
		k.pending.leave(q.caller.Name)
		if q.with != nil {
			k.waiters.leave(key, q.with)
		}
	}
	if errors.Is(err, durable.ErrExists) {
		return k.engine.Get(ctx, key)
	}
	return c, err
}

// record builds the record of a new call.
func (q *request) record(key string) *record {
	c := &record{
		Key:       key,
		Asker:     q.caller.asker,
		Arguments: q.call.Args,
		Part: part{
			Caller:     q.caller.Name,
			Server:     q.call.Server,
			Tool:       q.call.Tool,
			Definition: q.call.ToolDefinition,
			Binding:    q.decision.Binding,
			Said:       q.said(),
			Earlier:    q.earlier,
			Meta:       q.meta,
		},
	}
	c.Seed = rand.Text()
	return c
}

// abandoned returns why nothing more can be done for a call.
func (k *keeper) abandoned(c *record) string {
	if k.callers[c.Part.Caller] == nil && k.cfg.CallerOf == nil {
		return "the caller is not configured any more"
	}
	if k.servers[c.Part.Server] == nil {
		return "the server is not configured any more"
	}
	return ""
}

// whoAsked returns the caller of a stored call. If the caller isn't configured here, it is rebuilt
// from the record.
func (k *keeper) whoAsked(c *record) *caller {
	if one := k.callers[c.Part.Caller]; one != nil {
		return one
	}
	return &caller{
		Caller: Caller{
			Name:      c.Part.Caller,
			Person:    c.Asker.Person,
			Principal: c.Asker.Principal,
		},
		asker: c.Asker,
	}
}

// keep returns the time until which an ended call is remembered.
func (k *keeper) keep(*record) time.Time { return k.now().Add(max(k.cfg.Keep, taskLives)) }

// noteLost records a run whose outcome is unknown because the server gave no valid answer or the
// process died.
func (k *keeper) noteLost(ctx context.Context, was durable.State, c *record) {
	if was != durable.Running || !c.Over() || c.Ending.Why == durable.Returned {
		return
	}
	if err := k.noteRecord(ctx, eventRan, c, unknownFacts()); err != nil {
		k.cfg.Log.ErrorContext(ctx, "the ledger takes no record", "event", eventRan, "error", err)
	}
}
