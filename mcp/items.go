package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
)

// listKey identifies a list of a server: its resources, templates or prompts.
type listKey struct{ alias, method string }

// itemLists keeps the last answers of the servers for these lists.
type itemLists struct {
	mu sync.Mutex
	of map[listKey]*itemList
}

// itemList is one list of one server.
type itemList struct {
	items  []catalog.Item
	known  bool          // it was answered, and has not changed since
	err    error         // why it could not be read
	asking chan struct{} // closed when the server has answered; nil: it isn't being asked
	late   bool          // a client did not wait for the answer
}

// list returns a list, which may be empty. The lock is held.
func (l *itemLists) list(key listKey) *itemList {
	if l.of == nil {
		l.of = map[listKey]*itemList{}
	}
	if l.of[key] == nil {
		l.of[key] = &itemList{}
	}
	return l.of[key]
}

// outdated notes that a server's lists have changed.
func (l *itemLists) outdated(alias string, methods ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, method := range methods {
		l.list(listKey{alias, method}).known = false
	}
}

// offers knows the resources and prompts that clients are offered.
type offers struct {
	*base
	lister *lister
	items  itemLists
}

// askItems asks all servers for lists, and waits for ListPatience at most. Clients are notified
// when a slower server has answered. With onlyUnknown, lists that are known are not requested
// again.
func (o *offers) askItems(ctx context.Context, onlyUnknown bool, methods ...string) {
	var waits []listKey
	var answers []<-chan struct{}
	for i := range o.cfg.Servers {
		for _, method := range methods {
			key := listKey{o.cfg.Servers[i].Alias, method}
			if answer := o.askList(ctx, &o.cfg.Servers[i], key, onlyUnknown); answer != nil {
				waits, answers = append(waits, key), append(answers, answer)
			}
		}
	}

	patience := time.NewTimer(o.cfg.ListPatience)
	defer patience.Stop()
	for i, answer := range answers {
		select {
		case <-answer:
			continue
		case <-ctx.Done():
		case <-patience.C:
		}
		o.items.mu.Lock()
		for _, key := range waits[i:] {
			l := o.items.list(key)
			l.late = l.asking != nil
		}
		o.items.mu.Unlock()
		return
	}
}

// askList asks a server for a list in a goroutine of its own, unless it
// is being asked. It returns nil if there is nothing to wait for.
func (o *offers) askList(ctx context.Context, s *Server, key listKey, onlyUnknown bool) <-chan struct{} {
	o.items.mu.Lock()
	defer o.items.mu.Unlock()
	l := o.items.list(key)
	switch {
	case l.asking != nil:
		return l.asking
	case onlyUnknown && l.known:
		return nil
	}

	answered := make(chan struct{})
	l.asking = answered
	go func() {
		asking, stop := context.WithTimeoutCause(context.WithoutCancel(ctx), o.cfg.ListWithin, errSlow)
		defer stop()
		items, err := o.readItems(asking, s, key.method)
		if err != nil {
			o.cfg.Log.WarnContext(ctx, "a server's list can't be read", "server", s.Alias,
				"method", key.method, "error", err)
		}
		o.items.mu.Lock()
		news := l.late && !slices.EqualFunc(l.items, items, sameItem)
		l.items, l.err, l.known, l.late, l.asking = items, err, err == nil, false, nil
		o.items.mu.Unlock()
		close(answered)
		if news {
			o.announce(context.WithoutCancel(ctx), changeOf(key.method))
		}
	}()
	return answered
}

func sameItem(a, b catalog.Item) bool { return string(a.Text) == string(b.Text) }

// changeOf returns the notification for a changed list.
func changeOf(method string) string {
	if method == catalog.ListPrompts {
		return server.PromptsChanged
	}
	return server.ResourcesChanged
}

// readItems reads a list of a server. Items that clients would refuse are left out, because clients
// would refuse the whole list.
func (o *offers) readItems(ctx context.Context, s *Server, method string) ([]catalog.Item, error) {
	kind, _, _ := strings.Cut(method, "/")
	if has := s.has(); has != nil && !jsonmsg.IsObject(jsonmsg.Get(has, kind)) {
		return nil, nil
	}
	all, err := s.Upstream.List(ctx, method)
	if refused, is := errors.AsType[*wire.Error](err); is && refused.Code == wire.CodeMethodNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return o.soundItems(ctx, s, method, all), nil
}

// soundItems returns the items of a list that clients can be given, and logs the others.
func (o *offers) soundItems(
	ctx context.Context, s *Server, method string, all []json.RawMessage,
) (sound []catalog.Item) {
	for _, raw := range all {
		item, err := catalog.ReadItem(method, raw)
		if err != nil {
			o.cfg.Log.WarnContext(ctx, "an item of a list is left out", "server", s.Alias,
				"method", method, "item", safetext.Line(item.ID), "reason", err)
			continue
		}
		sound = append(sound, item)
	}
	return sound
}

// owned is an item with the alias of its server.
type owned struct {
	alias string
	catalog.Item
}

// knownItems returns the items of a list of all servers with their aliases. It returns an error if
// no server could be asked.
func (o *offers) knownItems(method string) (all []owned, err error) {
	answered := false
	o.items.mu.Lock()
	for i := range o.cfg.Servers {
		alias := o.cfg.Servers[i].Alias
		l := o.items.list(listKey{alias, method})
		for _, item := range l.items {
			all = append(all, owned{alias, item})
		}
		answered = answered || l.err == nil
		if err == nil {
			err = l.err
		}
	}
	o.items.mu.Unlock()
	if answered {
		err = nil
	}
	slices.SortStableFunc(all, func(a, b owned) int { return cmp.Compare(a.alias, b.alias) })
	return all, err
}

// offeredItems returns the items of a list as clients see them.
func (o *offers) offeredItems(ctx context.Context, method string) (texts [][]byte, err error) {
	asked := []string{method}
	if method != catalog.ListPrompts { // which URIs are ambiguous depends on both
		asked = []string{catalog.ListResources, catalog.ListTemplates}
	}
	o.askItems(ctx, false, asked...)
	all, err := o.knownItems(method)
	if err != nil {
		return nil, err
	}
	names := o.promptNames
	if method != catalog.ListPrompts {
		names = o.claims().names
	}
	for i, name := range names(all) {
		if name == "" {
			o.cfg.Log.WarnContext(ctx, "a prompt is left out, since its name is taken for another one",
				"server", all[i].alias, "prompt", safetext.Line(all[i].ID))
			continue
		}
		text, err := jsonmsg.Marshal(name)
		if err != nil {
			continue
		}
		texts = append(texts, jsonmsg.Put(all[i].Text, catalog.IDMember(method), text))
	}
	return texts, nil
}

// promptNames returns the names of prompts for clients.
func (o *offers) promptNames(all []owned) []string {
	of := make([]catalog.Owned, len(all))
	for i, one := range all {
		of[i] = catalog.Owned{Alias: one.alias, Name: one.ID}
	}
	return o.cfg.Naming.Names(of)
}

// ownScheme is the prefix of URIs that contain the server's alias and its own URI:
// assent://ALIAS/URI. Clients get them for URIs that more than one server may have.
const ownScheme = "assent://"

func qualified(alias, uri string) string { return ownScheme + alias + "/" + uri }

// unqualified splits such a URI into the alias and the server's own URI.
func unqualified(uri string) (alias, own string, is bool) {
	if !isQualified(uri) {
		return "", "", false
	}
	return strings.Cut(uri[len(ownScheme):], "/")
}

func isQualified(uri string) bool {
	return len(uri) >= len(ownScheme) && strings.EqualFold(uri[:len(ownScheme)], ownScheme)
}

// claim lists the URIs that a server may have.
type claim struct {
	alias     string
	uris      map[string]bool // those that it lists, as uriKey has them
	templates []template
}

type template struct {
	text  string
	parts []string // the texts around its expressions
}

// claims has one claim for each server with resources.
type claims []claim

func (o *offers) claims() (all claims) {
	o.items.mu.Lock()
	defer o.items.mu.Unlock()
	for i := range o.cfg.Servers {
		s := &o.cfg.Servers[i]
		c := claim{alias: s.Alias, uris: map[string]bool{}}
		for _, item := range o.items.list(listKey{s.Alias, catalog.ListResources}).items {
			c.uris[uriKey(item.ID)] = true
		}
		for _, item := range o.items.list(listKey{s.Alias, catalog.ListTemplates}).items {
			c.templates = append(c.templates, readTemplate(item.ID))
		}
		all = append(all, c)
	}
	return all
}

// uriKey normalizes a URI, because clients may rewrite it: the Python SDK escapes blanks and writes
// hosts in lower case.
func uriKey(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	if u.Host = strings.ToLower(u.Host); u.Host != "" && u.Path == "" {
		u.Path = "/"
	}
	return u.String()
}

// readTemplate splits a template of RFC 6570.
func readTemplate(text string) template {
	t := template{text: text}
	rest := text
	for {
		before, expression, found := strings.Cut(rest, "{")
		t.parts = append(t.parts, before)
		if !found {
			return t
		}
		_, rest, _ = strings.Cut(expression, "}")
	}
}

// matches reports whether a template can expand to a URI. An expression may expand to any text.
func (t *template) matches(uri string) bool {
	rest, ok := strings.CutPrefix(uri, t.parts[0])
	last := len(t.parts) - 1
	if last == 0 || !ok {
		return ok && rest == ""
	}
	for _, part := range t.parts[1:last] {
		if _, rest, ok = strings.Cut(rest, part); !ok {
			return false
		}
	}
	return strings.HasSuffix(rest, t.parts[last])
}

// overlaps reports whether two templates can expand to the same URI.
func (t *template) overlaps(other *template) bool {
	a, b := t.parts[0], other.parts[0]
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}

// has reports whether a server may have a URI.
func (c *claim) has(uri string) bool {
	return c.uris[uriKey(uri)] ||
		slices.ContainsFunc(c.templates, func(t template) bool { return t.text == uri || t.matches(uri) })
}

// of returns the aliases of the servers that may have a URI.
func (all claims) of(uri string) (aliases []string) {
	for i := range all {
		if all[i].has(uri) {
			aliases = append(aliases, all[i].alias)
		}
	}
	return aliases
}

// overlap reports whether a template of this server can expand to a URI of another server.
func (all claims) overlap(alias string, t template) bool {
	return slices.ContainsFunc(all, func(c claim) bool {
		return c.alias != alias && slices.ContainsFunc(c.templates, func(other template) bool {
			return t.overlaps(&other)
		})
	})
}

// names returns the URIs, or their templates, by which clients refer to items.
func (all claims) names(items []owned) []string {
	names := make([]string, len(items))
	for i, one := range items {
		names[i] = one.ID
		t := readTemplate(one.ID)
		if isQualified(one.ID) || len(all.of(one.ID)) > 1 || len(t.parts) > 1 && all.overlap(one.alias, t) {
			names[i] = qualified(one.alias, one.ID)
		}
	}
	return names
}

// findResource finds the server that a client's URI refers to, and returns the URI as the server
// has it.
func (o *offers) findResource(ctx context.Context, uri string) (*Server, string, *wire.Error) {
	if s := o.owner(); s != nil {
		return s, uri, nil
	}
	if alias, own, is := unqualified(uri); is {
		if s := o.servers[alias]; s != nil && own != "" {
			return s, own, nil
		}
		return nil, "", wire.Fail(wire.CodeInvalidParams, "unknown resource: %s", uri)
	}

	both := []string{catalog.ListResources, catalog.ListTemplates}
	o.askItems(ctx, true, both...)
	of := o.meant(uri)
	if len(of) == 0 {
		o.askItems(ctx, false, both...) // it may be new
		of = o.meant(uri)
	}
	switch len(of) {
	case 1:
		return o.servers[of[0]], uri, nil
	case 0:
		return nil, "", wire.Fail(wire.CodeInvalidParams, "unknown resource: %s", uri)
	}
	for i, alias := range of {
		of[i] = qualified(alias, uri)
	}
	return nil, "", wire.Fail(wire.CodeInvalidParams,
		"several servers have this resource; name one: %s", strings.Join(of, " or "))
}

// meant returns the servers that a URI may belong to: those that list it, otherwise those whose
// tools name it as their page, otherwise the only server that has resources at all.
func (o *offers) meant(uri string) []string {
	if of := o.claims().of(uri); len(of) > 0 {
		return of
	}
	var pages, having []string
	if table := o.lister.tools.now(""); table != nil {
		for _, e := range table.Entries {
			if e.Verdict.Tool.Page() == uri && !slices.Contains(pages, e.Alias) {
				pages = append(pages, e.Alias)
			}
		}
	}
	if len(pages) > 0 {
		return pages
	}
	for i := range o.cfg.Servers {
		if s := &o.cfg.Servers[i]; jsonmsg.IsObject(jsonmsg.Get(s.has(), "resources")) {
			having = append(having, s.Alias)
		}
	}
	if len(having) == 1 {
		return having
	}
	return nil
}

// findPrompt finds the server that the client's name of a prompt refers to, and returns the
// server's own name of it.
func (o *offers) findPrompt(ctx context.Context, name string) (*Server, string, *wire.Error) {
	if s := o.owner(); s != nil {
		return s, name, nil
	}
	for _, onlyUnknown := range []bool{true, false} { // the second time for one that is new
		o.askItems(ctx, onlyUnknown, catalog.ListPrompts)
		all, _ := o.knownItems(catalog.ListPrompts)
		if i := slices.Index(o.promptNames(all), name); i >= 0 && name != "" {
			return o.servers[all[i].alias], all[i].ID, nil
		}
	}
	return nil, "", wire.Fail(wire.CodeInvalidParams, "unknown prompt: %s", name)
}

// itemsHad returns the capabilities of all servers whose items are offered. A server that is not
// connected yet is assumed to have everything.
func (o *offers) itemsHad() (all []json.RawMessage) {
	if s := o.owner(); s != nil {
		return []json.RawMessage{s.hasOrMay()}
	}
	for i := range o.cfg.Servers {
		all = append(all, o.cfg.Servers[i].hasOrMay())
	}
	return all
}

// mayHave is the assumed capabilities of a server that is not connected yet. Clients read the
// gateway's capabilities only once, perhaps before its servers have started.
const mayHave = `{"resources":{"subscribe":true},"prompts":{},"completions":{}}`

func (s *Server) hasOrMay() json.RawMessage {
	if says, ok := s.Upstream.(interface{ Peer() upstream.Peer }); ok && says.Peer().Version == "" {
		return json.RawMessage(mayHave)
	}
	return s.has()
}

// errItems logs that a list can't be read, and returns the error for the client.
func (o *offers) errItems(ctx context.Context, method string, err error) *wire.Error {
	o.cfg.Log.WarnContext(ctx, "a list can't be read", "method", method, "error", fmt.Sprint(err))
	return wire.Fail(wire.CodeInternal, "the list can't be read now")
}
