// Package inbox is the web inbox of approvers: server-rendered pages for the asking service, with
// one style sheet and one small script.
//
// The pages show a call from the bytes that the binding covers, never from a description by an
// agent or its author; such texts are shown separately and marked. An approval is only accepted
// from a page that showed the whole call. The server seals what a page showed into its forms. GET
// and HEAD decide nothing. Everything that decides works without JavaScript.
//
// The handler trusts Config.Who about who is signed in. It must run behind server/auth, which sets
// the content security policy and refuses requests from other origins.
package inbox

import (
	"crypto/rand"
	"html/template"
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/signin"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/server/administration"
	"github.com/assent-dev/assent/server/feed"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/server/quota"
	"github.com/assent-dev/assent/store"
)

// Config configures the inbox. Service, Store, Directory and Who are required.
type Config struct {
	Service   *approval.Service
	Store     store.Store
	Directory approval.Directory
	Now       func() time.Time // default time.Now
	Logger    *slog.Logger     // default slog.Default()

	// Who returns the tenant and the signed-in person with their current groups. dev is set for the
	// developer's sign-in. If ok is false, the request is answered with 401.
	Who func(*http.Request) (tenant string, p approval.Person, dev bool, ok bool)

	// Administration asks people to approve that a freeze is lifted. If it is nil, freezes can't be
	// lifted here.
	Administration *administration.Desk

	// Key seals what a page showed into its forms. It has at least 32 random bytes, and must be the
	// same for all replicas that share the store. If it is nil, a random key is used, and forms
	// from before a restart must be opened again.
	Key []byte
	// Arm is the time that a page must be open before its forms are accepted, because clicks and keys
	// that were meant for something else come sooner. The default is 700 ms.
	Arm time.Duration
	// Admins returns the group of a tenant that may freeze, thaw and redeliver. If it is nil, the
	// group is "admins".
	Admins func(tenant string) string
	// SignOut is the address that the sign-out form posts to. If it is empty, there is no such
	// form.
	SignOut string
	// PublicKey verifies the checkpoints of the ledger (name+hash+base64). If it is empty, the
	// ledger page offers no export.
	PublicKey string
	// Shares limits the use of this process's resources by people. It is shared with the other
	// parts of the process. If it is nil, quota.Default of 1 GiB is used.
	Shares *quota.Shares
	// Feed notifies pages of events. If it is nil, the inbox creates its own.
	Feed *feed.Feed
	// Sessions are the session grants of RAP gateways. It may be nil.
	Sessions rap.Sessions
	// Agents and Loaded return the configuration in force for a tenant, as in server.Config. If
	// they are nil, the pages don't show it.
	Agents func(tenant string) openapi.Agents
	Loaded func(tenant string) []openapi.Loaded
	// SignIns are the sign-ins that tools ask people for. It may be nil.
	SignIns signin.Book
	// Calls are the calls of RAP runtimes, shown to the people that they are made for. If it is
	// nil, there is no such page.
	Calls rap.Calls
}

// New returns the handler of all pages, starting at /.
func New(cfg Config) http.Handler {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Key == nil {
		cfg.Key = make([]byte, 32)
		rand.Read(cfg.Key) // never fails: on an error the process is terminated
	}
	if cfg.Arm == 0 {
		cfg.Arm = 700 * time.Millisecond
	}
	if cfg.Admins == nil {
		cfg.Admins = func(string) string { return "admins" }
	}
	if cfg.Shares == nil {
		cfg.Shares = quota.New(quota.Default(1<<30, runtime.GOMAXPROCS(0)))
	}
	if cfg.Feed == nil {
		cfg.Feed = feed.New(cfg.Store, cfg.Logger)
	}
	s := &site{Config: cfg}
	s.assets, s.pages = staticFiles()
	return s.routes()
}

type site struct {
	Config
	pages     map[string]*template.Template
	assets    map[string]asset
	fragments fragments
}

func (s *site) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /assets/{name}", s.asset)
	// Browsers request it for pages without an icon.
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, r *http.Request) {
		r.SetPathValue("name", "icon.svg")
		s.asset(w, r)
	})
	for pattern, page := range map[string]func(*visit) error{
		"GET /{$}":                        inTurn(queuePages.queue),
		"GET /queue":                      inTurn(queuePages.queueFragment),
		"GET /waiting":                    inTurn(queuePages.waiting),
		"GET /batch":                      inTurn(queuePages.batch),
		"POST /batch":                     of(queuePages.batchVote),
		"GET /requests/{id}":              inTurn(requestPages.request),
		"POST /requests/{id}/vote":        of(requestPages.vote),
		"POST /requests/{id}/edit":        inTurn(requestPages.edit),
		"GET /grants":                     inTurn(adminPages.grants),
		"POST /grants/{id}/revoke":        of(adminPages.revoke),
		"POST /sessions/{id}/revoke":      of(adminPages.revokeSession),
		"GET /calls":                      inTurn(recordPages.calls),
		"GET /calls/list":                 inTurn(recordPages.callsFragment),
		"GET /ledger":                     inTurn(recordPages.ledger),
		"POST /ledger/export":             of(recordPages.export),
		"GET /activity":                   inTurn(recordPages.activity),
		"GET /agents":                     inTurn(recordPages.agents),
		"GET /deliveries":                 of(adminPages.deliveries),
		"POST /deliveries/{id}/redeliver": of(adminPages.redeliver),
		"GET /freeze":                     of(adminPages.freeze),
		"POST /freeze":                    of(adminPages.throw),
		"POST /thaw":                      of(adminPages.thaw),
		"GET /device":                     of(adminPages.tokens),
		"POST /device":                    of(adminPages.answerDevice),
		"POST /tokens/{id}/end":           of(adminPages.endToken),
		"GET /events":                     of(recordPages.events),
		"/":                               of(recordPages.nowhere),
	} {
		mux.HandleFunc(pattern, s.visited(page))
	}

	return mux
}
