package main

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/operate"
	"github.com/assent-dev/assent/internal/guard"
	"github.com/assent-dev/assent/server/inbox"
	"github.com/assent-dev/assent/server/notify"
	"github.com/assent-dev/assent/server/notify/slack"
	"github.com/assent-dev/assent/server/notify/webhook"
	"github.com/assent-dev/assent/store"
)

// channels is the table of all channels. A new one is a folder of
// server/notify, a reader of its configuration, and a line here.
func channels() []channel {
	return []channel{
		{name: inbox.Channel, answers: true}, // pages of this server, which are sent to nobody
		{name: "webhook", targets: webhookTargets},
		{
			name:     slack.Channel,
			answers:  true,
			register: operate.SlackURL,
			targets:  slackTargets,
		},
	}
}

// channel is a way by which people and programs hear of requests, and
// by which people may answer them.
type channel struct {
	name     string // first part of the names of its targets, and of the address that it posts answers to
	answers  bool   // people answer here: votes carry its name, so no client may give it as its own
	register string // what an operator calls the address that it posts answers to; "": it posts none
	// targets are those that the configuration of a tenant names. nil:
	// there are none to name.
	targets func(t config.Tenant) []target
}

// target is one receiver of a channel.
type target struct {
	key   string // tells it from others of the tenant, where the channel may have several
	route config.Route
	// check reads what the configuration names.
	check func() []error
	// open makes the sender. It may be an http.Handler too, which takes
	// answers and checks by itself who posts them, and have a method
	// Wait, which returns when it has ended what it works at.
	open func(a *app) (notify.Sender, error)
}

// votingChannels are the names of the channels by which people answer.
func votingChannels() []string {
	var names []string
	for _, c := range channels() {
		if c.answers {
			names = append(names, c.name)
		}
	}

	return names
}

// posting are the beginnings of the addresses that channels post answers to.
func posting() []string {
	var prefixes []string
	for _, c := range channels() {
		if c.register != "" {
			prefixes = append(prefixes, "/"+c.name+"/")
		}
	}

	return prefixes
}

// path is the address of this server that the channel posts answers of
// a tenant to.
func (c channel) path(tenant string) string { return "/" + c.name + "/" + providerID(tenant) }

// targeted is a target of a tenant.
type targeted struct {
	target
	channel channel
	tenant  string
}

// name is what deliveries call the target: "slack:TENANT",
// "webhook:TENANT/NAME".
func (t targeted) name() string {
	if t.key == "" {
		return t.channel.name + ":" + t.tenant
	}

	return t.channel.name + ":" + t.tenant + "/" + t.key
}

// label is what complaints call the target.
func (t targeted) label() string {
	if t.key == "" {
		return t.channel.name
	}

	return t.channel.name + " " + t.key
}

// targetsOf lists all targets of a tenant.
func targetsOf(t config.Tenant) []targeted {
	var all []targeted
	for _, c := range channels() {
		if c.targets == nil {
			continue
		}
		for _, x := range c.targets(t) {
			all = append(all, targeted{
				target:  x,
				channel: c,
				tenant:  t.Name,
			})
		}
	}

	return all
}

// delivery is who hears of what happens, through all channels.
type delivery struct {
	cfg     config.Serve
	all     []targeted
	router  *notify.Router           // nil: nobody hears of anything
	senders map[string]notify.Sender // by name of the target
	worker  *notify.Worker
}

// newDelivery checks the routes. Senders come with connect, since some
// vote through the service that the routes belong to.
func newDelivery(cfg config.Serve, base string) (*delivery, error) {
	d := &delivery{cfg: cfg, senders: map[string]notify.Sender{}}
	var routes []notify.Route
	var names []string
	taken := map[string]targeted{} // by name, and by address
	for _, tenant := range cfg.Tenants {
		for _, t := range targetsOf(tenant) {
			if err := t.claim(taken); err != nil {
				return nil, err
			}
			d.all = append(d.all, t)
			names = append(names, t.name())
			routes = append(routes, notify.Route{
				Target:  t.name(),
				Tenants: []string{t.tenant},
				Events:  t.route.Events,
				Agents:  t.route.Agents,
				Groups:  t.route.Groups,
			})
		}
	}

	if len(routes) == 0 {
		return d, nil
	}
	var err error
	d.router, err = notify.NewRouter(routes, names, base, time.Now)

	return d, err
}

// claim refuses targets that share a name, and tenants whose channel
// would post to the same address, or to none.
func (t targeted) claim(taken map[string]targeted) error {
	if _, twice := taken[t.name()]; twice {
		return fmt.Errorf("tenant %s: two %ss share a name: %s", t.tenant, t.channel.name, t.key)
	}
	taken[t.name()] = t
	if t.channel.register == "" {
		return nil
	}
	path, kind := t.channel.path(t.tenant), t.channel.name
	if providerID(t.tenant) == "" {
		return fmt.Errorf(
			"tenant %q: %s: its name makes no address under /%s/: expected a letter of a-z or a digit in it",
			t.tenant,
			kind,
			kind,
		)
	}

	if other, twice := taken[path]; twice {
		return fmt.Errorf(
			"tenants %q and %q: %s: both names make the address %s: rename one of them",
			other.tenant,
			t.tenant,
			kind,
			path,
		)
	}

	taken[path] = t

	return nil
}

// route is approval.Config.Route.
func (d *delivery) route(event string, r *approval.Request) []approval.Delivery {
	if d.router == nil {
		return nil
	}

	return d.router.Deliveries(event, r)
}

// connect makes the senders.
func (d *delivery) connect(a *app) error {
	var targets []notify.Target
	for _, t := range d.all {
		sender, err := t.open(a)
		if err != nil {
			return fmt.Errorf("tenant %s: %s: %w", t.tenant, t.label(), err)
		}
		d.senders[t.name()] = sender
		targets = append(targets, notify.Target{Name: t.name(), Sender: sender})
	}

	if len(targets) == 0 {
		return nil
	}
	report := func(job store.Job, r notify.Result, err error) {
		if err != nil {
			a.log.Warn(
				"delivery",
				"target",
				job.Target,
				"event",
				job.Event,
				"subject",
				job.Subject,
				"attempt",
				job.Attempt,
				"result",
				string(r),
				"error",
				err,
			)
		}
	}
	var err error
	d.worker, err = notify.NewWorker(notify.WorkerConfig{
		Outbox:  a.store,
		Targets: targets,
		Drain:   d.cfg.Drain,
		Report:  report,
	})

	return err
}

// mount puts the addresses that channels post answers to into the
// pages: claim has seen that no two are the same.
func (d *delivery) mount(mux *http.ServeMux) {
	for _, t := range d.all {
		if takes, ok := d.senders[t.name()].(http.Handler); ok {
			mux.Handle("POST "+t.channel.path(t.tenant), takes)
		}
	}
}

// register lists the addresses that channels must be told to post answers to.
func (d *delivery) register(base string) []operate.Address {
	var out []operate.Address
	for _, t := range d.all {
		if t.channel.register != "" {
			out = append(
				out,
				operate.Address{
					Tenant: t.tenant,
					For:    t.channel.register,
					URL:    base + t.channel.path(t.tenant),
				},
			)
		}
	}

	return out
}

// run sends until ctx ends, and lets what is under way end.
func (d *delivery) run(ctx context.Context) {
	if d.worker != nil {
		d.worker.Run(ctx)
	}
	for _, sender := range d.senders {
		if busy, ok := sender.(interface{ Wait() }); ok {
			busy.Wait()
		}
	}
}

// webhookTargets are the receivers of webhooks, of which a tenant may
// have several.
func webhookTargets(t config.Tenant) []target {
	var out []target
	for _, w := range t.Webhooks {
		out = append(out, target{
			key:   w.Name,
			route: w.Route,
			check: func() []error {
				_, err := newWebhook(w)
				return []error{err}
			},
			open: func(*app) (notify.Sender, error) { return newWebhook(w) },
		})
	}

	return out
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

// slackTargets is the Slack workspace of a tenant, where it has one.
func slackTargets(t config.Tenant) []target {
	if t.Slack == nil {
		return nil
	}

	return []target{{
		route: t.Slack.Route,
		check: func() []error {
			_, token := readSecret(t.Slack.TokenFile)
			_, signing := readSecret(t.Slack.SigningSecretFile)
			return []error{token, signing}
		},
		open: func(a *app) (notify.Sender, error) { return newSlack(a, t.Name, t.Slack) },
	}}
}

func newSlack(a *app, tenant string, s *config.Slack) (*slack.App, error) {
	token, err := readSecret(s.TokenFile)
	if err != nil {
		return nil, err
	}
	signing, err := readSecret(s.SigningSecretFile)
	if err != nil {
		return nil, err
	}

	return slack.New(slack.Config{
		Tenant:        tenant,
		Team:          s.Team,
		Token:         token,
		SigningSecret: signing,
		Channels:      s.Channels,
		Arguments:     s.Arguments,
		Inbox:         a.base.String(),
		API:           s.API,
		Guard:         guard.Guard{Loopback: s.Loopback},
		Report:        func(err error) { a.log.Warn("slack", "tenant", tenant, "error", err) },
		Voter:         a.service,
		Requests:      a.service,
		People:        a.people,
		Values:        a.store,
	})
}
