package mcp

import (
	"context"

	"github.com/assent-dev/assent/store"
)

// Waiters returns the number of clients that wait for calls in this process.
func (g *Gateway) Waiters() int {
	g.keeper.waiters.mu.Lock()
	defer g.keeper.waiters.mu.Unlock()
	n := 0
	for _, of := range g.keeper.waiters.of {
		n += len(of)
	}
	return n
}

// Leaving reports whether the gateway is shutting down and waits for calls that are under way.
func (g *Gateway) Leaving() bool {
	g.handling.mu.Lock()
	defer g.handling.mu.Unlock()
	return g.handling.none != nil
}

// Wanted reports whether a client waits for any call, in this process or according to the store. If
// it is false, clients that left have been cleaned up.
func (g *Gateway) Wanted(ctx context.Context) (bool, error) {
	wanted := false
	err := g.keeper.engine.Each(ctx, "", func(r store.Record) {
		c, err := g.keeper.engine.Open(r)
		wanted = wanted || err != nil || g.keeper.waiters.one(c.Key) != nil || !c.Part.Wanted.IsZero()
	})
	return wanted, err
}

// Named reports whether clients wait in this process and each of their calls has a request with a
// reference.
func (g *Gateway) Named(ctx context.Context) (bool, error) {
	named := g.Waiters() > 0
	err := g.keeper.engine.Each(ctx, "", func(r store.Record) {
		c, err := g.keeper.engine.Open(r)
		named = named && err == nil && c.Part.Ref != ""
	})
	return named, err
}
