package cli

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
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/openapi"
)

//go:embed demo
var demoFiles embed.FS

// demoFlags are the flags of assent demo.
type demoFlags struct {
	once        bool
	autoApprove bool
	every       time.Duration
}

func (a Assent) demoCommand() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo [--once] [--auto-approve]",
		Short: "See the whole loop: a service, an agent that makes calls, and you who answers",
		Long: "demo starts the service on a store of its own in a temporary directory, and an agent that makes a call every few seconds: some may\n" +
			"run, one asks, one is covered by your standing approval, one is denied. Click the link it prints, and answer. Nothing is real.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilSignal(cmd)
			defer stop()
			return a.demo(ctx, f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.once, "once", false, "make each call once, verify the ledger and end")
	flags.BoolVar(&f.autoApprove, "auto-approve", false, "let the demo answer by itself, for tests")
	flags.DurationVar(&f.every, "every", 4*time.Second, "how long the agent pauses between calls")
	return cmd
}

// demo prepares everything in a directory of its own, which it removes at the end.
func (a Assent) demo(ctx context.Context, f demoFlags) (err error) {
	if a.Backend.Serve == nil || a.Backend.CreateToken == nil {
		return errNoBackend
	}
	dir, err := os.MkdirTemp("", "assent-demo-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := unpack(dir); err != nil {
		return err
	}
	cfg := ServeConfig{
		Listen: "127.0.0.1:0", Store: filepath.Join(dir, "assent.db"), KeyFile: filepath.Join(dir, "assent.key"), Drain: time.Second,
		Dev: true, DevPerson: devPerson, LogText: a.ErrTerminal,
		Tenants: []TenantConfig{{
			Name: defaultTenant, Agents: []string{filepath.Join(dir, "desk.agf.yaml")}, Policies: []string{dir}, People: filepath.Join(dir, "people.yaml"),
		}},
	}
	runtime, err := a.demoToken(ctx, cfg, openapi.TokenBody{Name: "demo-runtime", Scopes: []openapi.Scope{openapi.ScopeRequest, openapi.ScopeDecide}})
	if err != nil {
		return err
	}
	person, err := a.demoToken(ctx, cfg, openapi.TokenBody{Name: "demo-approver", Scopes: []openapi.Scope{openapi.ScopeVote, openapi.ScopeRead}, Person: devPerson})
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

func (a Assent) demoToken(ctx context.Context, cfg ServeConfig, body openapi.TokenBody) (secret string, err error) {
	body.ExpiresIn = "24h"
	from := place{storeFlags: storeFlags{StoreConfig: StoreConfig{Where: cfg.Store, KeyFile: cfg.KeyFile}}, tenant: defaultTenant}
	a.Err = io.Discard // that the store is new, and the tokens good for all agents, is what a demo is
	made, err := a.createDirectly(ctx, tokenFlags{place: from}, body)
	if err != nil {
		return "", err
	}
	return made.Secret, nil
}

// demoService runs the service beside the agent, until either ends.
func (a Assent) demoService(ctx context.Context, f demoFlags, cfg ServeConfig, runtime, person string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready, ended := make(chan Ready, 1), make(chan error, 1)
	log := a.Err
	if !a.ErrTerminal {
		log = io.Discard // the demo tells what matters itself
	}
	go func() { ended <- a.Backend.Serve(ctx, cfg, log, func(r Ready) { ready <- r }) }()
	select {
	case err := <-ended:
		return err
	case r := <-ready:
		err := a.demoAgent(ctx, f, cfg, r, runtime, person)
		cancel()
		return errors.Join(err, <-ended)
	}
}

// demoDesk is the agent's runtime, and what it tells.
type demoDesk struct {
	*printer
	runtime *client.Client
	person  *client.Client
	auto    bool
}

// demoCalls are what the agent wants, over and over.
func demoCalls() []string {
	return []string{
		`{"kind":"tool","tool":"get_quote","args":{"symbol":"ACME"},"session":"demo"}`,
		`{"kind":"tool","tool":"execute_trade","args":{"side":"buy","symbol":"ACME","amount":20000,"currency":"USD"},"session":"demo"}`,
		`{"kind":"tool","tool":"execute_trade","args":{"side":"buy","symbol":"ACME","amount":15000,"currency":"USD"},"session":"demo"}`,
		`{"kind":"tool","tool":"wire_funds","args":{"to":"somewhere","amount":1},"session":"demo"}`,
	}
}

func (a Assent) demoAgent(ctx context.Context, f demoFlags, cfg ServeConfig, r Ready, runtime, person string) error {
	d := &demoDesk{printer: a.printer(), auto: f.autoApprove}
	var err1, err2 error
	d.runtime, err1 = client.New(r.API, runtime, client.Options{})
	d.person, err2 = client.New(r.API, person, client.Options{})
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	d.banner()
	d.printf("assent serves at %s, and forgets everything when this ends\n", r.URL)
	if !f.autoApprove {
		d.printf("\n  Sign in here, and answer what the agent asks:\n  %s\n\n", styled{bold, r.Link})
	}
	for {
		for _, call := range demoCalls() {
			if err := d.step(ctx, call); err != nil {
				return d.ending(ctx, err)
			}
			if !f.once && !sleep(ctx, f.every) {
				return nil
			}
		}
		if f.once {
			return errors.Join(d.verified(ctx, cfg.KeyFile+".pub"), d.done())
		}
	}
}

// sleep waits; false when ctx ended first.
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

// ending tells an interrupt from a failure.
func (d *demoDesk) ending(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return answer(err)
}

// step is what a runtime does with one call.
func (d *demoDesk) step(ctx context.Context, call string) error {
	d.printf("agent   wants %s\n", call)
	opened, err := d.runtime.Open(ctx, "demo-desk", []byte(call), client.OpenOptions{})
	if err != nil {
		return err
	}
	switch {
	case opened.Granted():
		d.printf("        %s: the standing approval %s covers it. It ran.\n\n", styled{green, "granted"}, opened.Grant.ID)
	case opened.Outcome == resolve.Allow:
		d.printf("        %s by policy: nobody is asked. It ran.\n\n", styled{green, "allowed"})
	case opened.Outcome == resolve.Ask:
		return d.asked(ctx, opened.Request, call)
	default:
		d.printf("        %s: %s It did not run.\n\n", styled{red, "denied"}, ready(opened.Decision.Message))
	}
	return d.done()
}

// asked waits for a person, takes the run and tells what happened.
func (d *demoDesk) asked(ctx context.Context, r *approval.Request, call string) error {
	d.printf("        %s: %s waits for %s\n", styled{yellow, "asked"}, r.ID, groupNames(approval.Summarize(r).Groups))
	if err := d.done(); err != nil {
		return err
	}
	if d.auto {
		if err := d.approveIt(ctx, r.ID); err != nil {
			return err
		}
	}
	decided, err := d.runtime.WaitDecided(ctx, r.ID)
	if err != nil {
		return err
	}
	if decided.State != approval.Approved {
		d.printf("        %s by %s %s. It did not run.\n\n", styled{red, string(decided.State)}, decided.By, decided.Reason)
		return d.done()
	}
	d.printf("        %s by %s\n", styled{green, "approved"}, decided.By)
	final, err := take(ctx, d.runtime, decided, []byte(call))
	if err != nil {
		return err
	}
	d.printf("        %s: the permit is spent, it can't run a second time\n", styled{green, "consumed"})
	d.printf("        %s with exactly %s\n\n", styled{green, "ran"}, final.Current().Call.Args)
	return d.done()
}

// approveIt answers as a person would, with a standing approval for smaller trades.
func (d *demoDesk) approveIt(ctx context.Context, id string) error {
	r, err := d.person.Request(ctx, id)
	if err != nil {
		return err
	}
	_, err = d.person.Vote(ctx, id, r.Version, openapi.VoteBody{
		Verdict: approval.Approve, Binding: r.Binding(), ShownFully: true, Channel: "cli",
		Grant: openapi.GrantOffer{MaxUses: 3, Bounds: []approval.Bound{{Path: "amount", Kind: approval.AtMost}}},
	})
	return err
}

// verified waits until everything is sealed, and verifies the ledger as an auditor would: from an export, with the key alone.
func (d *demoDesk) verified(ctx context.Context, keyFile string) error {
	key, err := publicKeyOf(keyFile)
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
			return answer(err)
		default:
			if complete, err := wholeDemo(export.Bytes(), key); err != nil {
				return err
			} else if complete {
				return d.printLedger(export.Bytes(), key)
			}
		}
		if !sleep(ctx, 50*time.Millisecond) {
			return fmt.Errorf("the ledger was not sealed in time: %w", ctx.Err())
		}
	}
}

// wholeDemo tells whether an export verifies and holds the last thing that the agent did.
func wholeDemo(export []byte, key string) (complete bool, err error) {
	_, err = ledger.Verify(bytes.NewReader(export), ledger.VerifyOptions{PublicKey: key, Each: func(_ int64, leaf ledger.Leaf, _ ledger.Openings) error {
		complete = complete || leaf.Type == approval.EventDenied
		return nil
	}})
	return complete, err
}

func (d *demoDesk) printLedger(export []byte, key string) error {
	d.printf("ledger\n")
	_, err := ledger.Verify(bytes.NewReader(export), ledger.VerifyOptions{PublicKey: key, Each: func(index int64, leaf ledger.Leaf, _ ledger.Openings) error {
		d.printf("  ")
		d.leaf(index, leaf)
		return nil
	}})
	if err != nil {
		return err
	}
	v, err := check(bytes.NewReader(export), []string{key}, nil)
	if err != nil {
		return err
	}
	d.verdict(v)
	return d.done()
}
