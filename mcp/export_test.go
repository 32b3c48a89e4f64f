package mcp

import (
	"context"

	"github.com/assent-dev/assent/store"
)

// Waiters is how many clients wait here for calls.
func (g *Gateway) Waiters() int {
	g.waiters.mu.Lock()
	defer g.waiters.mu.Unlock()
	n := 0
	for _, of := range g.waiters.of {
		n += len(of)
	}
	return n
}

// Leaving reports whether the gateway is about to end, and waits for calls
// that are passed on.
func (g *Gateway) Leaving() bool {
	g.handling.mu.Lock()
	defer g.handling.mu.Unlock()
	return g.handling.none != nil
}

// Wanted reports whether somebody waits for any call: here, or as the
// store has it. A client that left is gone when nothing is wanted.
func (g *Gateway) Wanted(ctx context.Context) (bool, error) {
	wanted := false
	err := g.engine.Each(ctx, "", func(r store.Record) {
		c, err := g.engine.Open(r)
		wanted = wanted || err != nil || g.waiters.one(c.Key) != nil || !c.Part.Wanted.IsZero()
	})
	return wanted, err
}

// Named reports whether clients wait here, each for a call that has a
// request by whose name it can be told.
func (g *Gateway) Named(ctx context.Context) (bool, error) {
	named := g.Waiters() > 0
	err := g.engine.Each(ctx, "", func(r store.Record) {
		c, err := g.engine.Open(r)
		named = named && err == nil && c.Part.Ref != ""
	})
	return named, err
}
