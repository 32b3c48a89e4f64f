package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/assent-dev/assent/policy/people"
)

// Directory looks up people and the agents that they own.
type Directory interface {
	// Person returns the person with this name, and false if there is none.
	Person(ctx context.Context, tenant, name string) (people.Person, bool, error)
	// Owners lists the people who own an agent according to the directory.
	Owners(ctx context.Context, tenant, agent string) ([]string, error)
}

// Known looks up a name. It returns false for an empty name.
func Known(ctx context.Context, d Directory, tenant, name string) (people.Person, bool, error) {
	if name == "" {
		return people.Person{}, false, nil
	}
	p, ok, err := d.Person(ctx, tenant, name)
	if err != nil {
		return people.Person{}, false, fmt.Errorf("ask the directory: %w", err)
	}

	return p, ok, nil
}

// Stand looks up all people who matter for an answer to a request. more are people that the caller
// has already looked up.
func Stand(
	ctx context.Context, d Directory, tenant string, a *Answering, now time.Time, more ...people.Person,
) (Standing, error) {
	w := Standing{
		Now:      now,
		People:   map[string]people.Person{},
		Excluded: map[string]string{},
	}
	for _, p := range more {
		w.People[p.ID] = p
	}
	for _, id := range a.Answered {
		if _, done := w.People[id]; done {
			continue
		}
		p, ok, err := Known(ctx, d, tenant, id)
		if err != nil {
			return w, err
		}
		if ok && p.ID == id {
			w.People[p.ID] = p
		}
	}

	if a.ToUser {
		user, ok, err := Known(ctx, d, tenant, a.Principal)
		if err != nil {
			return w, err
		}
		if ok {
			w.User = user.ID
		}
	}

	return w, w.exclude(ctx, d, tenant, a)
}

// exclude adds the askers, the principal and the agent's owners to w.Excluded, under their canonical
// ids if the directory contains them. If the question is to the user, it adds only the tokens.
func (w Standing) exclude(ctx context.Context, d Directory, tenant string, a *Answering) error {
	var errs []error
	bar := func(name, why string) {
		p, ok, err := Known(ctx, d, tenant, name)
		if ok {
			name = p.ID
		}
		w.Excluded[name] = why
		errs = append(errs, err)
	}
	for _, name := range a.Tokens {
		bar(name, WhyToken)
	}
	if a.ToUser { // the tool asks the user, who may own the agent and the token
		return errors.Join(errs...)
	}

	for _, name := range a.People {
		bar(name, WhyTokens)
	}
	if a.Principal != "" {
		bar(a.Principal, WhyPrincipal)
	}
	owners, err := d.Owners(ctx, tenant, a.Agent)
	if err != nil {
		errs = append(errs, fmt.Errorf("ask the directory: %w", err))
	}
	for _, o := range slices.Concat(owners, a.Owners) {
		bar(o, WhyOwner)
	}

	return errors.Join(errs...)
}
