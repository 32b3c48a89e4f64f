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
func (n *notifier) watch(ctx context.Context) {
	var all sync.WaitGroup
	for _, s := range n.servers {
		all.Go(func() { n.watchServer(ctx, s) })
	}

	all.Go(func() { n.followRules(ctx) })
	all.Wait()
}

// watchServer handles the notifications of a server.
func (n *notifier) watchServer(ctx context.Context, s *Server) {
	var updated <-chan string
	if from, is := s.Upstream.(followable); is {
		updated = from.Updated()
	}
	ticks := time.NewTicker(n.cfg.Poll)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			if n.lister.lost(s.Alias) {
				n.changed(ctx, s, "tools/list")
			}
		case list := <-s.Upstream.Changed():
			n.changed(ctx, s, list)
		case uri := <-updated:
			n.updated(ctx, resourceKey{s.Alias, uri})
		}
	}
}

// followRules updates the lists when the rules or the pins change, and notifies clients.
func (n *notifier) followRules(ctx context.Context) {
	ticks := time.NewTicker(n.cfg.Poll)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		before := n.lister.generation()
		if before == "" {
			continue // no client has requested a list yet
		}
		_, err := n.lister.current(ctx)
		if err == nil && n.lister.generation() != before {
			n.announce(ctx, server.ToolsChanged)
		}
	}
}

// changed handles the notification that a list has changed.
func (n *notifier) changed(ctx context.Context, s *Server, list string) {
	items := map[string]string{
		catalog.ListResources: server.ResourcesChanged,
		catalog.ListPrompts:   server.PromptsChanged,
	}[list]
	if items != "" {
		n.offers.items.outdated(s.Alias, list)
		if items == server.ResourcesChanged {
			n.offers.items.outdated(s.Alias, catalog.ListTemplates)
		}
		if owner := n.owner(); owner == nil || owner == s {
			n.announce(ctx, items)
		}
		return
	}

	before := n.lister.generation()
	if err := n.lister.refresh(ctx, s.Alias); err != nil {
		n.cfg.Log.WarnContext(ctx, "changed tools can't be listed", "server", s.Alias, "error", err)
	}

	if n.lister.generation() != before {
		n.announce(ctx, server.ToolsChanged)
	}
}
