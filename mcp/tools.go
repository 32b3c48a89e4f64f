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
	withheld    string   // why calls don't run: a sentence; "" for one that is offered
	asks        string   // why each call is asked about; "" where the rules say
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
func (l *lister) recheck(ctx context.Context, alias string) {
	l.tools.mu.RLock()
	at := l.tools.at[alias]
	l.tools.mu.RUnlock()
	if l.now().Sub(at) < l.cfg.Recheck {
		return
	}
	if err := l.refresh(ctx, alias); err != nil {
		l.cfg.Log.WarnContext(ctx, "the tools can't be listed again", "server", alias, "error", err)
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

// refresh lists the tools again; see Gateway.Refresh.
func (l *lister) refresh(ctx context.Context, alias string) error {
	if last, _ := l.tools.last(); last == nil || alias == "" {
		return l.listAll(ctx)
	}
	release, err := l.tools.enter(ctx, alias)
	if err != nil {
		return err
	}
	defer release()
	pins := l.pinsVersion()
	one := l.askServer(ctx, alias)
	if ctx.Err() != nil { // a cancelled request is no error of the server
		return context.Cause(ctx)
	}
	return l.merge(ctx, map[string]listed{alias: one}, pins)
}

// lister knows the tools of all servers, and lists them for clients.
type lister struct {
	*base
	tools toolbox
	// outdate ends the questions about tools that have changed since the lists before.
	outdate func(ctx context.Context, before, now map[string]catalog.Judgement, failed map[string]error)
}

func newLister(b *base) *lister {
	l := &lister{base: b, tools: toolbox{asking: map[string]chan struct{}{}}}
	for alias := range b.servers {
		l.tools.asking[alias] = make(chan struct{}, 1)
	}
	return l
}

// listing is a listing of all servers that is under way. All callers that need it wait for the same
// one.
type listing struct {
	done chan struct{} // closed when there is a list to go by
	err  error
}

// listAll asks all servers for their tools. It waits for ListPatience at most. The tools of slower
// servers are added when they have answered, and clients are notified then.
func (l *lister) listAll(ctx context.Context) error {
	l.tools.mu.Lock()
	r := l.tools.all
	if r == nil {
		r = &listing{done: make(chan struct{})}
		l.tools.all = r
		go l.listRound(context.WithoutCancel(ctx), r)
	}
	l.tools.mu.Unlock()
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
func (l *lister) listRound(ctx context.Context, r *listing) {
	pins := l.pinsVersion()
	answers := make(chan answered, len(l.servers))
	for alias := range l.servers {
		go func() {
			release, err := l.tools.enter(ctx, alias)
			if err != nil {
				answers <- answered{alias, listed{err: err}, func() {}}
				return
			}
			answers <- answered{alias, l.askServer(ctx, alias), release}
		}()
	}

	news, release := l.collect(answers)
	late := len(l.servers) - len(news)
	last, _ := l.tools.last()
	for alias := range l.servers {
		_, known := last[alias]
		if _, has := news[alias]; !has && !known {
			news[alias] = listed{judgement: catalog.Judgement{Alias: alias}, err: errNotYet}
		}
	}
	r.err = l.merge(ctx, news, pins)
	release() // not before: a newer list would be overwritten
	l.tools.mu.Lock()
	l.tools.all = nil
	l.tools.mu.Unlock()
	close(r.done)

	for range late {
		a := <-answers
		before := l.generation()
		if err := l.merge(ctx, map[string]listed{a.alias: a.one}, pins); err != nil {
			l.cfg.Log.WarnContext(ctx, "the tools of a slow server can't be added", "server", a.alias, "error", err)
		}
		a.release()
		if l.generation() != before {
			l.announce(ctx, server.ToolsChanged)
		}
	}
}

// collect gathers the answers that servers give within ListPatience. release allows the next
// requests for their lists.
func (l *lister) collect(answers <-chan answered) (news map[string]listed, release func()) {
	news = map[string]listed{}
	var held []func()
	release = func() {
		for _, one := range held {
			one()
		}
	}
	patience := time.NewTimer(l.cfg.ListPatience)
	defer patience.Stop()
	for range l.servers {
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
func (l *lister) askServer(ctx context.Context, alias string) listed {
	last, _ := l.tools.last()
	l.tools.listedAt(alias, l.now())
	j, err := l.listOne(ctx, l.servers[alias], last[alias])
	if err != nil {
		j = last[alias] // its names are known
	}
	return listed{judgement: j, err: err}
}

// merge replaces the previous lists of servers with their new answers.
func (l *lister) merge(ctx context.Context, news map[string]listed, pins string) error {
	l.tools.listing.Lock()
	defer l.tools.listing.Unlock()
	last, lastFailed := l.tools.last()
	now, failed := map[string]catalog.Judgement{}, map[string]error{}
	maps.Copy(now, last)
	maps.Copy(failed, lastFailed)
	for name, one := range news {
		now[name], failed[name] = one.judgement, one.err
	}
	if err := l.settle(ctx, now, failed, pins); err != nil {
		return err
	}
	l.outdate(ctx, last, now, failed)
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
func (l *lister) listOne(ctx context.Context, s *Server, last catalog.Judgement) (catalog.Judgement, error) {
	asking, done := context.WithTimeoutCause(ctx, l.cfg.ListWithin, errSlow)
	defer done()
	raw, err := s.Upstream.List(asking, "tools/list")
	var tools []*catalog.Tool
	if err == nil {
		tools, err = catalog.ReadList(raw, last.List())
	}
	if err != nil {
		l.cfg.Log.WarnContext(ctx, "a server's tools can't be listed", "server", s.Alias, "error", err)
		return catalog.Judgement{Alias: s.Alias}, err
	}

	return l.judge(ctx, s, tools)
}

// errSlow means that a server took too long to list its tools.
var errSlow = errors.New("the server did not list its tools in time")

// errNotYet means that a server has not answered yet.
var errNotYet = errors.New("the server has not listed its tools yet")

// errPins means that the accepted definitions can't be read.
var errPins = errors.New("the accepted definitions can't be read")

// judge compares the tools of a server with their pins.
func (l *lister) judge(ctx context.Context, s *Server, tools []*catalog.Tool) (catalog.Judgement, error) {
	pins, err := l.cfg.Pins.Pins(ctx)
	if err != nil {
		l.cfg.Log.ErrorContext(ctx, "no tool is offered", "server", s.Alias, "error", err)
		return catalog.Judgement{Alias: s.Alias}, fmt.Errorf("%w: %w", errPins, err)
	}
	j := catalog.Judge(pins, s.Alias, s.Identity, tools, s.Judging)
	for _, f := range j.Findings {
		l.cfg.Log.InfoContext(ctx, "finding", "server", s.Alias, "finding", f.String())
	}
	if len(j.Record) > 0 {
		err = l.cfg.Pins.Accept(ctx, &j)
	}
	return j, err
}

// settle builds the table of the tools that clients are offered, without the tools that the agent's
// file doesn't allow at all.
func (l *lister) settle(
	ctx context.Context, listed map[string]catalog.Judgement, failed map[string]error, pins string,
) error {
	plan, err := l.rules(ctx)
	if err != nil {
		return err
	}
	var offered []catalog.Judgement
	for name, j := range listed {
		j.Tools = slices.Clone(j.Tools)
		for i := range j.Tools {
			withhold(plan, l.servers[name], &j.Tools[i], failed[name])
		}
		offered = append(offered, j)
	}

	table, err := catalog.NewTable(offered, l.cfg.Naming, l.cfg.Key)
	if err != nil {
		return fmt.Errorf("name the tools: %w", err)
	}

	for _, f := range table.Findings {
		l.cfg.Log.InfoContext(ctx, "finding", "server", f.Server, "finding", f.String())
	}

	l.tools.mu.Lock()
	defer l.tools.mu.Unlock()
	l.tools.table = table
	l.tools.rules = plan.Version() + pins
	l.tools.listed = listed
	l.tools.failed = failed
	return nil
}

// current returns the current table. It lists the servers first if there is no list yet, and
// rebuilds the table if the rules or the pins have changed.
func (l *lister) current(ctx context.Context) (*catalog.Table, error) {
	plan, err := l.rules(ctx)
	if err != nil {
		return nil, err
	}
	if table := l.tools.now(plan.Version() + l.pinsVersion()); table != nil {
		return table, nil
	}

	if err := l.remake(ctx, plan.Version()); err != nil {
		return nil, err
	}
	return l.tools.now(""), nil
}

// remake rebuilds the table from the last lists. It asks the servers if there are none.
func (l *lister) remake(ctx context.Context, rules string) error {
	made := func() bool { return l.tools.now(rules+l.pinsVersion()) != nil }
	last, failed := l.tools.last()
	for _, why := range failed {
		if errors.Is(why, errPins) {
			last = nil
		}
	}
	if last == nil {
		return l.listAll(ctx)
	}

	l.tools.listing.Lock()
	defer l.tools.listing.Unlock()
	if made() {
		return nil
	}
	return l.judgeAgain(ctx)
}

// judgeAgain compares the last lists with the current pins. The caller holds the lock listing.
func (l *lister) judgeAgain(ctx context.Context) error {
	pins := l.pinsVersion()
	last, failed := l.tools.last()
	listed := map[string]catalog.Judgement{}
	failed = maps.Clone(failed)
	for name, j := range last {
		listed[name] = j
		if failed[name] != nil {
			continue
		}
		now, err := l.judge(ctx, l.servers[name], j.List())
		if failed[name] = err; err == nil {
			listed[name] = now
		}
	}

	if err := l.settle(ctx, listed, failed, pins); err != nil {
		return err
	}
	l.outdate(ctx, last, listed, failed)
	return nil
}

// pinsVersion returns the version of the pins, or an empty string if they have none.
func (l *lister) pinsVersion() string {
	if p, ok := l.cfg.Pins.(versioned); ok {
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
func (l *lister) advertised(ctx context.Context, name string) (*tool, error) {
	table, err := l.current(ctx)
	if err != nil {
		return nil, err
	}
	entry, known := table.Lookup(name)
	if !known {
		return l.unknown(name), nil
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
func (l *lister) toolOf(ctx context.Context, alias, name string) (*tool, error) {
	if isPseudo(name) {
		return pseudo(alias, name), nil
	}
	table, err := l.current(ctx)
	if err != nil {
		return nil, err
	}
	if _, up := l.tools.of(alias); !up {
		return nil, errDown
	}
	if entry, known := table.Of(alias, name); known {
		return offered(entry), nil
	}
	return nil, nil
}

// toolsList answers tools/list.
func (l *lister) toolsList(ctx context.Context, r *server.Request) (json.RawMessage, *wire.Error) {
	table, err := l.current(ctx)
	if err != nil {
		l.cfg.Log.ErrorContext(ctx, "the tools can't be listed", "error", err)
		return nil, wire.Fail(wire.CodeInternal, "the tools can't be listed now")
	}
	page, err := l.page(table, r.Params)
	if err != nil {
		return nil, wire.Fail(wire.CodeInvalidParams, "%v", err)
	}
	text, err := jsonmsg.Object(func(w *jsonmsg.Writer) {
		if r.Modern {
			w.Member("resultType", wire.Complete)
		}
		w.Name("tools").Elements(l.ours(page, views(r, page.Tools)))
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
func (l *lister) ours(page catalog.Page, tools [][]byte) [][]byte {
	if page.Next != "" {
		return tools
	}
	tools = slices.Clip(tools)
	if l.cfg.WaitTool {
		tools = append(tools, []byte(waitView))
	}
	for _, s := range l.signIns() {
		tools = append(tools, l.signInView(s))
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
func (l *lister) page(table *catalog.Table, params []byte) (catalog.Page, error) {
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

// generation identifies the list of tools that clients see. It is empty before the tools were
// listed.
func (l *lister) generation() string {
	l.tools.mu.RLock()
	table := l.tools.table
	l.tools.mu.RUnlock()
	if table == nil {
		return ""
	}
	out := table.Generation()
	for _, s := range l.signIns() {
		out += "/" + s.Alias
	}
	return out
}

// lost reports whether listing a server failed a while ago. A server that is reached by HTTP
// doesn't report that it is back, so it has to be asked again.
func (l *lister) lost(alias string) bool {
	l.tools.mu.RLock()
	defer l.tools.mu.RUnlock()
	return l.tools.failed[alias] != nil && l.now().Sub(l.tools.at[alias]) >= l.cfg.Recheck
}
