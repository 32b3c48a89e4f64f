package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/signin"
	"github.com/assent-dev/assent/rap/runtime"
)

// mostSignIns limits how many sign-ins of a person are shown at once.
const mostSignIns = 100

// signIns reads the sign-ins that the tools of all tenants ask for.
type signIns struct{ *app }

var _ signin.Book = signIns{}

// runtimesOf returns the runtimes of a tenant by the ids of their agents.
func (t *tools) runtimesOf(tenant string) map[string]*runtime.Runtime {
	out := map[string]*runtime.Runtime{}
	for key, r := range t.runtimes {
		if agent, of := strings.CutPrefix(key, toolsKey(tenant, "")); of {
			out[agent] = r
		}
	}

	return out
}

// SignIns implements signin.Book.
func (s signIns) SignIns(ctx context.Context, tenant, person string) (signin.Page, error) {
	runtimes := s.tools.runtimesOf(tenant)
	var pages []signin.Page
	for _, agent := range slices.Sorted(maps.Keys(runtimes)) {
		page, err := runtimes[agent].SignInsOf(ctx, person)
		if err != nil {
			return signin.Page{}, fmt.Errorf("agent %s: %w", agent, err)
		}
		for i := range page.SignIns {
			page.SignIns[i].Agent = agent
		}
		pages = append(pages, page)
	}

	return signin.Join(mostSignIns, pages...), nil
}

// SignIn implements signin.Book.
func (s signIns) SignIn(ctx context.Context, tenant, id string) (signin.Asked, string, error) {
	for agent, r := range s.tools.runtimesOf(tenant) {
		one, person, err := r.SignIn(ctx, id)
		if errors.Is(err, approval.ErrNotFound) {
			continue
		}
		one.Agent = agent

		return one, person, err
	}

	return signin.Asked{}, "", approval.ErrNotFound
}

// recordTools records events about the calls of an agent's tools. If a sign-in is needed, it also
// notifies the person, through the channels that reach individual people.
func (a *app) recordTools(
	ctx context.Context, tenant, agent, event, subject, actor string, facts map[string]any,
) error {
	e := approval.Event{Type: event, Subject: subject, Actor: actor, Facts: facts}
	var to []approval.Delivery
	if id, ok := facts[signin.Fact].(string); ok {
		to = a.delivery.signIn(tenant, agent, event, id)
	}

	return a.service.RecordAndSend(ctx, tenant, e, to...)
}

// signIn returns the deliveries about a sign-in to the targets of a tenant.
func (d *delivery) signIn(tenant, agent, event, id string) []approval.Delivery {
	var out []approval.Delivery
	for _, t := range d.all {
		if t.tenant != tenant || !t.channel.SignIns {
			continue
		}
		route := t.Route
		route.Target = t.name()
		if one, ok := route.SignIn(event, agent, id); ok {
			out = append(out, one)
		}
	}

	return out
}

// personOf returns a function that finds the person of the directory for the user of a call.
func (a *app) personOf(tenant string) func(ctx context.Context, user string) (string, bool, error) {
	return func(ctx context.Context, user string) (string, bool, error) {
		p, known, err := a.people.Person(ctx, tenant, user)
		return p.ID, known, err
	}
}
