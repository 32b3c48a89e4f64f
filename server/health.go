package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/assent-dev/assent/server/openapi"
)

// health runs the checks that must succeed before the server gets traffic.
type health struct {
	checks   []Check
	now      func() time.Time
	log      *slog.Logger
	draining <-chan struct{}

	mu      sync.Mutex
	workers map[string]error // by name; a worker that has not finished a round is missing
	asked   time.Time
	answer  openapi.Health
	failing map[string]bool // by name of the check
}

var errNotBegun = errors.New("it has not begun yet")

func newHealth(cfg Config, draining <-chan struct{}) *health {
	h := &health{
		now:      cfg.Now,
		log:      cfg.Logger,
		draining: draining,
		workers:  map[string]error{},
		failing:  map[string]bool{},
	}
	h.checks = []Check{{Name: "store", Check: cfg.Store.Ping}, h.worker("time"), h.worker("sealing")}
	if cfg.Clock != nil {
		h.checks = append(h.checks, Check{Name: "clock", Check: cfg.Clock})
	}
	h.checks = append(h.checks, cfg.Checks...)
	return h
}

func (h *health) worker(name string) Check {
	return Check{
		Name: name,
		Check: func(context.Context) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			if err, begun := h.workers[name]; begun {
				return err
			}
			return errNotBegun
		},
	}
}

// report stores the result of a worker's last run.
func (h *health) report(name string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.workers[name] = err
}

// The time limit of checks, and how long their result is reused. /readyz needs no token, so
// it must be cheap.
const (
	checkTime = 2 * time.Second
	checkAge  = time.Second
)

// ready runs every check, unless the last results are recent.
func (h *health) ready() openapi.Health {
	h.mu.Lock()
	if fresh := !h.asked.IsZero() && h.now().Sub(h.asked) < checkAge; fresh {
		defer h.mu.Unlock()
		return h.answer
	}
	h.asked = h.now() // others take the answer before until this one is there
	if h.answer.Checks == nil {
		h.answer = openapi.Health{Checks: []openapi.Check{{Name: "server", Problem: errNotBegun.Error()}}}
	}
	h.mu.Unlock()
	out := h.ask()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = out
	return out
}

func (h *health) ask() openapi.Health {
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	out := openapi.Health{Ok: true, Checks: make([]openapi.Check, len(h.checks))}
	for i, c := range h.checks {
		out.Checks[i] = openapi.Check{Name: c.Name, Ok: true}
		err := c.Check(ctx)
		h.tell(c, err)
		if err == nil {
			continue
		}
		// The answer needs no token, so the details are only in the log.
		out.Checks[i] = openapi.Check{Name: c.Name, Degraded: c.Degrades, Problem: "failing"}
		if c.Degrades {
			out.Degraded = true
		} else {
			out.Ok = false
		}
	}

	return out
}

// degraded returns the checks whose failure only degrades the server, with true if they
// fail now.
func (h *health) degraded() map[string]bool {
	failing := map[string]bool{}
	for _, c := range h.ready().Checks {
		failing[c.Name] = c.Degraded
	}
	out := map[string]bool{}
	for _, c := range h.checks {
		if c.Degrades {
			out[c.Name] = failing[c.Name]
		}
	}
	return out
}

// tell logs when a check begins to fail and when it succeeds again.
func (h *health) tell(c Check, err error) {
	h.mu.Lock()
	before := h.failing[c.Name]
	h.failing[c.Name] = err != nil
	h.mu.Unlock()
	switch {
	case c.Degrades: // the code that owns the part has logged it when it happened
	case err != nil && !before:
		h.log.Warn("a check of readiness fails", "check", c.Name, "error", err)
	case err == nil && before:
		h.log.Info("a check of readiness passes again", "check", c.Name)
	}
}

func (x infoOps) healthz() error {
	return x.answer(http.StatusOK, openapi.Health{Ok: true, Checks: []openapi.Check{}})
}

func (x infoOps) readyz() error {
	out := x.health.ready()
	goingDown := openapi.Health{Checks: []openapi.Check{{Name: "server", Problem: "it is going down"}}}
	select {
	case <-x.leaving:
		out = goingDown
	case <-x.draining:
		out = goingDown
	default:
	}
	if err := x.addLoaded(&out); err != nil {
		return err
	}
	status := http.StatusOK
	if !out.Ok {
		status = http.StatusServiceUnavailable
	}
	return x.answer(status, out)
}

// addLoaded adds the files in force if the query asks for them. A caller with a token gets
// those of its tenant, with their problems.
func (x infoOps) addLoaded(out *openapi.Health) error {
	if _, asked := x.query["verbose"]; !asked || x.cfg.Loaded == nil {
		return nil
	}
	if x.r.Header.Get("Authorization") == "" {
		out.Loaded = x.cfg.Loaded("")
		return nil
	}
	token, err := x.authenticate(x.r)
	if err != nil {
		return err
	}
	if x.present(x.r.Context(), token, nil) == nil { // the health itself is for everybody
		out.Loaded = x.cfg.Loaded(token.Tenant)
	}
	return nil
}
