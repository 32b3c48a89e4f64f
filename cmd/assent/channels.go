package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/cmd/internal/channels"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/operate"
	"github.com/assent-dev/assent/server/notify"
	"github.com/assent-dev/assent/store"
)

// votingChannels returns the names of the channels by which people answer.
func votingChannels() []string {
	var names []string
	for _, c := range channels.All() {
		if c.Answers {
			names = append(names, c.Name)
		}
	}

	return names
}

// posting returns the prefixes of the paths that channels post answers to.
func posting() []string {
	var prefixes []string
	for _, c := range channels.All() {
		if c.Register.For != "" {
			prefixes = append(prefixes, "/"+c.Name+"/")
		}
	}

	return prefixes
}

// target is a receiver of a tenant with its channel.
type target struct {
	notify.Receiver
	channel notify.Channel
	tenant  string
}

// path returns the path of this server to which the channel posts the tenant's answers.
func (t target) path() string { return "/" + t.channel.Name + "/" + providerID(t.tenant) }

// name returns the name of the target in deliveries: "slack:TENANT", "webhook:TENANT/NAME".
func (t target) name() string {
	if t.Key == "" {
		return t.channel.Name + ":" + t.tenant
	}

	return t.channel.Name + ":" + t.tenant + "/" + t.Key
}

// label returns the name of the target in error messages.
func (t target) label() string {
	if t.Key == "" {
		return t.channel.Name
	}

	return t.channel.Name + " " + t.Key
}

// targetsOf lists all targets of a tenant.
func targetsOf(t config.Tenant) []target {
	var all []target
	for _, c := range channels.All() {
		for _, r := range t.Notify.Receivers(c) {
			all = append(all, target{Receiver: r, channel: c, tenant: t.Name})
		}
	}

	return all
}

// delivery sends notifications through all channels.
type delivery struct {
	cfg     config.Serve
	all     []target
	router  *notify.Router           // nil: there are no notifications
	senders map[string]notify.Sender // by name of the target
	worker  *notify.Worker
}

// newDelivery checks the routes. connect creates the senders later, because some of them vote
// through the service that the routes belong to.
func newDelivery(cfg config.Serve, base string) (*delivery, error) {
	d := &delivery{cfg: cfg, senders: map[string]notify.Sender{}}
	var routes []notify.Route
	var names []string
	taken := map[string]target{} // by name, and by address
	for _, tenant := range cfg.Tenants {
		for _, t := range targetsOf(tenant) {
			if err := t.claim(taken); err != nil {
				return nil, err
			}
			d.all = append(d.all, t)
			names = append(names, t.name())
			route := t.Route
			route.Target, route.Tenants = t.name(), []string{t.tenant}
			routes = append(routes, route)
		}
	}

	if len(routes) == 0 {
		return d, nil
	}
	var err error
	d.router, err = notify.NewRouter(routes, names, base, time.Now)

	return d, err
}

// claim refuses targets that share a name, and tenants whose channel would post to the same path,
// or to none.
func (t target) claim(taken map[string]target) error {
	if _, twice := taken[t.name()]; twice {
		return fmt.Errorf("tenant %s: two %ss share a name: %s", t.tenant, t.channel.Name, t.Key)
	}

	taken[t.name()] = t
	if t.channel.Register.For == "" {
		return nil
	}
	path, kind := t.path(), t.channel.Name
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

// route implements approval.Config.Route.
func (d *delivery) route(event string, r *approval.Request) []approval.Delivery {
	if d.router == nil {
		return nil
	}

	return d.router.Deliveries(event, r)
}

// host returns the view of this service that the sender of a target gets.
func (a *app) host(t target) notify.Host {
	return notify.Host{
		Tenant:  t.tenant,
		Inbox:   a.base.String(),
		Secrets: readSecret,
		Service: a.service,
		People:  a.people,
		Store:   a.store,
		SignIns: signIns{a},
		Warn:    func(err error) { a.log.Warn(t.channel.Name, "tenant", t.tenant, "error", err) },
	}
}

// connect creates the senders.
func (d *delivery) connect(a *app) error {
	var targets []notify.Target
	for _, t := range d.all {
		sender, err := t.Open(a.host(t))
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

// mount registers the paths that channels post answers to. claim has already checked that no two
// are the same.
func (d *delivery) mount(mux *http.ServeMux) {
	for _, t := range d.all {
		if takes, ok := d.senders[t.name()].(http.Handler); ok {
			mux.Handle("POST "+t.path(), takes)
		}
	}
}

// register lists the addresses that have to be configured in the channels for posting answers.
func (d *delivery) register(base string) []operate.Address {
	var out []operate.Address
	for _, t := range d.all {
		if t.channel.Register.For != "" {
			out = append(
				out,
				operate.Address{
					Tenant: t.tenant,
					For:    t.channel.Register.For,
					Words:  t.channel.Register.Words,
					URL:    base + t.path(),
				},
			)
		}
	}

	return out
}

// run sends notifications until ctx ends, and lets those that are under way finish.
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
