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

// health knows what must work before traffic is sent here.
type health struct {
	checks   []Check
	now      func() time.Time
	log      *slog.Logger
	draining <-chan struct{}

	mu      sync.Mutex
	workers map[string]error // by name; what is not there has not begun
	asked   time.Time
	answer  openapi.Health
	failing map[string]bool // by name of the check
}

var errNotBegun = errors.New("it has not begun yet")

func newHealth(cfg Config, draining <-chan struct{}) *health {
	h := &health{now: cfg.Now, log: cfg.Logger, draining: draining, workers: map[string]error{}, failing: map[string]bool{}}
	h.checks = append([]Check{{"store", cfg.Store.Ping}, h.worker("time"), h.worker("sealing")}, cfg.Checks...)
	return h
}

func (h *health) worker(name string) Check {
	return Check{name, func(context.Context) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if err, begun := h.workers[name]; begun {
			return err
		}
		return errNotBegun
	}}
}

// report keeps how a worker last fared.
func (h *health) report(name string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.workers[name] = err
}

// How long checks may take, and how long their answer stands: anybody may ask, so asking must stay cheap.
const (
	checkTime = 2 * time.Second
	checkAge  = time.Second
)

// ready asks every check, unless that was done a moment ago.
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
		h.tell(c.Name, err)
		if err != nil {
			out.Ok = false
			out.Checks[i] = openapi.Check{Name: c.Name, Problem: "failing"} // anybody may ask: the log has the rest
		}
	}
	return out
}

// tell logs when a check begins to fail, and when that ends.
func (h *health) tell(name string, err error) {
	h.mu.Lock()
	before := h.failing[name]
	h.failing[name] = err != nil
	h.mu.Unlock()
	switch {
	case err != nil && !before:
		h.log.Warn("a check of readiness fails", "check", name, "error", err)
	case err == nil && before:
		h.log.Info("a check of readiness passes again", "check", name)
	}
}

func (x *exchange) healthz() error {
	return x.answer(http.StatusOK, openapi.Health{Ok: true, Checks: []openapi.Check{}})
}

func (x *exchange) readyz() error {
	out := x.health.ready()
	select {
	case <-x.draining:
		out = openapi.Health{Checks: []openapi.Check{{Name: "server", Problem: "it is going down"}}}
	default:
	}
	status := http.StatusOK
	if !out.Ok {
		status = http.StatusServiceUnavailable
	}
	return x.answer(status, out)
}
