// Package runtime calls the tools of registered RAP tool servers for
// one agent. The agent's plan decides before an invocation leaves. What
// a tool asks on the way (user_choice) is put to people, and their
// answer is posted to the tool once.
//
// Every call is one sealed record in a store. Any number of processes
// may share the work, and none of it is lost in a crash.
package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/internal/names"
	"github.com/assent-dev/assent/rap/peer"
)

// RuntimeConfig says what a Runtime works with.
type Config struct {
	rap.Common
	Servers     []Server
	CallbackURL string // base under which tools reach ServeHTTP; each call gets a URL of its own below it
	// Only is the one asker that the runtime works for, such as the
	// person at a command line: threads and calls go out under the
	// names that it chose. The zero value lets anybody ask (As), and
	// what goes out is named so that no two askers or threads share a
	// name.
	Only approval.Asker
	// CallWithin is how long a call may stay without a result before an
	// error takes its place; 1h. Part of the documented contract.
	CallWithin time.Duration
	// ChoiceWithin is how long a question stays open; 15m. Its end is
	// no answer: nothing is posted and the call is cancelled.
	ChoiceWithin time.Duration
	// MaxPrompt and MaxChoices bound what is put to people: longer
	// prompts are cut (and say so), more choices are refused. 8 KiB, 50.
	MaxPrompt, MaxChoices int
	MaxBody               int64 // of a callback; 4 MiB
	// Person tells which person of the directory a call's user is. Nil:
	// no call is listed for anybody (CallsOf).
	Person func(ctx context.Context, user string) (id string, known bool, err error)
}

// Server is a registered tool server.
type Server struct {
	Name string // as people know it; also the Asker of its questions
	// URL is the base: discovery, close and cancel go below it;
	// invocations where its manifest says, on an allowed origin
	Peer   peer.Config
	Groups []string // who answers its questions; none: the user
	// MCPServer has the agent's file treat its tools as those of this
	// MCP server; "": as local tools of their own names.
	MCPServer string
	// TrustDestructive leaves it to the plan alone whether calls of
	// tools that call themselves destructive are asked about.
	TrustDestructive bool
}

// Runtime calls tools for one agent. Whoever asks for a call does so as
// somebody: see As.
type Runtime struct {
	cfg       Config
	decided   bool // by whoever calls: no rules are asked
	names     names.Namer
	log       *slog.Logger
	callbacks string                 // CallbackURL without a slash at its end
	servers   map[string]*toolServer // by name

	engine *durable.Engine[part]
	known  *durable.Vault[thread]
	events *durable.Vault[keptNews]
	views  *durable.Vault[keptView]
	users  *durable.Vault[listed]

	signIns *durable.Vault[keptSignIn]

	toolsets  toolsets
	threads   locks
	notices   chan struct{}
	newEvents watchers      // of calls that have new events, by key
	bodies    chan struct{} // as toolServer.bodies, for servers that are registered no more
}

// toolServer is a registered server with the way to it.
type toolServer struct {
	Server
	peer   *peer.Peer
	base   string
	bodies chan struct{} // of callbacks, held in memory at the same time
}

// New checks the configuration.
func New(cfg Config) (*Runtime, error) {
	if cfg.Plan == nil {
		return nil, errors.New("runtime: plan is missing: nothing says what may run")
	}

	return open(cfg, false)
}

// open makes a runtime. Decided says that somebody else has decided
// about its calls.
func open(cfg Config, decided bool) (*Runtime, error) {
	if err := cfg.settle(); err != nil {
		return nil, fmt.Errorf("runtime: %w", err)
	}

	r := &Runtime{
		cfg:       cfg,
		decided:   decided,
		log:       cfg.Log,
		callbacks: strings.TrimRight(cfg.CallbackURL, "/"),
		servers:   map[string]*toolServer{},
		toolsets:  toolsets{of: map[string]*session{}},
		threads:   locks{held: map[string]*oneLock{}},
		notices:   make(chan struct{}, maxNotices),
		bodies:    make(chan struct{}, maxBodies),
	}
	for _, s := range cfg.Servers {
		if err := r.register(s); err != nil {
			return nil, fmt.Errorf("runtime: server %q: %w", s.Name, err)
		}
	}
	if err := r.openRecords(); err != nil {
		return nil, fmt.Errorf("runtime: %w", err)
	}
	return r, nil
}

func (cfg *Config) settle() error {
	switch {
	case cfg.Records == nil:
		return errors.New("records are missing: there is nowhere to keep calls")
	case cfg.Namespace == "":
		return errors.New("namespace is missing")
	}

	u, err := url.Parse(cfg.CallbackURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		u.RawQuery != "" ||
		u.Fragment != "" {
		return errors.New("callback URL: expected an absolute http(s) URL without user, query and fragment")
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Poll = orElse(cfg.Poll, time.Second)
	cfg.CallWithin = orElse(cfg.CallWithin, time.Hour)
	cfg.ChoiceWithin = orElse(cfg.ChoiceWithin, 15*time.Minute)
	cfg.MaxPrompt = orElse(cfg.MaxPrompt, 8<<10)
	cfg.MaxChoices = orElse(cfg.MaxChoices, 50)
	cfg.MaxBody = orElse(cfg.MaxBody, 4<<20)
	return nil
}

// orElse is a number, or what stands for none.
func orElse[T int | int64 | time.Duration](n, other T) T {
	if n <= 0 {
		return other
	}
	return n
}

func (r *Runtime) register(s Server) error {
	switch {
	case s.Name == "":
		return errors.New("its name is missing")
	case r.servers[s.Name] != nil:
		return errors.New("the name is used twice")
	case s.Peer.URL == "":
		return errors.New("its URL is missing")
	}

	p, err := peer.New(s.Peer)
	if err != nil {
		return err
	}
	r.servers[s.Name] = &toolServer{s, p, strings.TrimRight(s.Peer.URL, "/"), make(chan struct{}, maxBodies)}
	return nil
}

// openRecords opens what is stored: the engine's calls, and our
// documents of threads, events and views.
func (r *Runtime) openRecords() error {
	only := r.cfg.Only != (approval.Asker{})
	var errs [7]error
	r.names, errs[0] = names.New(r.cfg.Key, r.cfg.Namespace, only)
	sealing := names.Sealing(r.cfg.Records, r.cfg.Namespace, r.cfg.Key)
	r.engine, errs[1] = r.newEngine(sealing)
	r.known, errs[2] = durable.NewVault[thread](sealing, "threads")
	r.events, errs[3] = durable.NewVault[keptNews](sealing, "events")
	r.views, errs[4] = durable.NewVault[keptView](sealing, "views")
	r.users, errs[5] = durable.NewVault[listed](sealing, "users")
	r.signIns, errs[6] = durable.NewVault[keptSignIn](sealing, "sign_ins")

	return cmp.Or(errs[:]...)
}

func (r *Runtime) newEngine(sealing durable.Sealing) (*durable.Engine[part], error) {
	const lookAgain = 5 * time.Minute // at what people are asked, when there was no news of it
	cfg := durable.Config{
		Sealing:     sealing,
		People:      r.cfg.People,
		Log:         r.log,
		Now:         r.cfg.Now,
		Poll:        r.cfg.Poll,
		Group:       names.ThreadOf,
		Share:       256,
		Runs:        1024,
		LastLook:    lookAgain,
		Pause:       pause,
		PeersReturn: true,
		Finish:      leaveWithin,
		Always:      true,
		Abandon:     keepLive,
	}

	return durable.New(cfg, durable.Transport[part]{
		Decide:         r.decide,
		Begin:          r.begin,
		Run:            r.send,
		Send:           r.post,
		End:            r.ends,
		Question:       r.question,
		Answered:       r.answered,
		Lease:          r.lease,
		Keep:           r.keep,
		Moved:          r.moved,
		WithdrawReason: withdrawReason,
	})
}

// leaveWithin is how long Run waits at its end for requests that are
// under way.
const leaveWithin = 2 * time.Second

// Run works until ctx ends on what a call alone can't do: deadlines,
// answers of people, attempts to try again, and what an earlier process
// left. Any number of processes may run on one store and namespace.
func (r *Runtime) Run(ctx context.Context) error {
	var beside sync.WaitGroup
	defer beside.Wait()
	if r.cfg.Person != nil {
		beside.Go(func() { r.tidy(ctx) })
	}

	return cmp.Or(r.engine.Run(ctx), ctx.Err())
}

func (r *Runtime) now() time.Time { return r.cfg.Now() }

// Threads are the threads of one asker, with their calls, events and
// views. Those of all others are not there, whatever they are called.
type Threads struct {
	r   *Runtime
	who approval.Asker
}

// As returns the threads of an asker: a token and the person whose
// token it is. Its approvals and questions are asked in its name, so
// none of its people answers them. Whom a call is made for is said by
// each Invocation, so who names no principal.
func (r *Runtime) As(who approval.Asker) (*Threads, error) {
	if err := who.Check(); err != nil {
		return nil, fmt.Errorf("act for somebody: %w", err)
	}
	if who.Principal != "" {
		return nil, &approval.InputError{
			Field:    "asker.principal",
			Expected: "nobody: whom a call is made for is its user",
		}
	}

	if r.cfg.Only != (approval.Asker{}) && r.cfg.Only != who {
		return nil, &approval.InputError{Field: "asker", Expected: "the one asker of this runtime"}
	}

	return &Threads{r: r, who: who}, nil
}

// Invocation is a call that the agent makes. Its names are the asker's
// own: what goes out is named otherwise (but RuntimeConfig.Only).
type Invocation struct {
	Thread    string
	ID        string   // of the call, unique in its thread; the same one again is the same call
	CallID    *string  // echoed by tools
	Ancestors []string // of the thread: root to parent
	User      string   // whom the agent acts for; "" nobody is named
	Operation string
	Arguments json.RawMessage // an object, byte for byte
	// Context is what the agent says about the call, for the people who
	// are asked. It doesn't go to the tool, which RAP has no member for.
	Context []info.Item
}

// CallState is how far a call has come.
type CallState string

// The states of a call.
const (
	CallAsking  CallState = "asking"  // people are asked whether it may leave
	CallSending CallState = "sending" // on its way, or about to be
	CallPending CallState = "pending" // the tool has it; it may be asking the user (Question)
	CallDone    CallState = "done"
)

// Call is a call as it is now.
type Call struct {
	Thread    string    `json:"thread"`
	ID        string    `json:"id"`
	Server    string    `json:"server"`
	Operation string    `json:"operation"`
	State     CallState `json:"state"`
	// reference of what people are asked now: an approval or the tool's
	// question
	Question string `json:"question,omitempty"`
	// where the tool wants the user to sign in; untrusted, a secret of
	// the user's
	SignIn string `json:"sign_in,omitempty"`
	// host of that link, where its origin is one that is registered for
	// the tool server; "" where it is not: then don't show the link
	SignInHost string       `json:"sign_in_host,omitempty"`
	Outcome    *rap.Outcome `json:"outcome,omitempty"` // once done
	Failed     bool         `json:"failed,omitempty"`  // the outcome is an error
	// the outcome is this side's own: denied, interrupted, timed out,
	// not accepted
	Synthetic    bool   `json:"synthetic,omitempty"`
	Why          Why    `json:"why,omitempty"`          // of a synthetic outcome
	Subscription bool   `json:"subscription,omitempty"` // events may follow
	Trouble      string `json:"trouble,omitempty"`      // in words: the answer could not be delivered
}

// Why says how a call came to an outcome of this side's own.
type Why string

// The reasons of synthetic outcomes.
const (
	WhyDenied      Why = "denied"       // by the plan or by people
	WhyInvalid     Why = "invalid"      // unknown operation, or arguments that its schema refuses
	WhyNotAccepted Why = "not_accepted" // the tool server refused it or could not be reached
	WhyTimeout     Why = "timeout"      // no result in time
	// nobody answered the tool's question in time, or it could not be
	// put to anybody
	WhyUnanswered  Why = "unanswered"
	WhyInterrupted Why = "interrupted" // Cancel
	WhyClosed      Why = "closed"      // CloseThread
)

// The errors of a Runtime that a caller acts on.
var (
	ErrNoCall    = errors.New("no such call")
	ErrOtherCall = errors.New("the id was used for another call of this thread")
	ErrDone      = errors.New("the call has ended")
)
