package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/wire"
	"github.com/assent-dev/assent/resolve"
)

// tool is a tool of a server, as clients and rules know it.
type tool struct {
	server      string // alias
	name        string // the server's own
	definition  string // its digest, with that of the server
	annotations map[string]bool
	withheld    string // why calls don't run: a sentence; "" for one that is offered
	asks        string // why each call is asked about; "" where the rules say
	verdict     *catalog.Verdict
}

// Pins keeps the definitions of tools that were accepted.
type Pins interface {
	// Pins are those that are accepted now.
	Pins(ctx context.Context) (*catalog.Pins, error)

	// Accept keeps what the settings of a server accepted.
	Accept(ctx context.Context, j *catalog.Judgement) error
}

// versioned are pins that somebody else may change: Version is another
// one after each change.
type versioned interface{ Version() string }

// toolbox is what was listed last: of each server, and of all.
type toolbox struct {
	asking  map[string]chan struct{} // full while a server is asked, by its alias
	listing sync.Mutex               // held while what was listed is put together

	mu     sync.RWMutex
	table  *catalog.Table // nil: not listed yet
	rules  string         // versions of the plan and the pins by which it was made
	listed map[string]catalog.Judgement
	failed map[string]error // servers that could not be listed
	at     map[string]time.Time
}

// recheck lists the tools of a server anew when that was long ago: one
// may have changed, and its server not said so.
func (g *Gateway) recheck(ctx context.Context, alias string) {
	g.tools.mu.RLock()
	at := g.tools.at[alias]
	g.tools.mu.RUnlock()
	if g.now().Sub(at) < g.cfg.Recheck {
		return
	}
	if err := g.Refresh(ctx, alias); err != nil {
		g.cfg.Log.WarnContext(ctx, "the tools can't be listed again", "server", alias, "error", err)
	}
}

// listedAt notes when a server was listed.
func (b *toolbox) listedAt(alias string, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at == nil {
		b.at = map[string]time.Time{}
	}
	b.at[alias] = at
}

// Refresh lists the tools of a server anew; "" for all.
func (g *Gateway) Refresh(ctx context.Context, alias string) error {
	return g.list(ctx, alias, func() bool { return false })
}

// list asks servers for their tools. Of one that doesn't answer no tool
// is offered, and its calls say so. done reports that it isn't wanted any
// more, once the servers may be asked.
func (g *Gateway) list(ctx context.Context, alias string, done func() bool) error {
	aliases := g.toAsk(alias)
	release, err := g.tools.enter(ctx, aliases)
	if err != nil {
		return err
	}
	defer release()
	if done() {
		return nil
	}
	pins := g.pinsVersion()
	news := g.askAll(ctx, aliases)
	if ctx.Err() != nil { // that nobody waits any more says nothing of the servers
		return context.Cause(ctx)
	}

	g.tools.listing.Lock()
	defer g.tools.listing.Unlock()
	return g.merge(ctx, news, pins)
}

// toAsk are the servers to ask when one of them is meant: as long as
// some were never asked, all of them.
func (g *Gateway) toAsk(alias string) []string {
	if last, _ := g.tools.last(); last == nil || alias == "" {
		return slices.Sorted(maps.Keys(g.servers))
	}
	return []string{alias}
}

// enter waits until nobody else asks any of these servers, which are in
// order.
func (b *toolbox) enter(ctx context.Context, aliases []string) (release func(), err error) {
	var held []chan struct{}
	release = func() {
		for _, one := range held {
			<-one
		}
	}
	for _, alias := range aliases {
		one := b.asking[alias]
		select {
		case one <- struct{}{}:
			held = append(held, one)
		case <-ctx.Done():
			release()
			return nil, context.Cause(ctx)
		}
	}

	return release, nil
}

// listed is what a server answered.
type listed struct {
	judgement catalog.Judgement
	err       error
}

// askAll asks servers for their tools at once.
func (g *Gateway) askAll(ctx context.Context, aliases []string) map[string]listed {
	last, _ := g.tools.last()
	news := map[string]listed{}
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, name := range aliases {
		all.Go(func() {
			g.tools.listedAt(name, g.now())
			j, err := g.listOne(ctx, g.servers[name], last[name])
			if err != nil {
				j = last[name] // its names are known
			}
			mu.Lock()
			defer mu.Unlock()
			news[name] = listed{judgement: j, err: err}
		})
	}

	all.Wait()
	return news
}

// merge puts what servers answered in the place of what they did before.
// The lock of listing is held.
func (g *Gateway) merge(ctx context.Context, news map[string]listed, pins string) error {
	last, lastFailed := g.tools.last()
	now, failed := map[string]catalog.Judgement{}, map[string]error{}
	maps.Copy(now, last)
	maps.Copy(failed, lastFailed)
	for name, one := range news {
		now[name], failed[name] = one.judgement, one.err
	}
	if err := g.settle(ctx, now, failed, pins); err != nil {
		return err
	}
	g.outdate(ctx, last, now, failed)
	return nil
}

// of is what was listed last of a server.
func (b *toolbox) of(alias string) (catalog.Judgement, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	j, has := b.listed[alias]
	return j, has && b.failed[alias] == nil
}

// listOne asks a server for its tools. Those that are as they were last
// are not read anew.
func (g *Gateway) listOne(ctx context.Context, s *Server, last catalog.Judgement) (catalog.Judgement, error) {
	asking, done := context.WithTimeoutCause(ctx, g.cfg.ListWithin, errSlow)
	defer done()
	raw, err := s.Upstream.List(asking, "tools/list")
	var tools []*catalog.Tool
	if err == nil {
		tools, err = catalog.ReadList(raw, last.List())
	}
	if err != nil {
		g.cfg.Log.WarnContext(ctx, "a server's tools can't be listed", "server", s.Alias, "error", err)
		return catalog.Judgement{Alias: s.Alias}, err
	}

	return g.judge(ctx, s, tools)
}

// errSlow says that a server took too long to list its tools.
var errSlow = errors.New("the server did not list its tools in time")

// errPins says that nobody knows which definitions were accepted.
var errPins = errors.New("the accepted definitions can't be read")

// judge holds the tools of a server against their pins.
func (g *Gateway) judge(ctx context.Context, s *Server, tools []*catalog.Tool) (catalog.Judgement, error) {
	pins, err := g.cfg.Pins.Pins(ctx)
	if err != nil {
		g.cfg.Log.ErrorContext(ctx, "no tool is offered", "server", s.Alias, "error", err)
		return catalog.Judgement{Alias: s.Alias}, fmt.Errorf("%w: %w", errPins, err)
	}
	j := catalog.Judge(pins, s.Alias, s.Identity, tools, s.Judging)
	for _, f := range j.Findings {
		g.cfg.Log.InfoContext(ctx, "finding", "server", s.Alias, "finding", f.String())
	}
	if len(j.Record) > 0 {
		err = g.cfg.Pins.Accept(ctx, &j)
	}
	return j, err
}

// settle makes the table of what clients are offered: what the agent's
// file doesn't allow at all is left out.
func (g *Gateway) settle(
	ctx context.Context, listed map[string]catalog.Judgement, failed map[string]error, pins string,
) error {
	plan, err := g.rules(ctx)
	if err != nil {
		return err
	}
	var offered []catalog.Judgement
	for name, j := range listed {
		j.Tools = slices.Clone(j.Tools)
		for i := range j.Tools {
			withhold(plan, name, &j.Tools[i], failed[name])
		}
		offered = append(offered, j)
	}

	table, err := catalog.NewTable(offered, g.cfg.Naming, g.cfg.Key)
	if err != nil {
		return fmt.Errorf("name the tools: %w", err)
	}

	for _, f := range table.Findings {
		g.cfg.Log.InfoContext(ctx, "finding", "server", f.Server, "finding", f.String())
	}

	g.tools.mu.Lock()
	defer g.tools.mu.Unlock()
	g.tools.table = table
	g.tools.rules = plan.Version() + pins
	g.tools.listed = listed
	g.tools.failed = failed
	return nil
}

// withhold takes a tool off the list whose server isn't there, or that
// the agent's file doesn't allow at all.
func withhold(plan *resolve.Plan, alias string, v *catalog.Verdict, down error) {
	switch {
	case down != nil:
		v.State, v.Reason = catalog.Withheld, textDown(alias, down)
	case undeclared(plan, alias, v.Tool.Name):
		v.State, v.Reason = catalog.Withheld, "The agent's file doesn't allow this tool."
	}
}

// textDown is for calls of a server whose tools are not known now.
func textDown(alias string, why error) string {
	if errors.Is(why, errPins) {
		return "Nobody can say which definitions of the tools of " + alias + " were accepted; its operators must look at it."
	}
	return "The server " + alias + " can't be reached."
}

// undeclared reports whether the agent's file denies every call of a
// tool: it is not declared, or an allow-list doesn't name it.
func undeclared(plan *resolve.Plan, alias, name string) bool {
	d := plan.Decide(&resolve.Call{Kind: resolve.MCPTool, Server: alias, Tool: name})
	return d.Outcome == resolve.Deny && slices.ContainsFunc(d.Reasons, func(r resolve.Reason) bool {
		return r.Code == resolve.NotAllowed || r.Code == resolve.NotDeclared
	})
}

// current is the table as of now: listed anew where it was never
// listed, and made anew when the rules or the pins changed.
func (g *Gateway) current(ctx context.Context) (*catalog.Table, error) {
	plan, err := g.rules(ctx)
	if err != nil {
		return nil, err
	}
	if table := g.tools.now(plan.Version() + g.pinsVersion()); table != nil {
		return table, nil
	}

	if err := g.remake(ctx, plan.Version()); err != nil {
		return nil, err
	}
	return g.tools.now(""), nil
}

// remake makes the table anew of what was listed last; servers are
// asked where that is not known.
func (g *Gateway) remake(ctx context.Context, rules string) error {
	made := func() bool { return g.tools.now(rules+g.pinsVersion()) != nil }
	last, failed := g.tools.last()
	for _, why := range failed {
		if errors.Is(why, errPins) {
			last = nil
		}
	}
	if last == nil {
		return g.list(ctx, "", made)
	}

	g.tools.listing.Lock()
	defer g.tools.listing.Unlock()
	if made() {
		return nil
	}
	return g.judgeAgain(ctx)
}

// judgeAgain holds what was listed last against the pins as of now. The
// lock of listing is held.
func (g *Gateway) judgeAgain(ctx context.Context) error {
	pins := g.pinsVersion()
	last, failed := g.tools.last()
	listed := map[string]catalog.Judgement{}
	failed = maps.Clone(failed)
	for name, j := range last {
		listed[name] = j
		if failed[name] != nil {
			continue
		}
		now, err := g.judge(ctx, g.servers[name], j.List())
		if failed[name] = err; err == nil {
			listed[name] = now
		}
	}

	if err := g.settle(ctx, listed, failed, pins); err != nil {
		return err
	}
	g.outdate(ctx, last, listed, failed)
	return nil
}

// pinsVersion is that of the pins, where they have one.
func (g *Gateway) pinsVersion() string {
	if p, ok := g.cfg.Pins.(versioned); ok {
		return "/" + p.Version()
	}
	return ""
}

// now is the table under versions of the rules, "" for any; nil when
// there is none.
func (b *toolbox) now(rules string) *catalog.Table {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if rules != "" && b.rules != rules {
		return nil
	}
	return b.table
}

// last are the lists as they were read last, and the servers that could
// not be asked.
func (b *toolbox) last() (map[string]catalog.Judgement, map[string]error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.listed, b.failed
}

// advertised is the tool that a client means; nil when there is none.
func (g *Gateway) advertised(ctx context.Context, name string) (*tool, error) {
	table, err := g.current(ctx)
	if err != nil {
		return nil, err
	}
	entry, known := table.Lookup(name)
	if !known {
		return g.unknown(), nil
	}
	return offered(entry), nil
}

// offered is an entry as calls need it.
func offered(e catalog.Entry) *tool {
	t := &tool{
		server:      e.Alias,
		name:        e.Name,
		definition:  e.Verdict.Digest,
		annotations: e.Verdict.Tool.Annotations,
		verdict:     &e.Verdict,
	}
	switch e.Verdict.State {
	case catalog.Withheld:
		t.withheld = e.Verdict.Reason
	case catalog.Asks:
		t.asks = e.Verdict.Reason
	}

	return t
}

// unknown is what a name stands for that no list has: a tool that can't
// be called where a server isn't there whose tools were never listed,
// and else nothing.
func (g *Gateway) unknown() *tool {
	listed, failed := g.tools.last()
	for alias, j := range listed {
		if failed[alias] != nil && len(j.Tools) == 0 {
			return &tool{server: alias, withheld: textDown(alias, failed[alias])}
		}
	}

	return nil
}

// errDown says that a server's tools are not known now.
var errDown = errors.New("the server can't be reached")

// toolOf is a server's tool by its own name; nil when it is not there.
func (g *Gateway) toolOf(ctx context.Context, alias, name string) (*tool, error) {
	if isPseudo(name) {
		return pseudo(alias, name), nil
	}
	table, err := g.current(ctx)
	if err != nil {
		return nil, err
	}
	if _, up := g.tools.of(alias); !up {
		return nil, errDown
	}
	if entry, known := table.Of(alias, name); known {
		return offered(entry), nil
	}
	return nil, nil
}

// toolsList answers tools/list.
func (g *Gateway) toolsList(ctx context.Context, r *server.Request) (json.RawMessage, *wire.Error) {
	table, err := g.current(ctx)
	if err != nil {
		g.cfg.Log.ErrorContext(ctx, "the tools can't be listed", "error", err)
		return nil, wire.Fail(wire.CodeInternal, "the tools can't be listed now")
	}
	page, err := g.page(table, r.Params)
	if err != nil {
		return nil, wire.Fail(wire.CodeInvalidParams, "%v", err)
	}
	text, err := jsonmsg.Object(func(w *jsonmsg.Writer) {
		if r.Modern {
			w.Member("resultType", wire.Complete)
		}
		w.Name("tools").Elements(g.ours(page, views(r, page.Tools)))
		w.Optional("nextCursor", page.Next)
		if r.Modern {
			w.Name("ttlMs").Int(0)
			w.Member("cacheScope", "private")
		}
	})
	if err != nil {
		return nil, wire.Fail(wire.CodeInternal, "the list can't be written")
	}
	return text, nil
}

// ours adds the gateway's own tools to those of the last page.
func (g *Gateway) ours(page catalog.Page, tools [][]byte) [][]byte {
	if !g.cfg.WaitTool || page.Next != "" {
		return tools
	}
	return append(slices.Clip(tools), []byte(waitView))
}

// views are tools as a client sees them. One of 2025-11-25 may follow
// each as a task.
func views(r *server.Request, tools [][]byte) [][]byte {
	if r.Version != wire.V20251125 {
		return tools
	}
	out := make([][]byte, len(tools))
	for i, view := range tools {
		out[i] = view
		if jsonmsg.Get(view, "execution") == nil {
			out[i] = jsonmsg.Put(view, "execution", []byte(`{"taskSupport":"optional"}`))
		}
	}

	return out
}

// page is the page that a cursor names, the first one without a cursor.
func (g *Gateway) page(table *catalog.Table, params []byte) (catalog.Page, error) {
	f := jsonmsg.Read(orObject(params), wire.Limits())
	cursor := f.Optional("cursor")
	if f.Err() != nil {
		return catalog.Page{}, f.Err()
	}
	if cursor == nil {
		return table.First(), nil
	}
	return table.After(*cursor)
}

// orObject is a text, or that of an empty object where there is none.
func orObject(text []byte) []byte {
	if len(text) == 0 {
		return []byte("{}")
	}
	return text
}
