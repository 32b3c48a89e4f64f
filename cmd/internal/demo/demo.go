// Package demo implements `assent demo`: a service, an agent that makes calls, and the person who
// answers.
package demo

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/answer"
	"github.com/assent-dev/assent/cmd/internal/audit"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/operate"
	"github.com/assent-dev/assent/cmd/internal/remote"
	"github.com/assent-dev/assent/cmd/internal/system"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/openapi"
)

//go:embed demo
var demoFiles embed.FS

type demo struct{ operate.Commands }

// demoFlags are the flags of assent demo.
type demoFlags struct {
	once        bool
	autoApprove bool
	every       time.Duration
	decisions   string
}

func Command(of operate.Commands) *cobra.Command {
	a := demo{of}
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo [--once] [--auto-approve] [--decisions FILE]",
		Short: "See the whole loop: a service, an agent that makes calls, and you who answers",
		Long: "demo starts the service on a store of its own in a temporary directory, and an agent that makes a " +
			"call every few seconds: some may\n" +
			"run, one asks, one is covered by your standing approval, one is denied. Click the link it prints, and " +
			"answer. Nothing is real.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := system.UntilSignal(cmd)
			defer stop()
			return a.demo(ctx, f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.once, "once", false, "make each call once, verify the ledger and end")
	flags.BoolVar(&f.autoApprove, "auto-approve", false, "let the demo answer by itself, for tests")
	flags.StringVar(&f.decisions, "decisions", "",
		"decisions.yaml: `FILE` of what the owner chose, instead of the demo's, policies included")
	flags.DurationVar(&f.every, "every", 4*time.Second, "how long the agent pauses between calls")
	return cmd
}

// demo runs in a temporary directory, which it removes at the end.
func (a demo) demo(ctx context.Context, f demoFlags) (err error) {
	dir, err := os.MkdirTemp("", "assent-demo-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := unpack(dir); err != nil {
		return err
	}
	cfg := config.Serve{
		Listen:    "127.0.0.1:0",
		Store:     filepath.Join(dir, "assent.db"),
		KeyFile:   filepath.Join(dir, "assent.key"),
		Drain:     time.Second,
		Dev:       true,
		DevPerson: config.DevPerson,
		LogText:   a.ErrTerminal,
		Tenants: []config.Tenant{{
			Name:     config.DefaultTenant,
			Agents:   []string{filepath.Join(dir, "desk.agf.yaml")},
			Policies: []string{dir},
			People:   filepath.Join(dir, "people.yaml"),
		}},
	}
	if f.decisions != "" {
		one := &cfg.Tenants[0]
		one.Decisions = f.decisions
		one.Policies = nil // the file says where they are
		if err := a.Choices(one); err != nil {
			return err
		}
	}

	runtime, err := a.demoToken(
		ctx,
		cfg,
		openapi.TokenBody{
			Name:   "demo-runtime",
			Scopes: []openapi.Scope{openapi.ScopeRequest, openapi.ScopeDecide},
		},
	)
	if err != nil {
		return err
	}
	person, err := a.demoToken(ctx, cfg, openapi.TokenBody{
		Name:   "demo-approver",
		Scopes: []openapi.Scope{openapi.ScopeVote, openapi.ScopeRead},
		Person: config.DevPerson,
	})
	if err != nil {
		return err
	}
	return a.demoService(ctx, f, cfg, runtime, person)
}

// unpack writes the demo's agent, policy and people.
func unpack(dir string) error {
	files, err := fs.Sub(demoFiles, "demo")
	if err != nil {
		return err
	}
	return os.CopyFS(dir, files)
}

func (a demo) demoToken(
	ctx context.Context,
	cfg config.Serve,
	body openapi.TokenBody,
) (secret string, err error) {
	body.ExpiresIn = "24h"
	from := operate.Place{
		StoreFlags: config.StoreFlags{Store: config.Store{Where: cfg.Store, KeyFile: cfg.KeyFile}},
		Tenant:     config.DefaultTenant,
	}
	a.Err = io.Discard // that the store is new is what a demo is
	made, err := a.MakeToken(ctx, from, false, body)
	if err != nil {
		return "", err
	}
	return made.Secret, nil
}

// demoService runs the service and the agent until either ends.
func (a demo) demoService(ctx context.Context, f demoFlags, cfg config.Serve, runtime, person string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready, ended := make(chan operate.Ready, 1), make(chan error, 1)
	log := a.Err
	if !a.ErrTerminal {
		log = io.Discard // the demo tells what matters itself
	}
	go func() {
		ended <- a.Backend.Serve(ctx, cfg, log, func(r operate.Ready) { ready <- r })
	}()
	select {
	case err := <-ended:
		return err
	case r := <-ready:
		err := a.demoAgent(ctx, f, cfg, r, runtime, person)
		cancel()
		return errors.Join(err, <-ended)
	}
}

// demoDesk is the agent's runtime and its output.
type demoDesk struct {
	*term.Printer
	mcp     *mcpClient
	runtime *client.Client
	person  *client.Client
	auto    bool
}

// steps returns the steps that the agent repeats.
func (d *demoDesk) steps() []func(ctx context.Context) error {
	calls := []struct{ title, call string }{
		{
			"It looks up a price. This changes nothing.",
			`{"kind":"tool","tool":"get_quote","args":{"symbol":"ACME"},"session":"demo"}`,
		},
		{
			"It buys shares for 20,000 USD.",
			`{"kind":"tool","tool":"execute_trade","args":{"side":"buy","symbol":"ACME","amount":20000,` +
				`"currency":"USD"},"session":"demo"}`,
		},
		{
			"It buys for 15,000 USD. If the last approval was a standing one for trades up to its amount, nobody is asked.",
			`{"kind":"tool","tool":"execute_trade","args":{"side":"buy","symbol":"ACME","amount":15000,` +
				`"currency":"USD"},"session":"demo"}`,
		},
		{
			"It sends money away.",
			`{"kind":"tool","tool":"wire_funds","args":{"to":"somewhere","amount":1},"session":"demo"}`,
		},
	}
	var all []func(ctx context.Context) error
	for _, c := range calls {
		all = append(all, func(ctx context.Context) error {
			d.Printf("%s\n", term.Bold.Of(c.title))
			return d.step(ctx, c.call)
		})
	}
	return slices.Insert(all, len(all)-1, d.mcpStep)
}

func (a demo) demoAgent(
	ctx context.Context, f demoFlags, cfg config.Serve, r operate.Ready, runtime, person string,
) error {
	d := &demoDesk{Printer: a.Printer(), auto: f.autoApprove}
	var err1, err2 error
	d.runtime, err1 = client.New(r.API, runtime, client.Options{})
	d.person, err2 = client.New(r.API, person, client.Options{})
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	var stop func() error
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dir := filepath.Dir(cfg.Store)
	d.mcp, stop, err1 = a.gateway(ctx, dir, r.API, runtime, f.decisions)
	if err1 != nil {
		return err1
	}
	return errors.Join(d.loop(ctx, f, cfg, r), stop())
}

// loop runs the steps until ctx ends, or only once each.
func (d *demoDesk) loop(ctx context.Context, f demoFlags, cfg config.Serve, r operate.Ready) error {
	operate.PrintBanner(d.Printer)
	d.Printf("assent serves at %s, and forgets everything when this ends\n", r.URL)
	if !f.autoApprove {
		d.Printf("\n  Sign in here, and answer what the agent asks:\n  %s\n\n", term.Bold.Of(r.Link))
	}
	for {
		for _, step := range d.steps() {
			if err := step(ctx); err != nil {
				return d.ending(ctx, err)
			}
			if !f.once && !sleep(ctx, f.every) {
				return nil
			}
		}

		err := d.verified(ctx, cfg.KeyFile+".pub", f.once)
		if !f.once && ctx.Err() != nil {
			return nil
		}
		if f.once || err != nil {
			return errors.Join(err, d.Done())
		}
	}
}

// sleep waits for a duration. It returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// ending returns nil if the error was caused by an interrupt.
func (d *demoDesk) ending(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return remote.Explain(err)
}

// step makes one call as a runtime does.
func (d *demoDesk) step(ctx context.Context, call string) error {
	d.Printf("agent   wants %s\n", call)
	opened, err := d.runtime.Open(ctx, "demo-desk", []byte(call), client.OpenOptions{})
	if err != nil {
		return err
	}
	switch {
	case opened.Granted():
		d.Printf(
			"        %s: the standing approval %s covers it. It ran.\n\n",
			term.Green.Of("granted"),
			opened.Grant.ID,
		)
	case opened.Outcome == resolve.Allow:
		d.Printf("        %s by policy: nobody is asked. It ran.\n\n", term.Green.Of("allowed"))
	case opened.Outcome == resolve.Ask:
		return d.asked(ctx, opened.Request, call)
	default:
		d.Printf("        %s: %s It did not run.\n\n", term.Red.Of("denied"), term.Ready(opened.Decision.Message))
	}

	return d.Done()
}

// asked waits for a person, takes the run and prints the outcome.
func (d *demoDesk) asked(ctx context.Context, r *approval.Request, call string) error {
	d.Printf(
		"        %s: %s waits for %s\n",
		term.Yellow.Of("asked"),
		r.ID,
		answer.GroupNames(approval.Summarize(r).Groups),
	)
	if err := d.Done(); err != nil {
		return err
	}
	if d.auto {
		if err := d.approveIt(ctx, r.ID, smallerTrades()); err != nil {
			return err
		}
	}
	decided, err := d.runtime.WaitDecided(ctx, r.ID)
	if err != nil {
		return err
	}
	if decided.State != approval.Approved {
		d.Printf(
			"        %s by %s %s. It did not run.\n\n",
			term.Red.Of(string(decided.State)),
			decided.By,
			decided.Reason,
		)
		return d.Done()
	}

	d.Printf("        %s by %s\n", term.Green.Of("approved"), decided.By)
	final, err := d.runtime.Take(ctx, decided, []byte(call))
	if err != nil {
		return err
	}
	d.Printf("        %s: the permit is spent, it can't run a second time\n", term.Green.Of("consumed"))
	d.Printf("        %s with exactly %s\n\n", term.Green.Of("ran"), final.Current().Call.Args)
	return d.Done()
}

// smallerTrades offers a standing approval for trades up to the same amount.
func smallerTrades() openapi.GrantOffer {
	return openapi.GrantOffer{
		MaxUses: 3,
		Bounds:  []approval.Bound{{Path: "amount", Kind: approval.AtMost}},
	}
}

// approveIt approves a request as the person.
func (d *demoDesk) approveIt(ctx context.Context, id string, grant openapi.GrantOffer) error {
	r, err := d.person.Request(ctx, id)
	if err != nil {
		return err
	}
	_, err = d.person.Vote(ctx, id, r.Version, openapi.VoteBody{
		Verdict:    approval.Approve,
		Binding:    r.Binding(),
		ShownFully: true,
		Channel:    "cli",
		Grant:      grant,
	})
	return err
}

// verified waits until everything is sealed, and verifies the ledger as an auditor would: from an
// export, with only the key. It also lists the entries if list is true.
func (d *demoDesk) verified(ctx context.Context, keyFile string, list bool) error {
	key, err := audit.PublicKeyOf(keyFile)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		var export bytes.Buffer
		err := d.person.Export(ctx, &export)
		switch {
		case client.Code(err) == openapi.CodeNotFound: // nothing is sealed yet
		case err != nil:
			return remote.Explain(err)
		default:
			if complete, err := wholeDemo(export.Bytes(), key); err != nil {
				return err
			} else if complete {
				return d.printLedger(export.Bytes(), key, list)
			}
		}

		if !sleep(ctx, 50*time.Millisecond) {
			return fmt.Errorf("the ledger was not sealed in time: %w", ctx.Err())
		}
	}
}

// lastTarget is the ledger subject of the last call in steps.
const lastTarget = "tool wire_funds"

// ends returns the events after which nothing more happens to a call.
func ends() []string {
	return []string{
		approval.EventAllowed, approval.EventDenied, approval.EventConsumed, approval.EventRequestDenied,
		approval.EventExpired,
	}
}

// wholeDemo reports whether an export verifies and contains the agent's last call.
func wholeDemo(export []byte, key string) (complete bool, err error) {
	_, err = ledger.Verify(bytes.NewReader(export), ledger.VerifyOptions{
		PublicKey: key,
		Each: func(_ int64, leaf ledger.Leaf, _ ledger.Openings) error {
			target, _ := leaf.Facts.Lookup("target")
			complete = complete || target.Text == lastTarget && slices.Contains(ends(), leaf.Type)
			return nil
		},
	})
	return complete, err
}

func (d *demoDesk) printLedger(export []byte, key string, list bool) error {
	d.Printf("%s\n", term.Bold.Of("The signed log, exported and checked with the public key alone: assent audit verify"))
	_, err := ledger.Verify(bytes.NewReader(export), ledger.VerifyOptions{
		PublicKey: key,
		Each: func(index int64, leaf ledger.Leaf, _ ledger.Openings) error {
			if list {
				d.Printf("  ")
				audit.PrintLeaf(d.Printer, index, leaf)
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	v, err := audit.Check(bytes.NewReader(export), []string{key}, nil)
	if err != nil {
		return err
	}
	audit.PrintVerdict(d.Printer, v)
	d.Printf("\n")
	return d.Done()
}
