package witness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/store"
)

// unaddressed removes the address from a client's error.
func unaddressed(err error) error {
	var lost *url.Error
	if errors.As(err, &lost) {
		return lost.Err
	}
	return err
}

// Target is a witness with the way it is used.
type Target struct {
	Name     string
	Witness  Witness
	Every    time.Duration // interval at which new checkpoints are shown; 1m
	Required bool          // the server is not ready if this witness is too far behind
}

// Config names the witnesses and the ledgers that are shown to them.
type Config struct {
	Store     store.Store
	PublicKey string // of the ledger's signer
	Targets   []Target
	Log       *slog.Logger
	Now       func() time.Time
}

// State is the state of a witness.
type State struct {
	Name    string
	Behind  time.Duration // since everything had been shown to it
	Problem string        // of the last attempt; empty if it succeeded
}

// Runner shows checkpoints until it is stopped.
type Runner struct {
	cfg Config

	mu     sync.Mutex
	states []state
}

type state struct {
	shown   map[string]int64 // sizes by tenant
	good    time.Time        // when everything was shown last
	problem string
}

// far is the time after which a required witness counts as too far behind.
const far = 5 * time.Minute

// New returns a runner. It does nothing before Run.
func New(cfg Config) *Runner {
	r := &Runner{cfg: cfg, states: make([]state, len(cfg.Targets))}
	for i := range r.states {
		r.states[i] = state{shown: map[string]int64{}, good: cfg.Now()}
	}
	return r
}

// Run shows checkpoints until ctx ends.
func (r *Runner) Run(ctx context.Context) {
	var all sync.WaitGroup
	for i := range r.cfg.Targets {
		all.Go(func() { r.serve(ctx, i) })
	}
	all.Wait()
}

func (r *Runner) serve(ctx context.Context, i int) {
	every := r.cfg.Targets[i].Every
	if every == 0 {
		every = time.Minute
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := r.round(ctx, i); ctx.Err() == nil {
			r.report(i, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Round shows everything new to every witness once.
func (r *Runner) Round(ctx context.Context) error {
	var errs []error
	for i := range r.cfg.Targets {
		err := r.round(ctx, i)
		r.report(i, err)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// report stores the result of an attempt, and logs when failures begin and end.
func (r *Runner) report(i int, err error) {
	name := r.cfg.Targets[i].Name
	r.mu.Lock()
	s := &r.states[i]
	before := s.problem
	if s.problem = ""; err != nil {
		s.problem = err.Error()
	} else {
		s.good = r.cfg.Now()
	}
	now := s.problem
	r.mu.Unlock()
	switch {
	case now != "" && before != now:
		r.cfg.Log.Warn("a witness is not shown the ledger", "witness", name, "error", err)
	case now == "" && before != "":
		r.cfg.Log.Info("a witness is shown the ledger again", "witness", name)
	}
}

func (r *Runner) round(ctx context.Context, i int) error {
	tenants, err := r.cfg.Store.Tenants(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, tenant := range tenants {
		if err := r.show(ctx, i, tenant); err != nil {
			errs = append(errs, fmt.Errorf("tenant %q: %w", tenant, err))
		}
	}
	return errors.Join(errs...)
}

// show shows one log to one witness, unless the witness has its current checkpoint.
func (r *Runner) show(ctx context.Context, i int, tenant string) error {
	size, note, err := r.cfg.Store.Checkpoint(ctx, tenant)
	if err != nil || size == 0 {
		return err
	}
	r.mu.Lock()
	known := r.states[i].shown[tenant] == size
	r.mu.Unlock()
	if known {
		return nil
	}
	l, err := r.log(ctx, tenant, size, note)
	if err != nil {
		return err
	}
	err = r.cfg.Targets[i].Witness.Show(ctx, l)
	var wrong *Contradiction
	if errors.As(err, &wrong) {
		return r.contradicted(ctx, tenant, wrong)
	}
	if err == nil {
		r.mu.Lock()
		r.states[i].shown[tenant] = size
		r.mu.Unlock()
	}
	return err
}

// contradicted stops a tenant, because this server has signed another history of its log.
// If the witness got that history before a restore, the difference is expected: then the
// tenant goes on, and the error says that the witness must forget the log.
func (r *Runner) contradicted(ctx context.Context, tenant string, wrong *Contradiction) error {
	id, err := r.cfg.Store.Identity(ctx)
	if err != nil {
		return err
	}
	if id.Restored && !wrong.At.IsZero() && wrong.At.Before(id.Since) {
		return fmt.Errorf("%w: that was before the store was restored: have the witness forget the log", wrong)
	}
	r.cfg.Store.Distrust(tenant, wrong.Error())
	return wrong
}

// log returns a tenant's log at a checkpoint.
func (r *Runner) log(ctx context.Context, tenant string, size int64, note []byte) (*log, error) {
	hashes := r.cfg.Store.Hashes(ctx, tenant)
	handovers, err := r.handovers(ctx, tenant)
	return &log{
		origin:    ledger.Origin(tenant),
		size:      size,
		note:      note,
		publicKey: r.cfg.PublicKey,
		handovers: handovers,
		prove: func(newer, older int64) ([]ledger.Hash, error) {
			return ledger.ProveConsistency(newer, older, hashes)
		},
	}, err
}

// handovers lists the changes of the key, with the keys, which are named by the entries
// before them.
func (r *Runner) handovers(ctx context.Context, tenant string) ([]handover, error) {
	notes, err := r.cfg.Store.Handovers(ctx, tenant)
	if err != nil {
		return nil, err
	}
	out := make([]handover, len(notes))
	for i, note := range notes {
		c, err := ledger.UnverifiedCheckpoint(note) // the store has verified its rows with its key
		if err != nil {
			return nil, err
		}
		entries, err := r.cfg.Store.Leaves(ctx, tenant, c.Size-1, 1)
		if err != nil {
			return nil, err
		}
		if len(entries) != 1 {
			return nil, fmt.Errorf("entry %d can't be read", c.Size-1)
		}
		leaf, err := ledger.ParseLeaf(entries[0].Leaf)
		if err != nil {
			return nil, err
		}
		from, _ := leaf.Facts.Get("old")
		to, _ := leaf.Facts.Get("new")
		out[i] = handover{size: c.Size, note: note, from: from.Text, to: to.Text}
	}

	return out, nil
}

// States returns the states of all witnesses.
func (r *Runner) States() []State {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]State, len(r.states))
	for i, s := range r.states {
		out[i] = State{
			Name:    r.cfg.Targets[i].Name,
			Behind:  r.cfg.Now().Sub(s.good),
			Problem: s.problem,
		}
		if s.problem == "" {
			out[i].Behind = 0
		}
	}

	return out
}

// Ready returns an error while a required witness is too far behind.
func (r *Runner) Ready(context.Context) error {
	for i, s := range r.States() {
		if r.cfg.Targets[i].Required && s.Behind > far {
			return fmt.Errorf(
				"the witness %s was last shown everything %s ago: %s",
				s.Name,
				s.Behind.Round(time.Second),
				s.Problem,
			)
		}
	}

	return nil
}
