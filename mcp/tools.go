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
)

// tool is a tool of a server as clients and rules see it.
type tool struct {
	server      string // alias
	name        string // the server's own
	definition  string // its digest, with that of the server
	annotations map[string]bool
	declared    []string // arguments of its input schema
	withheld    string // why calls don't run: a sentence; "" for one that is offered
	asks        string // why each call is asked about; "" where the rules say
	verdict     *catalog.Verdict
}

// Pins keeps the definitions of tools that were accepted.
type Pins interface {
	// Pins returns the definitions that are accepted now.
	Pins(ctx context.Context) (*catalog.Pins, error)

	// Accept stores the definitions that the settings of a server accepted.
	Accept(ctx context.Context, j *catalog.Judgement) error
}

// versioned are pins that may change outside of this process. Version changes with each change.
type versioned interface{ Version() string }

// toolbox holds the last lists of tools, by server and combined.
type toolbox struct {
	asking  map[string]chan struct{} // full while a server is asked, by its alias
	listing sync.Mutex               // held while what was listed is put together

	mu     sync.RWMutex
	table  *catalog.Table // nil: not listed yet
	rules  string         // versions of the plan and the pins by which it was made
	listed map[string]catalog.Judgement
	failed map[string]error // servers that could not be listed
	all    *listing         // nil: all servers are not being listed now
	at     map[string]time.Time
}

// recheck lists the tools of a server again if the last list is too old, because a tool may have
// changed without a notification.
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

// Refresh lists the tools of a server again, or of all servers if alias is empty. It also asks all
// servers if there is no list yet.
func (g *Gateway) Refresh(ctx context.Context, alias string) error {
	if last, _ := g.tools.last(); last == nil || alias == "" {
		return g.listAll(ctx)
	}
	release, err := g.tools.enter(ctx, alias)
	if err != nil {
		return err
	}
	defer release()
	pins := g.pinsVersion()
	one := g.askServer(ctx, alias)
	if ctx.Err() != nil { // a cancelled request is no error of the server
		return context.Cause(ctx)
	}
	return g.merge(ctx, map[string]listed{alias: one}, pins)
}

// listing is a listing of all servers that is under way. All callers that need it wait for the same
// one.
type listing struct {
	done chan struct{} // closed when there is a list to go by
	err  error
}

// listAll asks all servers for their tools. It waits for ListPatience at most. The tools of slower
// servers are added when they have answered, and clients are notified then.
func (g *Gateway) listAll(ctx context.Context) error {
	g.tools.mu.Lock()
	r := g.tools.all
	if r == nil {
		r = &listing{done: make(chan struct{})}
		g.tools.all = r
		go g.listRound(context.WithoutCancel(ctx), r)
	}
	g.tools.mu.Unlock()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// answered is a server's answer. release allows the next request for its list.
type answered struct {
	alias   string
	one     listed
	release func()
}

// listRound asks all servers at once. Each takes ListWithin at most.
func (g *Gateway) listRound(ctx context.Context, r *listing) {
	pins := g.pinsVersion()
	answers := make(chan answered, len(g.servers))
	for alias := range g.servers {
		go func() {
			release, err := g.tools.enter(ctx, alias)
			if err != nil {
				answers <- answered{alias, listed{err: err}, func() {}}
				return
			}
			answers <- answered{alias, g.askServer(ctx, alias), release}
		}()
	}

	news, release := g.collect(answers)
	late := len(g.servers) - len(news)
	last, _ := g.tools.last()
	for alias := range g.servers {
		_, known := last[alias]
		if _, has := news[alias]; !has && !known {
			news[alias] = listed{judgement: catalog.Judgement{Alias: alias}, err: errNotYet}
		}
	}
	r.err = g.merge(ctx, news, pins)
	release() // not before: a newer list would be overwritten
	g.tools.mu.Lock()
	g.tools.all = nil
	g.tools.mu.Unlock()
	close(r.done)

	for range late {
		a := <-answers
		before := g.generation()
		if err := g.merge(ctx, map[string]listed{a.alias: a.one}, pins); err != nil {
			g.cfg.Log.WarnContext(ctx, "the tools of a slow server can't be added", "server", a.alias, "error", err)
		}
		a.release()
		if g.generation() != before {
			g.announce(ctx, server.ToolsChanged)
		}
	}
}

// collect gathers the answers that servers give within ListPatience. release allows the next
// requests for their lists.
func (g *Gateway) collect(answers <-chan answered) (news map[string]listed, release func()) {
	news = map[string]listed{}
	var held []func()
	release = func() {
		for _, one := range held {
			one()
		}
	}
	patience := time.NewTimer(g.cfg.ListPatience)
	defer patience.Stop()
	for range g.servers {
		select {
		case a := <-answers:
			news[a.alias] = a.one
			held = append(held, a.release)
		case <-patience.C:
			return news, release
		}
	}
	return news, release
}

// enter waits until no other goroutine asks a server for its list.
func (b *toolbox) enter(ctx context.Context, alias string) (release func(), err error) {
	asking := b.asking[alias]
	select {
	case asking <- struct{}{}:
		return func() { <-asking }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// listed is a server's answer to a request for its tools.
type listed struct {
	judgement catalog.Judgement
	err       error
}

// askServer asks a server for its tools.
func (g *Gateway) askServer(ctx context.Context, alias string) listed {
	last, _ := g.tools.last()
	g.tools.listedAt(alias, g.now())
	j, err := g.listOne(ctx, g.servers[alias], last[alias])
	if err != nil {
		j = last[alias] // its names are known
	}
	return listed{judgement: j, err: err}
}

// merge replaces the previous lists of servers with their new answers.
func (g *Gateway) merge(ctx context.Context, news map[string]listed, pins string) error {
	g.tools.listing.Lock()
	defer g.tools.listing.Unlock()
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

// of returns the last list of a server. The second result is false if there is none or the last
// attempt failed.
func (b *toolbox) of(alias string) (catalog.Judgement, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	j, has := b.listed[alias]
	return j, has && b.failed[alias] == nil
}

// listOne asks a server for its tools. Tools that have not changed since the last list are not
// parsed again.
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

// errSlow means that a server took too long to list its tools.
var errSlow = errors.New("the server did not list its tools in time")

// errNotYet means that a server has not answered yet.
var errNotYet = errors.New("the server has not listed its tools yet")

// errPins means that the accepted definitions can't be read.
var errPins = errors.New("the accepted definitions can't be read")

// judge compares the tools of a server with their pins.
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

// settle builds the table of the tools that clients are offered, without the tools that the agent's
// file doesn't allow at all.
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
			withhold(plan, g.servers[name], &j.Tools[i], failed[name])
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

// current returns the current table. It lists the servers first if there is no list yet, and
// rebuilds the table if the rules or the pins have changed.
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

// remake rebuilds the table from the last lists. It asks the servers if there are none.
func (g *Gateway) remake(ctx context.Context, rules string) error {
	made := func() bool { return g.tools.now(rules+g.pinsVersion()) != nil }
	last, failed := g.tools.last()
	for _, why := range failed {
		if errors.Is(why, errPins) {
			last = nil
		}
	}
	if last == nil {
		return g.listAll(ctx)
	}

	g.tools.listing.Lock()
	defer g.tools.listing.Unlock()
	if made() {
		return nil
	}
	return g.judgeAgain(ctx)
}

// judgeAgain compares the last lists with the current pins. The caller holds the lock listing.
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

// pinsVersion returns the version of the pins, or an empty string if they have none.
func (g *Gateway) pinsVersion() string {
	if p, ok := g.cfg.Pins.(versioned); ok {
		return "/" + p.Version()
	}
	return ""
}

// now returns the table if it was built with these versions of the rules and pins; an empty string
// matches any. It returns nil if there is no such table.
func (b *toolbox) now(rules string) *catalog.Table {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if rules != "" && b.rules != rules {
		return nil
	}
	return b.table
}

// last returns the last list of each server, and the errors of the servers that could not be
// listed.
func (b *toolbox) last() (map[string]catalog.Judgement, map[string]error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.listed, b.failed
}

// advertised returns the tool that a client's name refers to, or nil if there is none.
func (g *Gateway) advertised(ctx context.Context, name string) (*tool, error) {
	table, err := g.current(ctx)
	if err != nil {
		return nil, err
	}
	entry, known := table.Lookup(name)
	if !known {
		return g.unknown(name), nil
	}
	return offered(entry), nil
}

// offered converts an entry of the table to a tool.
func offered(e catalog.Entry) *tool {
	t := &tool{
		server:      e.Alias,
		name:        e.Name,
		definition:  e.Verdict.Digest,
		annotations: e.Verdict.Tool.Annotations,
		declared:    e.Verdict.Tool.Declared,
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

// errDown means that a server's tools are not known now.
var errDown = errors.New("the server can't be reached")

// toolOf returns a server's tool by its own name, or nil if the server has no such tool.
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

// ours adds the gateway's own tools to the last page.
func (g *Gateway) ours(page catalog.Page, tools [][]byte) [][]byte {
	if page.Next != "" {
		return tools
	}
	tools = slices.Clip(tools)
	if g.cfg.WaitTool {
		tools = append(tools, []byte(waitView))
	}
	for _, s := range g.signIns() {
		tools = append(tools, g.signInView(s))
	}
	return tools
}

// views returns tools as a client sees them. A client of 2025-11-25 may follow a call of each tool
// as a task.
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

// page returns the page that a cursor names, or the first page if there is no cursor.
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

// orObject returns the text, or an empty object if the text is empty.
func orObject(text []byte) []byte {
	if len(text) == 0 {
		return []byte("{}")
	}
	return text
}
