package approval

import (
	"context"
	"errors"
	"time"

	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/condition"
)

// ErrNotFound is returned if a store has no such object for this tenant.
var ErrNotFound = errors.New("not found")

// Store keeps requests, grants, freezes and ledger entries of many tenants. The implementations are
// in store/…, and each must pass the tests of store/storetest.
type Store interface {
	// Update runs fn in one transaction: either all writes and ledger entries become durable, or
	// none do. If it returns nil, then at the commit the requests, grants and freezes that fn read
	// were still as fn read them. For this, fn may run more than once, and the first time before
	// the transaction starts, so it must have no other side effects. fn doesn't see its own writes,
	// because they are sent at the end.
	Update(ctx context.Context, tenant string, fn func(Tx) error) error
	// Due runs fn for up to limit requests of any tenant whose Due time has come, each in its own
	// transaction. Replicas share the work: no two process the same request at the same time. It
	// returns the number of requests for which fn was run. Errors of single requests are joined and
	// do not stop the others. A failed request may be skipped for a minute, so that later ones get
	// their turn.
	Due(
		ctx context.Context,
		now time.Time,
		limit int,
		fn func(tx Tx, tenant string, r *Request) error,
	) (int, error)

	// Request returns a request, or ErrNotFound.
	Request(ctx context.Context, tenant, id string) (*Request, error)
	// Heads returns the versions and sizes of requests without reading their documents. Missing
	// requests are left out.
	Heads(ctx context.Context, tenant string, ids []string) (map[string]Head, error)
	// Summaries returns the summaries of requests by their ids. Missing requests are left out.
	Summaries(ctx context.Context, tenant string, ids []string) (map[string]Summary, error)
	// Loads returns the open requests' number and size for each token, by the token's name
	// (Requester.Runtime).
	Loads(ctx context.Context, tenant string) (map[string]Load, error)
	// Requests lists summaries, newest first unless the filter sets another order.
	Requests(ctx context.Context, tenant string, f Filter) (Page, error)
	// Similar returns the latest closed requests of the same agent and target, newest first. It
	// returns up to limit requests, fewer if their documents are large, but at least one if there
	// is any.
	Similar(ctx context.Context, tenant, agent, target string, limit int) ([]*Request, error)
	Grant(ctx context.Context, tenant, id string) (*Grant, error)
	// Grants lists grants, newest first. Unless all is set, it lists only live grants.
	Grants(ctx context.Context, tenant string, all bool, now time.Time) ([]Grant, error)
	// Freezes lists the freezes in force.
	Freezes(ctx context.Context, tenant string) ([]Freeze, error)
	// Votes lists the votes since a time, newest first, at most limit.
	Votes(ctx context.Context, tenant string, since time.Time, limit int) ([]VoteFact, error)
	// Pasts is like Tx.Pasts without a lock.
	Pasts(ctx context.Context, tenant string, q PastQuery) ([]Past, error)
	// Changed returns a channel that is closed when data of the tenant changes after the call.
	// Changes by this process are noticed at once, changes by other processes within the store's
	// polling interval.
	Changed(tenant string) <-chan struct{}
}

// Tx is one transaction of one tenant. Writes report no errors before the end of the transaction.
type Tx interface {
	// Request returns a request and locks it. It returns ErrNotFound if there is none.
	Request(id string) (*Request, error)
	// Latest returns and locks the request whose current binding this is, or nil. It prefers the
	// pending request, then the newest open one, then the newest one. (After an edit an open
	// request may be older than one that has ended.) At most one pending request has a given
	// binding; Insert and Save enforce that.
	Latest(binding string) (*Request, error)
	// Live returns and locks the grants of an agent and target that are not revoked, expired or
	// used up.
	Live(agent, target string, now time.Time) ([]*Grant, error)
	Grant(id string) (*Grant, error)
	Freezes() ([]Freeze, error)
	// Remembered returns the memory of an idempotency key, or nil.
	Remembered(key string) (*Memory, error)

	Insert(r *Request)
	// Save writes a changed request and increments r.Version. If another transaction changed the
	// version meanwhile, this transaction runs again.
	Save(r *Request)
	SaveGrant(g *Grant) // inserts or replaces
	SaveFreeze(f Freeze)
	Remember(key string, m Memory)
	AddVote(v VoteFact)
	// Pasts lists the past calls that a query selects, in any order, and also the mark of a restore.
	// It takes a lock of the tenant until the end of the transaction, so that transactions of all
	// replicas that read past calls see each other's.
	Pasts(q PastQuery) ([]Past, error)
	// PastOf returns the states that are recorded of one id.
	PastOf(id string) ([]Past, error)
	SavePast(p Past) // inserts or replaces the record of an id and state
	DropPast(id string, state condition.PastState)
	// SealFirst makes Update return only after the tenant's ledger entries, including those of this
	// update, are sealed and recorded outside of the database. If that fails, nothing is written.
	// Updates that use up or remove an approval call it, because restoring an older state of the
	// database must not undo an answer that was given.
	SealFirst()
	// Append adds a ledger entry, and queues the deliveries.
	Append(r ledger.Record, d ...Delivery)
}

// Head is the version of a request and the approximate size of its document in bytes.
type Head struct {
	Version int64
	Bytes   int64
}

// Load is the number of undecided requests of a token, and their approximate size in bytes.
type Load struct {
	Requests int64
	Bytes    int64
}

// Filter selects requests for a list. Zero fields do not filter.
type Filter struct {
	States    []State
	Agent     string
	Target    string
	Principal string
	Groups    []string // requests that one of these groups may answer, and those without a group
	// Readers selects the requests that the holder of one of these keys may read; see
	// Request.readers. If it is nil, all requests are selected. While a store is being migrated, it
	// may also return others.
	Readers []string
	// AnsweredBy selects pending requests whose current revision this person has answered. It is
	// the person's id.
	AnsweredBy string
	Since      time.Time // created at or after
	ByDue      bool      // by deadline, soonest first, instead of newest first
	Oldest     bool      // oldest first, instead of newest first
	Cursor     string    // Next of the previous page
	Limit      int       // 1 to 500; 0 means 50
}

// Page is a part of a list.
type Page struct {
	Requests []Summary `json:"requests"`
	Next     string    `json:"next,omitempty"` // cursor; empty on the last page
	// Total is the number of requests that match the filter. It is capped at 10,001, or at 1,001 if
	// Filter.Keys returns keys.
	Total int `json:"total"`
}

// Memory is the stored answer to an idempotency key.
type Memory struct {
	Digest  string    `json:"digest"` // digest of the input
	Request string    `json:"request,omitempty"`
	Grant   string    `json:"grant,omitempty"`
	Expires time.Time `json:"expires"`
}

// VoteFact is the record of one vote for the figures.
type VoteFact struct {
	Request string        `json:"request"`
	Agent   string        `json:"agent"`
	Target  string        `json:"target"`
	Person  string        `json:"person"`
	Verdict Verdict       `json:"verdict"`
	Waited  time.Duration `json:"waited"` // from the revision's start to the vote
	At      time.Time     `json:"at"`
}

// Freeze is an active kill switch: all calls of the tenant, or of one agent, are denied.
type Freeze struct {
	Agent  string     `json:"agent,omitempty"` // empty for all agents
	By     string     `json:"by"`
	Reason string     `json:"reason,omitempty"`
	At     time.Time  `json:"at"`
	Lifted *time.Time `json:"lifted,omitempty"`
}

// Delivery is a message to an outside target. It is sent at least once, after the transaction.
type Delivery struct {
	Target  string `json:"target"`  // name of a configured target: "slack:TENANT" or "webhook:TENANT/NAME"
	Event   string `json:"event"`   // type of the ledger entry
	Subject string `json:"subject"` // request or grant id
	Payload string `json:"payload"` // JSON; no arguments, no secrets
}
