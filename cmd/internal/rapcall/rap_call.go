// Package rapcall implements `assent rap call`: a RAP runtime for one call.
package rapcall

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/cmd/internal/decide"
	"github.com/assent-dev/assent/cmd/internal/system"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/runtime"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

type command struct{ decide.Decider }

// rapCallFlags are the flags of assent rap call.
type rapCallFlags struct {
	decide.Flags
	url       string
	tokenFile string
	allow     []string
	args      string
	thread    string
	id        string
	user      string
	answer    string
	listen    string
	public    string
	within    time.Duration
	asJSON    bool
}

func Command(streams term.Streams) *cobra.Command {
	a := command{decide.Decider{Streams: streams}}
	var f rapCallFlags
	cmd := &cobra.Command{
		Use:   "call --url URL [OPERATION] [--args JSON|-] [--answer INDEX|dismiss]",
		Short: "Be a small honest RAP runtime: discover, invoke, show the choice, answer, print the result",
		Long: "call asks a RAP tool server what it offers. With an OPERATION it invokes it, shows what the tool " +
			"asks, sends your answer and prints the\n" +
			"result; without, it lists what there is. Where the tool goes on after its result (a subscription), its " +
			"events are printed as they come, until\n" +
			"the last. Ctrl-C and --within tell the tool that nobody listens any more. It remembers nothing. With " +
			"--agent the call is decided by that agent's\n" +
			"file first. Messages of the tool that are refused are told on standard error, with the reason.\n" +
			"Exit code 0: the tool's result, and the last of its events, 1: an error instead, or it was stopped " +
			"before, 2: it could not be tried.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := system.UntilSignal(cmd)
			defer stop()
			return a.rapCall(ctx, f, strings.Join(args, ""))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.url, "url", "", "base `URL` of the tool server")
	flags.StringVar(&f.tokenFile, "token-file", "", "`FILE` of the token that the tool server wants")
	flags.StringArrayVar(
		&f.allow,
		"allow",
		nil,
		"further `ORIGIN` that its endpoint or its questions may name (repeatable)",
	)
	flags.StringVar(&f.args, "args", "{}", "arguments as `JSON`, or - for standard input")
	flags.StringVar(&f.thread, "thread", "", "`ID` of the thread; a random one")
	flags.StringVar(&f.id, "id", "", "`ID` of the call; a random one")
	flags.StringVar(&f.user, "user", "", "`NAME` of the user for whom it is called")
	flags.StringVar(&f.answer, "answer", "", "`INDEX` of the choice to send, or dismiss, instead of asking here")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:0", "`ADDRESS` at which the tool reaches this runtime")
	flags.StringVar(
		&f.public,
		"callback-url",
		"",
		"`URL` at which it does when that is another; http:// and the address",
	)
	flags.DurationVar(
		&f.within,
		"within",
		10*time.Minute,
		"how long to wait for a result, and for the last event after it",
	)
	flags.StringVar(
		&f.Agent,
		"agent",
		"",
		"`FILE` of the agent that makes the call, .agf.yaml; without it every operation may be called",
	)
	flags.StringVar(
		&f.Decisions,
		"decisions",
		"",
		"decisions.yaml: `FILE` of what the owner chose, as assent serve reads it; for that agent",
	)
	flags.StringArrayVar(
		&f.Policies,
		"policies",
		nil,
		"`DIR` of *.policy.yaml for that agent (repeatable); instead of those of --decisions",
	)
	flags.BoolVar(&f.asJSON, "json", false, "print JSON documents")
	term.Required(cmd, "url")
	return cmd
}

// rapCall runs a Runtime for one call.
func (a command) rapCall(ctx context.Context, f rapCallFlags, operation string) error {
	if !isAnswer(f.answer) {
		return fmt.Errorf("--answer %q: expected the INDEX of a choice, counted from 0, or dismiss", f.answer)
	}
	if f.Decisions != "" && f.Agent == "" {
		return errors.New("--decisions: expected --agent with it, whose calls it is about")
	}
	args, err := a.rapArguments(f.args)
	if err != nil {
		return err
	}
	news := &rapNews{w: a.Err}
	a.Err = news
	terminal := a.rapTerminal(ctx, f)
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	terminal.at = cmp.Or(f.public, "http://"+listener.Addr().String())
	ours, stop, err := a.rapRuntime(ctx, f, operation, listener, hold.NewLocal(terminal.ask, terminal.approve))
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer news.end()
	defer stop()
	threads, err := ours.As(rapCaller())
	if err != nil {
		return err
	}
	tools, err := threads.Tools(ctx, f.thread)
	if err != nil {
		return err
	}
	if len(tools.Problems) > 0 {
		return unusable(tools.Problems[0].Err)
	}
	if operation == "" {
		return a.rapOffers(f, tools.Offers)
	}
	terminal.expects(operation, tools.Offers)
	in := runtime.Invocation{
		Thread:    f.threadOr(),
		ID:        f.idOr(),
		User:      f.user,
		Operation: operation,
		Arguments: args,
	}
	until := time.Now().Add(f.within)
	if _, err := threads.Invoke(ctx, in); err != nil {
		return err
	}
	return a.rapFollow(ctx, f, threads, terminal, in, until)
}

// rapCaller returns the asker of the call: the user of this terminal. The tool server identifies
// threads and calls by the names that the runtime chose.
func rapCaller() approval.Asker { return approval.Asker{Token: "assent rap call"} }

// refused prints the most common reason why a tool server doesn't accept an invocation.
func (t *rapTerminal) refused(end runtime.Call) {
	if end.Why == runtime.WhyNotAccepted {
		t.Printf(
			"it was to answer at %s: when it takes other addresses only, --listen and --callback-url give one of them\n",
			t.at,
		)
	}
}

// unusable explains why a tool server can't be used, and how to fix it if the caller can.
func unusable(err error) error {
	err = fmt.Errorf("the tool server can't be used: %w", err)
	if errors.Is(err, peer.ErrOrigin) {
		err = fmt.Errorf("%w: expected that of --url; --allow ORIGIN takes another one", err)
	}
	return err
}

func (f *rapCallFlags) threadOr() string {
	if f.thread == "" {
		f.thread = "thread-" + rand.Text()
	}
	return f.thread
}

func (f *rapCallFlags) idOr() string {
	if f.id == "" {
		f.id = "call-" + rand.Text()
	}
	return f.id
}

func (a command) rapArguments(text string) (json.RawMessage, error) {
	if text != "-" {
		return json.RawMessage(text), nil
	}
	read, err := term.ReadFile("-", a.In)
	if err != nil {
		return nil, fmt.Errorf("--args: %w", err)
	}
	return read, nil
}

// rapRuntime starts a Runtime that keeps everything in memory, and the server for its callbacks.
func (a command) rapRuntime(
	ctx context.Context, f rapCallFlags, operation string, listener net.Listener, at hold.People,
) (*runtime.Runtime, func(), error) {
	server := runtime.Server{
		Name:             f.url,
		Peer:             peer.Config{URL: f.url, Allow: f.allow},
		TrustDestructive: f.Agent == "",
	}
	if f.tokenFile != "" {
		text, err := term.ReadFile(f.tokenFile, nil)
		if err != nil {
			return nil, nil, fmt.Errorf("--token-file: %w", err)
		}
		server.Peer.Token = strings.TrimSpace(string(text))
	}

	plan, err := a.rapPlan(f, cmp.Or(operation, "none"))
	if err != nil {
		return nil, nil, err
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	ours, err := runtime.New(runtime.Config{
		Common: rap.Common{
			Records:   rap.NewMemory(),
			Namespace: "call",
			Key:       key,
			Plan: func(context.Context) (*resolve.Plan, error) {
				return plan, nil
			},
			People: at,
			Log:    rapLog(a.Err),
			Now:    time.Now,
			Poll:   100 * time.Millisecond,
		},
		Servers:      []runtime.Server{server},
		CallbackURL:  cmp.Or(f.public, "http://"+listener.Addr().String()),
		CallWithin:   f.within,
		ChoiceWithin: f.within,
		Only:         rapCaller(),
	})
	if err != nil {
		return nil, nil, err
	}
	return ours, serveRap(ctx, listener, ours), nil
}

// serveRap runs a runtime and its callbacks until stop is called.
func serveRap(ctx context.Context, listener net.Listener, r *runtime.Runtime) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	answers := &http.Server{
		Handler:           r,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
	}
	ended := make(chan struct{})
	go func() { _ = answers.Serve(listener) }() // ends with Close
	go func() {
		defer close(ended)
		_ = r.Run(ctx) // ends with ctx
	}()
	return func() {
		cancel()
		<-ended
		_ = answers.Close()
	}
}

// openAgent is an agent that allows one operation, so that only the tool itself asks questions.
const openAgent = `schema_version: "1.0.0"
metadata: {id: rap-call, name: assent rap call, version: "1.0.0", description: Makes one call.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: none, model: none}}
action_space:
  local_tools:
    - {alias: %s, description: The operation.}
`

// rapPlan returns the agent's plan, or one that allows the operation.
func (a command) rapPlan(f rapCallFlags, operation string) (plan *resolve.Plan, err error) {
	if f.Agent != "" {
		return a.Compile(f.Flags)
	}
	alias, err := json.Marshal(operation)
	if err != nil {
		return nil, err
	}
	agent, findings := schema.Parse("assent rap call", fmt.Appendf(nil, openAgent, alias))
	if agent == nil {
		return nil, fmt.Errorf(
			"the operation %q can't be called: %s",
			operation,
			yamldoc.Stopping(findings)[0].Message,
		)
	}

	return resolve.Compile(agent, nil, resolve.Options{})
}

// rapOffers lists operations.
func (a command) rapOffers(f rapCallFlags, offers []runtime.Offer) error {
	p := a.Printer()
	if f.asJSON {
		type offer struct {
			Operation   string          `json:"operation"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"input_schema"`
		}
		out := []offer{}
		for _, o := range offers {
			out = append(out, offer{o.Name, o.Description, o.InputSchema})
		}
		return p.Document(out)
	}

	table := term.Heading("OPERATION", "SAYS OF ITSELF")
	for _, o := range offers {
		table.Row(o.Name, o.Description)
	}
	p.Table(table)
	return p.Done()
}
