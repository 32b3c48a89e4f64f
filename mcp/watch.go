package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/server"
)

// watch lists servers again after they report a change, and notifies the clients whose lists
// differ.
func (g *Gateway) watch(ctx context.Context) {
	var all sync.WaitGroup
	for _, s := range g.servers {
		all.Go(func() { g.watchServer(ctx, s) })
	}

	all.Go(func() { g.followRules(ctx) })
	all.Wait()
}

// watchServer handles the notifications of a server.
func (g *Gateway) watchServer(ctx context.Context, s *Server) {
	var updated <-chan string
	if from, is := s.Upstream.(followable); is {
		updated = from.Updated()
	}
	ticks := time.NewTicker(g.cfg.Poll)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			if g.lost(s.Alias) {
				g.changed(ctx, s, "tools/list")
			}
		case list := <-s.Upstream.Changed():
			g.changed(ctx, s, list)
		case uri := <-updated:
			g.updated(ctx, resourceKey{s.Alias, uri})
		}
	}
}

// lost reports whether listing a server failed a while ago. A server that is reached by HTTP
// doesn't report that it is back, so it has to be asked again.
func (g *Gateway) lost(alias string) bool {
	g.tools.mu.RLock()
	defer g.tools.mu.RUnlock()
	return g.tools.failed[alias] != nil && g.now().Sub(g.tools.at[alias]) >= g.cfg.Recheck
}

// followRules updates the lists when the rules or the pins change, and notifies clients.
func (g *Gateway) followRules(ctx context.Context) {
	ticks := time.NewTicker(g.cfg.Poll)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		before := g.generation()
		if before == "" {
			continue // no client has requested a list yet
		}
		_, err := g.current(ctx)
		if err == nil && g.generation() != before {
			g.announce(ctx, server.ToolsChanged)
		}
	}
}

// changed handles the notification that a list has changed.
func (g *Gateway) changed(ctx context.Context, s *Server, list string) {
	items := map[string]string{
		catalog.ListResources: server.ResourcesChanged,
		catalog.ListPrompts:   server.PromptsChanged,
	}[list]
	if items != "" {
		g.items.outdated(s.Alias, list)
		if items == server.ResourcesChanged {
			g.items.outdated(s.Alias, catalog.ListTemplates)
		}
		if owner := g.owner(); owner == nil || owner == s {
			g.announce(ctx, items)
		}
		return
	}

	before := g.generation()
	if err := g.Refresh(ctx, s.Alias); err != nil {
		g.cfg.Log.WarnContext(ctx, "changed tools can't be listed", "server", s.Alias, "error", err)
	}

	if g.generation() != before {
		g.announce(ctx, server.ToolsChanged)
	}
}

// generation identifies the list of tools that clients see. It is empty before the tools were
// listed.
func (g *Gateway) generation() string {
	g.tools.mu.RLock()
	table := g.tools.table
	g.tools.mu.RUnlock()
	if table == nil {
		return ""
	}
	out := table.Generation()
	for _, s := range g.signIns() {
		out += "/" + s.Alias
	}
	return out
}

// announce notifies clients of a changed list, if the configuration has a function for that.
func (g *Gateway) announce(ctx context.Context, method string) {
	if g.cfg.Announce != nil {
		g.cfg.Announce(ctx, method)
	}
}
