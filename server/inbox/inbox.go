// Package inbox is the web inbox of approvers: server-rendered pages
// over the asking service, one style sheet and one small script.
//
// The pages show a call from the bytes that the binding covers, never
// from what an agent or its author says about it; their words stand
// beside it, fenced. An approval is taken only from a page that showed
// the whole call, which the server seals into the form. GET and HEAD
// decide nothing. Everything that decides works without JavaScript.
//
// The handler trusts Config.Who for who is signed in, and must stand
// behind server/auth, which sets the content security policy and
// refuses requests from other origins.
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

// Config is what the inbox stands on. Service, Store, Directory and Who
// are required.
type Config struct {
	Service   *approval.Service
	Store     store.Store
	Directory approval.Directory
	Now       func() time.Time // time.Now when nil
	Logger    *slog.Logger     // slog.Default() when nil

	// Who says who is signed in: the tenant, the person with the groups
	// they hold now, and whether the sign-in is the developer's. A
	// request without anybody is answered with 401.
	Who func(*http.Request) (tenant string, p approval.Person, dev bool, ok bool)

	// Administration has people approve that a freeze is lifted. When
	// nil, nobody lifts one here.
	Administration *administration.Desk

	// Key seals what a page showed into its forms: at least 32 random
	// bytes, the same for all replicas that share the store. When nil a
	// key is made, and forms from before a restart must be opened
	// again.
	Key []byte
	// Arm is how long a page must have been open before its forms
	// decide: clicks and keys meant for something else come sooner. 700
	// ms when 0.
	Arm time.Duration
	// Admins names the group of a tenant that may freeze, thaw and redeliver;
	// "admins" everywhere when nil.
	Admins func(tenant string) string
	// SignOut is where the sign-out form posts to; no such form when "".
	SignOut string
	// PublicKey verifies the checkpoints of the ledger
	// (name+hash+base64). Without it the ledger page offers no export.
	PublicKey string
	// Shares is what people share of this process, with everything else
	// that it does; nil: quota.Default of 1 GiB.
	Shares *quota.Shares
	// Feed tells pages what happens; nil: one of the inbox's own.
	Feed *feed.Feed
	// Sessions are the session grants of RAP gateways; nil: there are
	// none.
	Sessions rap.Sessions
	// Agents and Loaded tell what is in force for a tenant, as those of
	// server.Config; nil: nothing is told.
	Agents func(tenant string) openapi.Agents
	Loaded func(tenant string) []openapi.Loaded
	// SignIns is what tools ask people to sign in to; nil: nothing.
	SignIns signin.Book
	// Calls are the calls of RAP runtimes, for the people whom they are
	// made for; nil: there is no such page.
	Calls rap.Calls
}

// New returns the handler of all pages, from /.
func New(cfg Config) http.Handler {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Key == nil {
		cfg.Key = make([]byte, 32)
		rand.Read(cfg.Key) // can't fail: the process ends instead
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
	s := &site{Config: cfg, assets: loadAssets()}
	s.pages = parsePages(s.assets)
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
	// browsers ask for it beside pages that name no icon
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, r *http.Request) {
		r.SetPathValue("name", "icon.svg")
		s.asset(w, r)
	})
	for pattern, page := range map[string]func(*visit) error{
		"GET /{$}":                        inTurn((*visit).queue),
		"GET /queue":                      inTurn((*visit).queueFragment),
		"GET /waiting":                    inTurn((*visit).waiting),
		"GET /batch":                      inTurn((*visit).batch),
		"POST /batch":                     (*visit).batchVote,
		"GET /requests/{id}":              inTurn((*visit).request),
		"POST /requests/{id}/vote":        (*visit).vote,
		"POST /requests/{id}/edit":        inTurn((*visit).edit),
		"GET /grants":                     inTurn((*visit).grants),
		"POST /grants/{id}/revoke":        (*visit).revoke,
		"POST /sessions/{id}/revoke":      (*visit).revokeSession,
		"GET /calls":                      inTurn((*visit).calls),
		"GET /calls/list":                 inTurn((*visit).callsFragment),
		"GET /ledger":                     inTurn((*visit).ledger),
		"POST /ledger/export":             (*visit).export,
		"GET /activity":                   inTurn((*visit).activity),
		"GET /agents":                     inTurn((*visit).agents),
		"GET /deliveries":                 (*visit).deliveries,
		"POST /deliveries/{id}/redeliver": (*visit).redeliver,
		"GET /freeze":                     (*visit).freeze,
		"POST /freeze":                    (*visit).throw,
		"POST /thaw":                      (*visit).thaw,
		"GET /device":                     (*visit).tokens,
		"POST /device":                    (*visit).answerDevice,
		"POST /tokens/{id}/end":           (*visit).endToken,
		"GET /events":                     (*visit).events,
		"/":                               (*visit).nowhere,
	} {
		mux.HandleFunc(pattern, s.visited(page))
	}

	return mux
}
