package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/hook"
	"github.com/assent-dev/assent/cmd/internal/stores"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/directory"
)

// hookDesk is the service of one hook, in its process. Others of the
// same store may run beside it: the inbox lets time act on what is
// asked, and seals the ledger.
type hookDesk struct {
	hold.Side

	app   *app
	agent string
	asker approval.Asker
}

// hooksAlone opens the service of a hook without a server. It reads the
// rules while the store is opened: a hook stands before every tool, and
// each takes some milliseconds.
func hooksAlone(ctx context.Context, cfg config.MCP, asker, person string) (hook.Desk, error) {
	a := &app{cfg: cfg.Asking(person), log: slog.New(slog.DiscardHandler)}
	read := make(chan rulesRead, 1)
	go func() { read <- readRules(a.cfg, cfg.Agent, a.log) }()
	opened, err := openStore(ctx, a.cfg.Location(), a.log)
	rules := <-read
	switch {
	case rules.err != nil && err == nil:
		return nil, errors.Join(rules.err, opened.Close())
	case rules.err != nil:
		return nil, rules.err
	case err != nil:
		return nil, fmt.Errorf("%w; see that its disk has room and its directory can be written, or name another file "+
			"with --store", err)
	}

	a.store, a.tenants = opened, rules.tenants
	a.people = directory.With(a.tenants.directories(), a.store, time.Now)
	a.service = a.newService(nil)

	who := approval.Asker{Token: asker, Person: person}

	return &hookDesk{
		Side:  hold.Embedded(a.service, hold.Place{Tenant: ownTenant, Agent: rules.agent}, who),
		app:   a,
		agent: rules.agent,
		asker: who,
	}, nil
}

// rulesRead are the rules of a hook without a server, and the id of its
// agent.
type rulesRead struct {
	tenants tenants
	agent   string
	err     error
}

// readRules reads the files of a hook. What it panics with is an error:
// whoever reads them beside something else can't catch it.
func readRules(cfg config.Serve, agentFile string, log *slog.Logger) (out rulesRead) {
	defer func() {
		if p := recover(); p != nil {
			out.err = fmt.Errorf("read the rules: %v", p)
		}
	}()
	if out.tenants, out.err = loadTenants(cfg, log); out.err != nil {
		return out
	}
	out.agent, out.err = onlyAgent(out.tenants[ownTenant].plans, agentFile)

	return out
}

// hookFinds says what is wrong with the files of a hook without a
// server, which opens no store for that.
func hookFinds(cfg config.MCP) error {
	return readRules(cfg.Asking(""), cfg.Agent, slog.New(slog.DiscardHandler)).err
}

// hookWait is how long one look at a request waits.
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

// shortLog is the longest log of changes that a hook leaves beside its
// store, in bytes: the next hook reads all of it.
const shortLog = 1 << 20

// Close leaves a store open whose log is short: the process ends next,
// and what was recorded is on the disk. To close it would copy the log
// into the file, and wait five times for the disk before each call of a
// tool.
func (d *hookDesk) Close() error {
	if log := stores.Log(d.app.cfg.Store); log > 0 && log <= shortLog {
		return nil
	}

	return d.app.store.Close()
}
