package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/fileerrors"
	"github.com/assent-dev/assent/cmd/internal/hook"
	"github.com/assent-dev/assent/cmd/internal/stores"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/directory"
)

// hookDesk is the service of one hook in its process. Other hooks may use the same store at the
// same time. The inbox handles deadlines and seals the ledger.
type hookDesk struct {
	hold.Side

	app   *app
	agent string
	asker approval.Asker
}

// hooksAlone opens the service of a hook without a server.
func hooksAlone(ctx context.Context, cfg config.MCP, asker, person string) (hook.Desk, error) {
	a := &app{cfg: cfg.Asking(person), log: slog.New(slog.DiscardHandler)}
	agent, err := a.openWithRules(ctx, cfg.Agent)
	if err != nil {
		return nil, err
	}
	a.people = directory.With(a.tenants.directories(), a.store, time.Now)
	a.service = a.newService(nil)

	who := approval.Asker{Token: asker, Person: person}

	return &hookDesk{
		Side:  hold.Embedded(a.service, hold.Place{Tenant: ownTenant, Agent: agent}, who),
		app:   a,
		agent: agent,
		asker: who,
	}, nil
}

// openWithRules reads the rules while it opens the store, and returns the agent's id. It does both
// in parallel because a hook runs before every tool call, and each takes some milliseconds. A store
// is created only if the rules can be read.
func (a *app) openWithRules(ctx context.Context, agentFile string) (agent string, err error) {
	read := make(chan rulesRead, 1)
	go func() { read <- readRules(a.cfg, agentFile, a.log) }()
	if _, err := os.Stat(a.cfg.Store); err != nil {
		rules := <-read
		if rules.err != nil {
			return "", rules.err
		}
		read <- rules
	}

	where := a.cfg.Location()
	where.Published = true
	opened, err := openStore(ctx, where, a.log)
	rules := <-read
	switch {
	case rules.err != nil && err == nil:
		return "", errors.Join(rules.err, opened.Close())
	case rules.err != nil:
		return "", rules.err
	case err != nil:
		return "", fmt.Errorf("%w; see that its disk has room and its directory can be written, or name another file "+
			"with --store", err)
	}

	a.store, a.tenants = opened, rules.tenants
	a.fileErrors = rules.errors

	return rules.agent, nil
}

// rulesRead are the rules of a hook without a server, and the id of its
// agent.
type rulesRead struct {
	tenants tenants
	agent   string
	errors  []diag.Finding // that leave the files usable
	err     error
}

// readRules reads the files of a hook. A panic becomes an error, because it runs in a goroutine of
// its own where the caller can't recover it.
func readRules(cfg config.Serve, agentFile string, log *slog.Logger) (out rulesRead) {
	defer func() {
		if p := recover(); p != nil {
			out.err = fmt.Errorf("read the rules: %v", p)
		}
	}()
	if out.tenants, out.err = loadTenants(cfg, log); out.err != nil {
		return out
	}
	plans := out.tenants[ownTenant].plans
	out.errors = plans.Errors()
	if cfg.Strict {
		if out.err = fileerrors.Refuse(out.tenants.fileErrors()); out.err != nil {
			return out
		}
	}
	out.agent, out.err = onlyAgent(plans, agentFile)

	return out
}

// hookFinds reports what is wrong with the files of a hook without a server. Its error means that
// the files can't be used. It opens no store.
func hookFinds(cfg config.MCP) ([]diag.Finding, error) {
	rules := readRules(cfg.Asking(""), cfg.Agent, slog.New(slog.DiscardHandler))
	if rules.err != nil {
		return nil, rules.err
	}
	return rules.tenants.fileErrors(), nil
}

// FileErrors returns the errors that were found in the files and that leave them usable.
func (d *hookDesk) FileErrors() []diag.Finding { return d.app.fileErrors }

// hookWait is the time that one poll of a request waits.
const hookWait = time.Minute

func (d *hookDesk) Wait(ctx context.Context, id string, version int64) error {
	return d.app.service.Await(ctx, ownTenant, id, version, hookWait)
}

func (d *hookDesk) Report(
	ctx context.Context, call *resolve.Call, what approval.Report, opened, key string,
) error {
	return d.app.service.Report(ctx, approval.ReportInput{
		Tenant: ownTenant,
		Asker:  d.asker,
		Agent:  d.agent,
		Call:   call,
		Report: what,
		Opened: opened,
		Key:    key,
	})
}

// shortLog is the maximum size in bytes of the write-ahead log that a hook leaves next to its
// store, because the next hook reads all of it.
const shortLog = 1 << 20

// Close doesn't close a store with a short log: the process exits next, and the records are already
// on the disk. Closing it would copy the log into the file and wait five times for the disk before
// each call of a tool.
func (d *hookDesk) Close() error {
	if log := stores.Log(d.app.cfg.Store); log > 0 && log <= shortLog {
		return nil
	}

	return d.app.store.Close()
}
