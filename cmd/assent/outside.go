package main

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/internal/guard"
	"github.com/assent-dev/assent/server/notify"
	"github.com/assent-dev/assent/server/notify/slack"
	"github.com/assent-dev/assent/server/notify/webhook"
	"github.com/assent-dev/assent/store"
)

// outside is who hears of what happens: webhooks and Slack.
type outside struct {
	cfg     config.Serve
	base    string
	router  *notify.Router // nil: nobody
	targets []notify.Target
	apps    map[string]*slack.App // by tenant
	worker  *notify.Worker
}

// newOutside checks the routes. Senders come with connect, since Slack votes through the service that the routes belong to.
func newOutside(cfg config.Serve, base string) (*outside, error) {
	o := &outside{cfg: cfg, base: base, apps: map[string]*slack.App{}}
	if err := checkSlackPaths(cfg.Tenants); err != nil {
		return nil, err
	}
	var routes []notify.Route
	var names []string
	add := func(tenant, target string, r config.Route) {
		names = append(names, target)
		routes = append(routes, notify.Route{Target: target, Tenants: []string{tenant}, Events: r.Events, Agents: r.Agents, Groups: r.Groups})
	}
	for _, t := range cfg.Tenants {
		known := map[string]bool{}
		for _, w := range t.Webhooks {
			if known[w.Name] {
				return nil, fmt.Errorf("tenant %s: two webhooks share a name: %s", t.Name, w.Name)
			}
			known[w.Name] = true
			add(t.Name, webhookTarget(t.Name, w.Name), w.Route)
		}
		if t.Slack != nil {
			add(t.Name, slackTarget(t.Name), t.Slack.Route)
		}
	}
	if len(routes) == 0 {
		return o, nil
	}
	var err error
	o.router, err = notify.NewRouter(routes, names, base, time.Now)
	return o, err
}

// checkSlackPaths refuses tenants whose Slack would post to the same address, or to none.
func checkSlackPaths(tenants []config.Tenant) error {
	taken := map[string]string{}
	for _, t := range tenants {
		if t.Slack == nil {
			continue
		}
		id := providerID(t.Name)
		if id == "" {
			return fmt.Errorf("tenant %q: slack: its name makes no address under /slack/: expected a letter of a-z or a digit in it", t.Name)
		}
		if other, twice := taken[id]; twice {
			return fmt.Errorf("tenants %q and %q: slack: both names make the address /slack/%s: rename one of them", other, t.Name, id)
		}
		taken[id] = t.Name
	}
	return nil
}

func webhookTarget(tenant, name string) string { return "webhook:" + tenant + "/" + name }

func slackTarget(tenant string) string { return "slack:" + tenant }

// route is approval.Config.Route.
func (o *outside) route(event string, r *approval.Request) []approval.Delivery {
	if o.router == nil {
		return nil
	}
	return o.router.Deliveries(event, r)
}

// connect makes the senders.
func (o *outside) connect(a *app) error {
	for _, t := range o.cfg.Tenants {
		for _, w := range t.Webhooks {
			sender, err := newWebhook(w)
			if err != nil {
				return fmt.Errorf("tenant %s: webhook %s: %w", t.Name, w.Name, err)
			}
			o.targets = append(o.targets, notify.Target{Name: webhookTarget(t.Name, w.Name), Sender: sender})
		}
		if t.Slack == nil {
			continue
		}
		app, err := newSlack(a, t)
		if err != nil {
			return fmt.Errorf("tenant %s: slack: %w", t.Name, err)
		}
		o.apps[t.Name] = app
		o.targets = append(o.targets, notify.Target{Name: slackTarget(t.Name), Sender: app})
	}
	if len(o.targets) == 0 {
		return nil
	}
	var err error
	o.worker, err = notify.NewWorker(notify.WorkerConfig{Outbox: a.store, Targets: o.targets, Drain: o.cfg.Drain, Report: func(job store.Job, r notify.Result, err error) {
		if err != nil {
			a.log.Warn("delivery", "target", job.Target, "event", job.Event, "subject", job.Subject, "attempt", job.Attempt, "result", string(r), "error", err)
		}
	}})
	return err
}

func newWebhook(w config.Webhook) (*webhook.Sender, error) {
	address := w.URL
	if w.URLFile != "" {
		var err error
		if address, err = readSecret(w.URLFile); err != nil {
			return nil, err
		}
	}
	cfg := webhook.Config{URL: address, Guard: guard.Guard{Loopback: w.Loopback}}
	for _, text := range w.Networks {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("networks: %w", err)
		}
		cfg.Guard.Allow = append(cfg.Guard.Allow, network)
	}
	for _, file := range w.SecretFiles {
		secret, err := readSecret(file)
		if err != nil {
			return nil, err
		}
		cfg.Secrets = append(cfg.Secrets, secret)
	}
	return webhook.New(cfg)
}

func newSlack(a *app, t config.Tenant) (*slack.App, error) {
	token, err := readSecret(t.Slack.TokenFile)
	if err != nil {
		return nil, err
	}
	signing, err := readSecret(t.Slack.SigningSecretFile)
	if err != nil {
		return nil, err
	}
	return slack.New(slack.Config{
		Tenant: t.Name, Team: t.Slack.Team, Token: token, SigningSecret: signing, Channels: t.Slack.Channels, Arguments: t.Slack.Arguments, Inbox: a.base.String(),
		API: t.Slack.API, Guard: guard.Guard{Loopback: t.Slack.Loopback},
		Report: func(err error) { a.log.Warn("slack", "tenant", t.Name, "error", err) },
		Voter:  a.service, Requests: a.service, People: a.people, Values: a.store,
	})
}

// mount puts the addresses that Slack posts to into the pages. They check Slack's signature themselves.
func (o *outside) mount(mux *http.ServeMux) {
	for tenant, app := range o.apps {
		mux.Handle("POST "+slackPath(tenant), app) // checkSlackPaths: no two are the same
	}
}

// slackPath is where Slack posts clicks of a tenant to.
func slackPath(tenant string) string { return "/slack/" + providerID(tenant) }

// run sends until ctx ends, and lets what is under way end.
func (o *outside) run(ctx context.Context) {
	if o.worker != nil {
		o.worker.Run(ctx)
	}
	for _, app := range o.apps {
		app.Wait()
	}
}
