package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/assent-dev/assent/cmd/internal/registry"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server"
	"github.com/assent-dev/assent/server/directory"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/server/plans"
)

// reload is the interval at which files are checked for changes.
const reload = 2 * time.Second

// partPeople is the name of the part for people.yaml, in addition to those of package plans.
const partPeople = "people"

// serverItself is the actor of changes that were not requested by a person.
const serverItself = "server"

// files holds the files that determine the decisions of one tenant. They are reloaded when they
// change, and the ledger records which ones are in force.
type files struct {
	tenant string
	plans  *plans.Plans
	watch  *directory.Watched // nil: the people don't change
	source *registry.Source   // of the registries of a decision configuration; nil: there is none
	file   string             // of the decision configuration
	log    *slog.Logger

	broken   string            // the last logged problem of the people
	recorded map[string]string // the last recorded facts, by part
	told     *resolve.Config   // the last logged configuration; nil: none
	ledgered *resolve.Config   // the last recorded configuration; nil: none
}

// parts returns the parts that are in force, each with the problems of its files.
func (f *files) parts() []plans.Part {
	var out []plans.Part
	for _, p := range f.plans.Parts() {
		if p.Name != plans.Policies || p.Digest != "" || len(p.Problems) > 0 {
			out = append(out, p)
		}
	}
	if f.watch == nil {
		return out
	}
	digest, count := f.watch.InForce()
	p := plans.Part{Name: partPeople, Digest: digest, Count: count}
	if err := f.watch.Err(); err != nil {
		_, denied := f.watch.Directory()
		p.Problems = []plans.Problem{{
			Part: partPeople,
			File: f.watch.File(),
			Why:  []string{err.Error()},
			Kept: denied == nil,
		}}
	}

	return append(out, p)
}

// err returns what is wrong with the files of a part.
func (f *files) err(part string) error {
	if part != partPeople {
		return f.plans.Err(part)
	}
	if f.watch == nil {
		return nil
	}
	return f.watch.Err()
}

// fileChecks returns the checks of the files for /readyz. Broken files don't make the server
// unready: they concern some agents of one tenant, and the previous versions stay in force. The
// names of checks are public, so they name no tenant; the errors do.
func fileChecks(wrong func(part string) error) []server.Check {
	var out []server.Check
	for _, part := range []string{plans.Agents, plans.Policies, plans.Configuration, partPeople} {
		out = append(out, server.Check{
			Name: part,
			Check: func(context.Context) error {
				return wrong(part)
			},
			Degrades: true,
		})
	}

	return out
}

// recorder writes to the ledger, like approval.Service.Record.
type recorder func(ctx context.Context, tenant, event, subject, actor string, facts map[string]any) error

// follow checks for changes until ctx ends and records each. It also polls registries of policies.
func (f *files) follow(ctx context.Context, record recorder) {
	var registries sync.WaitGroup
	defer registries.Wait()
	if f.source != nil {
		registries.Go(func() { f.source.Run(ctx) })
	}
	t := time.NewTicker(reload)
	defer t.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		f.plans.Reload()
		f.tellChoices()
		f.reloadPeople()
		err := f.record(ctx, record)
		if err != nil && !failing && ctx.Err() == nil {
			f.log.Error(
				"which files are in force can't be recorded, it is tried again",
				"tenant",
				f.tenant,
				"error",
				err,
			)
		}

		failing = err != nil
	}
}

// reloadPeople reloads people.yaml, and logs when it breaks and when it is fixed.
func (f *files) reloadPeople() {
	if f.watch == nil {
		return
	}
	now := ""
	if err := f.watch.Reload(); err != nil {
		now = err.Error()
	}
	switch {
	case now == f.broken:
		return
	case now == "":
		f.log.Info("the people can be read again", "tenant", f.tenant)
	default:
		if _, denied := f.watch.Directory(); denied == nil {
			f.log.Warn(
				"the people can't be read: those of the last good file may answer",
				"tenant",
				f.tenant,
				"error",
				now,
			)
		} else {
			f.log.Error(
				"the people can't be read: nobody may answer until they can",
				"tenant",
				f.tenant,
				"error",
				now,
			)
		}
	}

	f.broken = now
}

// mostBroken limits how many broken files one entry names.
const mostBroken = 50

// record writes every part that has changed since the last record to the ledger.
func (f *files) record(ctx context.Context, record recorder) error {
	if f.recorded == nil {
		f.recorded = map[string]string{}
	}
	var errs []error
	for _, p := range f.parts() {
		facts := map[string]any{"digest": p.Digest, "count": p.Count}
		if p.Name == plans.Configuration {
			facts = f.choices()
		}
		var broken []any
		for _, problem := range p.Problems[:min(len(p.Problems), mostBroken)] {
			broken = append(broken, map[string]any{
				"agent": problem.Agent,
				"file":  filepath.Base(problem.File),
				"kept":  problem.Kept,
			})
		}

		if len(broken) > 0 {
			facts["broken"], facts["broken_count"] = broken, len(p.Problems)
		}
		if err := f.recordOne(ctx, record, p.Name, facts); err != nil {
			errs = append(errs, err)
		} else if p.Name == plans.Configuration {
			f.ledgered = f.plans.Chosen()
		}
	}

	return errors.Join(errs...)
}

// recordOne records one part, unless the last record of it was the same.
func (f *files) recordOne(ctx context.Context, record recorder, part string, facts map[string]any) error {
	loosened := facts[factLoosened] // it is about the step, not about what is in force
	delete(facts, factLoosened)
	now := fmt.Sprint(facts)
	if f.recorded[part] == now {
		return nil
	}
	if loosened != nil {
		facts[factLoosened] = loosened
	}
	if err := record(ctx, f.tenant, part+"_loaded", "", serverItself, facts); err != nil {
		return err
	}
	f.recorded[part] = now

	return nil
}

// loaded returns the state of the files for /readyz. Problems are included only for people of the
// tenant.
func (f *files) loaded(problems bool) []openapi.Loaded {
	var out []openapi.Loaded
	for _, p := range f.parts() {
		l := openapi.Loaded{Part: p.Name, Digest: p.Digest, Count: p.Count}
		for _, problem := range p.Problems {
			if problems {
				l.Problems = append(l.Problems, problem.String())
			}
		}
		out = append(out, l)
	}

	return out
}

// together combines what several tenants have in force, with one digest over theirs.
func together(all [][]openapi.Loaded) []openapi.Loaded {
	if len(all) == 1 {
		return all[0]
	}
	var out []openapi.Loaded
	for _, name := range []string{plans.Agents, plans.Policies, plans.Configuration, partPeople, partCandidate} {
		h := sha256.New()
		count := 0
		found := false
		for _, parts := range all {
			for _, p := range parts {
				if p.Part == name {
					fmt.Fprintln(h, p.Digest)
					count, found = count+p.Count, true
				}
			}
		}

		if found {
			out = append(out, openapi.Loaded{
				Part:   name,
				Digest: fmt.Sprintf("sha256:%x", h.Sum(nil)),
				Count:  count,
			})
		}
	}

	return out
}
