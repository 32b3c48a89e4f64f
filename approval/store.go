package approval

import (
	"context"
	"errors"
	"time"

	"github.com/assent-dev/assent/approval/ledger"
)

// ErrNotFound says that a store holds no such thing for this tenant.
var ErrNotFound = errors.New("not found")

// Store keeps requests, grants, freezes and the ledger's entries of
// many tenants. Implementations live in store/…; store/storetest is
// what each must pass.
type Store interface {
	// Update runs fn in one transaction: all of its writes and the
	// ledger entries become durable together, or none does. When it
	// returns nil, the requests, grants and freezes that fn read are as
	// it read them at the moment of the commit. To that end fn may run
	// more than once, and first ahead of the transaction, so it must
	// not act on the outside. fn doesn't see its own writes (they are
	// sent at the end).
	Update(ctx context.Context, tenant string, fn func(Tx) error) error
	// Due runs fn for up to limit requests of any tenant whose Due time
	// has come, each in a transaction of its own, shared with other
	// replicas: no two work on one request at once. It returns how many
	// fn was run for; errors of single requests are joined and do not
	// stop the others: one that failed may stand back for a minute, so
	// that those behind it get their turn.
	Due(
		ctx context.Context,
		now time.Time,
		limit int,
		fn func(tx Tx, tenant string, r *Request) error,
	) (int, error)

	// Request returns one request; ErrNotFound.
	Request(ctx context.Context, tenant, id string) (*Request, error)
	// Heads returns what there is to know of requests without reading
	// them. Those that are not there are left out.
	Heads(ctx context.Context, tenant string, ids []string) (map[string]Head, error)
	// Summaries returns what lists show of some requests, by their ids.
	// Those that are not there are left out.
	Summaries(ctx context.Context, tenant string, ids []string) (map[string]Summary, error)
	// Loads returns what each token has open, by its name
	// (Requester.Runtime).
	Loads(ctx context.Context, tenant string) (map[string]Load, error)
	// Requests lists summaries, newest first unless the filter says
	// otherwise.
	Requests(ctx context.Context, tenant string, f Filter) (Page, error)
	// Similar returns the latest closed requests of the same agent and
	// target, newest first: up to limit, and fewer where their
	// documents are large, but one at least if there is any.
	Similar(ctx context.Context, tenant, agent, target string, limit int) ([]*Request, error)
	Grant(ctx context.Context, tenant, id string) (*Grant, error)
	// Grants lists grants, newest first; live ones only unless all.
	Grants(ctx context.Context, tenant string, all bool, now time.Time) ([]Grant, error)
	// Freezes lists the freezes in force.
	Freezes(ctx context.Context, tenant string) ([]Freeze, error)
	// Votes lists vote facts since a time, for figures; newest first,
	// at most limit.
	Votes(ctx context.Context, tenant string, since time.Time, limit int) ([]VoteFact, error)
	// Changed returns a channel that is closed when something of the
	// tenant changed after the call: by this process at once, by
	// another one within the store's polling interval.
	Changed(tenant string) <-chan struct{}
}

// Tx is one transaction of one tenant. Writes can't fail before the end.
type Tx interface {
	// Request returns a request and locks it; ErrNotFound.
	Request(id string) (*Request, error)
	// Latest returns the request whose current binding this is, locked,
	// or nil: the one that is pending, or else the newest that is open,
	// or else the newest. (After an edit the open one may be older than
	// one that has ended.) At most one pending request has a binding;
	// Insert and Save hold to it.
	Latest(binding string) (*Request, error)
	// Live returns grants of an agent and target that are not revoked,
	// not expired and not used up, locked.
	Live(agent, target string, now time.Time) ([]*Grant, error)
	Grant(id string) (*Grant, error)
	Freezes() ([]Freeze, error)
	// Remembered returns what was remembered under an idempotency key,
	// or nil.
	Remembered(key string) (*Memory, error)

	Insert(r *Request)
	// Save writes a changed request; it sets r.Version to the next. A
	// version that moved on meanwhile makes the transaction run again.
	Save(r *Request)
	SaveGrant(g *Grant) // inserts or replaces
	SaveFreeze(f Freeze)
	Remember(key string, m Memory)
	AddVote(v VoteFact)
	// SealFirst makes Update return only after the ledger's entries of
	// the tenant, those of this update included, are sealed and noted
	// outside of the database. If that fails, nothing was written. An
	// update that spends or takes away an approval calls it: a database
	// that is put back to an older state must not undo what was answered.
	SealFirst()
	// Append adds a ledger entry, and a delivery of it to every named target.
	Append(r ledger.Record, d ...Delivery)
}

// Head is the version of a request, and about how many bytes its
// document has.
type Head struct {
	Version int64
	Bytes   int64
}

// Load is what somebody has open: how many requests that nobody has
// decided yet, and about how many bytes they have.
type Load struct {
	Requests int64
	Bytes    int64
}

// Filter picks requests for a list. Zero fields do not filter.
type Filter struct {
	States    []State
	Agent     string
	Target    string
	Principal string
	Groups    []string // requests that one of these groups may answer; those without a group always
	// Readers picks requests that one of these keys may read; see
	// Request.readers. Nil: all. While a store is brought up to date, it
	// may also return others.
	Readers []string
	// AnsweredBy picks pending requests that this person has answered as
	// they are now, by id.
	AnsweredBy string
	Since      time.Time // created at or after
	ByDue      bool      // by deadline, soonest first, instead of newest first
	Oldest     bool      // oldest first, instead of newest first
	Cursor     string    // of the page before
	Limit      int       // 1 to 500; 0 means 50
}

// Page is a part of a list.
type Page struct {
	Requests []Summary `json:"requests"`
	Next     string    `json:"next,omitempty"` // cursor; "" at the end
	// Total is how many match the filter. At most 10,001 are counted, and
	// 1,001 if Filter.Keys has keys.
	Total int `json:"total"`
}

// Memory is the remembered answer to an idempotency key.
type Memory struct {
	Digest  string    `json:"digest"` // of what was sent
	Request string    `json:"request,omitempty"`
	Grant   string    `json:"grant,omitempty"`
	Expires time.Time `json:"expires"`
}

// VoteFact is one vote for figures.
type VoteFact struct {
	Request string        `json:"request"`
	Agent   string        `json:"agent"`
	Target  string        `json:"target"`
	Person  string        `json:"person"`
	Verdict Verdict       `json:"verdict"`
	Waited  time.Duration `json:"waited"` // from the revision's start to the vote
	At      time.Time     `json:"at"`
}

// Freeze is the kill switch thrown: everything of the tenant, or of one
// agent, is denied.
type Freeze struct {
	Agent  string     `json:"agent,omitempty"` // "" means all
	By     string     `json:"by"`
	Reason string     `json:"reason,omitempty"`
	At     time.Time  `json:"at"`
	Lifted *time.Time `json:"lifted,omitempty"`
}

// Delivery is something to be sent to a target outside, at least once,
// after the transaction.
type Delivery struct {
	Target  string `json:"target"`  // of a configured target: "slack:TENANT" or "webhook:TENANT/NAME"
	Event   string `json:"event"`   // type of the ledger entry
	Subject string `json:"subject"` // request or grant id
	Payload string `json:"payload"` // JSON; no arguments, no secrets
}
