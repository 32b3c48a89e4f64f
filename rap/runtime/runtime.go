// Package runtime calls the tools of registered RAP tool servers for one agent. The agent's
// plan decides before an invocation is sent. If a tool asks a question (user_choice), people
// answer it, and the answer is posted to the tool once.
//
// Every call is one sealed record in a store. Any number of processes may share the work, and a
// crash loses none of it.
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

// Config configures a Runtime.
type Config struct {
	rap.Common
	Servers     []Server
	CallbackURL string // base URL of ServeHTTP for tools; each call gets a URL of its own below it
	// Only is the one asker that the runtime accepts, such as the person at a command line. Its
	// thread and call ids are sent unchanged. If it is zero, there may be many askers (As), and
	// the ids sent are derived so that no two askers or threads share one.
	Only approval.Asker
	// CallWithin is the time limit for a result, after which the call ends with an error; 1h.
	// Part of the documented contract.
	CallWithin time.Duration
	// ChoiceWithin is the time limit for an answer to a question; 15m. After it nothing is
	// posted, and the call ends.
	ChoiceWithin time.Duration
	// MaxPrompt and MaxChoices limit questions for people: longer prompts are shortened, with a
	// note, and questions with more choices are refused. 8 KiB, 50.
	MaxPrompt, MaxChoices int
	MaxBody               int64 // of a callback; 4 MiB
	// Person returns the directory's id for the user of a call. If Person is nil, calls are not
	// listed (CallsOf).
	Person func(ctx context.Context, user string) (id string, known bool, err error)
}

// Server is a registered tool server.
type Server struct {
	Name string // as people know it; also the Asker of its questions
	// Peer.URL is the base URL: discovery, close and cancel are below it. Invocations go to the
	// endpoint in its manifest, which must be on an allowed origin.
	Peer   peer.Config
	Groups []string // who may answer its questions; if empty, the user
	// MCPServer makes the agent's file treat its tools as those of this MCP server. If it is
	// empty, they are local tools.
	MCPServer string
	// TrustDestructive leaves the decision about tools that are marked as destructive to the
	// plan. Otherwise people are always asked about them.
	TrustDestructive bool
}

// Runtime calls tools for one agent. Use As to make calls on behalf of an asker.
type Runtime struct {
	*base
	listings   *listings
	signIns    *signInKeeper
	decider    *decider
	dispatcher *dispatcher
	handler    *callbackHandler
}

// New returns a runtime, or an error if the configuration is invalid.
func New(cfg Config) (*Runtime, error) {
	if cfg.Plan == nil {
		return nil, errors.New("runtime: plan is missing: nothing says what may run")
	}

	return open(cfg, false)
}

// open returns a runtime. decided means that the caller has already decided on its calls.
func open(cfg Config, decided bool) (*Runtime, error) {
	if err := cfg.settle(); err != nil {
		return nil, fmt.Errorf("runtime: %w", err)
	}

	b := &base{
		cfg:       cfg,
		log:       cfg.Log,
		callbacks: strings.TrimRight(cfg.CallbackURL, "/"),
		servers:   map[string]*toolServer{},
		threads:   locks{held: map[string]*oneLock{}},
	}
	r := &Runtime{
		base:     b,
		listings: &listings{base: b},
		signIns:  &signInKeeper{base: b},
		decider:  &decider{base: b, decided: decided, toolsets: toolsets{of: map[string]*session{}}},
	}
	r.dispatcher = &dispatcher{
		base:     b,
		listings: r.listings,
		signIns:  r.signIns,
		notices:  make(chan struct{}, maxNotices),
	}
	r.handler = &callbackHandler{
		base:     b,
		listings: r.listings,
		signIns:  r.signIns,
		bodies:   make(chan struct{}, maxBodies),
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

// orElse returns n, or other if n is not positive.
func orElse[T int | int64 | time.Duration](n, other T) T {
	if n <= 0 {
		return other
	}
	return n
}

// openRecords opens the engine's calls and the vaults of threads, events, views, listings and
// sign-ins.
func (r *Runtime) openRecords() error {
	only := r.cfg.Only != (approval.Asker{})
	var errs [7]error
	r.names, errs[0] = names.New(r.cfg.Key, r.cfg.Namespace, only)
	sealing := names.Sealing(r.cfg.Records, r.cfg.Namespace, r.cfg.Key)
	r.engine, errs[1] = r.newEngine(sealing)
	r.known, errs[2] = durable.NewVault[thread](sealing, "threads")
	r.events, errs[3] = durable.NewVault[keptNews](sealing, "events")
	r.views, errs[4] = durable.NewVault[keptView](sealing, "views")
	r.listings.users, errs[5] = durable.NewVault[listed](sealing, "users")
	r.signIns.vault, errs[6] = durable.NewVault[keptSignIn](sealing, "sign_ins")

	return cmp.Or(errs[:]...)
}

func (r *Runtime) newEngine(sealing durable.Sealing) (*durable.Engine[part], error) {
	const lookAgain = 5 * time.Minute // interval between checks of a request without notifications
	cfg := durable.Config{
		Sealing:     sealing,
		People:      r.cfg.People,
		Log:         r.log,
		Now:         r.cfg.Now,
		Poll:        r.cfg.Poll,
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
		Decide:         r.decider.decide,
		Begin:          r.decider.begin,
		Run:            r.dispatcher.send,
		Send:           r.dispatcher.post,
		End:            r.writeEnding,
		Question:       r.decider.question,
		Answered:       r.decider.answered,
		Lease:          r.lease,
		Keep:           r.dispatcher.keep,
		Moved:          r.dispatcher.moved,
		WithdrawReason: withdrawReason,
	})
}

// leaveWithin limits the wait of Run for requests in progress at its end.
const leaveWithin = 2 * time.Second

// Run works until ctx ends: on deadlines, answers of people, retries, and calls that an earlier
// process left. Any number of processes may share a store and namespace.
func (r *Runtime) Run(ctx context.Context) error {
	var beside sync.WaitGroup
	defer beside.Wait()
	if r.cfg.Person != nil {
		beside.Go(func() { r.signIns.tidy(ctx) })
	}

	return cmp.Or(r.engine.Run(ctx), ctx.Err())
}

// Threads are the threads of one asker, with their calls, events and views. Threads of other
// askers are not accessible.
type Threads struct {
	r   *Runtime
	who approval.Asker
}

// As returns the threads of an asker, which is a token and the person who owns it. Requests are
// made in the asker's name, so that person can't approve them. who must not name a principal,
// because each Invocation names its user.
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

// Invocation is a call by the agent. Its ids are the asker's own; different ones are sent,
// except with Config.Only.
type Invocation struct {
	Thread    string
	ID        string   // of the call, unique in its thread; a repetition is the same call
	CallID    *string  // echoed by tools
	Ancestors []string // of the thread: root to parent
	User      string   // the person whom the agent acts for; may be empty
	Operation string
	Arguments json.RawMessage // an object, byte for byte
	// Context is what the agent says about the call, for people who approve it. It is not sent
	// to the tool.
	Context []info.Item
}

// CallState is the progress of a call.
type CallState string

// The states of a call.
const (
	CallAsking  CallState = "asking"  // waiting for approval to send it
	CallSending CallState = "sending" // being sent, or about to be
	CallPending CallState = "pending" // the tool has it; it may be asking the user (Question)
	CallDone    CallState = "done"
)

// Call is the current state of a call.
type Call struct {
	Thread    string    `json:"thread"`
	ID        string    `json:"id"`
	Server    string    `json:"server"`
	Operation string    `json:"operation"`
	State     CallState `json:"state"`
	// Question is the reference of the open request to people: an approval or the tool's
	// question.
	Question string `json:"question,omitempty"`
	// SignIn is the link by which the tool wants the user to sign in. It is untrusted, and a
	// secret of the user.
	SignIn string `json:"sign_in,omitempty"`
	// SignInHost is the host of that link, if its origin is registered for the tool server. If
	// it is empty, don't show the link.
	SignInHost string       `json:"sign_in_host,omitempty"`
	Outcome    *rap.Outcome `json:"outcome,omitempty"` // set once done
	Failed     bool         `json:"failed,omitempty"`  // the outcome is an error
	// Synthetic means that the outcome was made by the runtime: denied, interrupted, timed out,
	// not accepted.
	Synthetic    bool   `json:"synthetic,omitempty"`
	Why          Why    `json:"why,omitempty"`          // the reason of a synthetic outcome
	Subscription bool   `json:"subscription,omitempty"` // events may follow
	Trouble      string `json:"trouble,omitempty"`      // set if the answer could not be delivered
}

// Why is the reason of a synthetic outcome.
type Why string

// The reasons of synthetic outcomes.
const (
	WhyDenied      Why = "denied"       // by the plan or by people
	WhyInvalid     Why = "invalid"      // unknown operation, or arguments that do not match its schema
	WhyNotAccepted Why = "not_accepted" // the tool server refused it or could not be reached
	WhyTimeout     Why = "timeout"      // no result in time
	// WhyUnanswered means that the tool's question was not answered in time, or could not be
	// asked.
	WhyUnanswered  Why = "unanswered"
	WhyInterrupted Why = "interrupted" // Cancel
	WhyClosed      Why = "closed"      // CloseThread
)

// Errors that callers may handle.
var (
	ErrNoCall    = errors.New("no such call")
	ErrOtherCall = errors.New("the id was used for another call of this thread")
	ErrDone      = errors.New("the call has ended")
)
