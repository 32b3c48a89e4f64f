package mcp_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/assenttest"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/wire"
)

// ended waits until people are no longer asked.
func (w *world) ended(t *testing.T, id string) *approval.Request {
	t.Helper()
	return testwait.Value(t, "the request ends", func() (*approval.Request, bool) {
		r := must.Get(w.Service.Request(t.Context(), assenttest.Tenant, id))(t)
		return r, !r.State.Open()
	})
}

// digest returns the digest of the tool a for a gateway without earlier pins.
func (r *row) digest(identity catalog.Server) string {
	r.t.Helper()
	cfg, kept := r.cfg, &mcptest.Pins{}
	cfg.Servers = slices.Clone(cfg.Servers)
	cfg.Servers[0].Identity, cfg.Pins = identity, kept
	g, err := mcp.New(cfg)
	if err == nil {
		err = g.Refresh(r.t.Context(), "files")
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return kept.Of("files", "a").Digest
}

func testM78(t *testing.T) {
	const base = `{"name":"a","description":"Reads.","inputSchema":{"type":"object"},` +
		`"annotations":{"readOnlyHint":true},"x":1}`
	s := mcptest.Script{Era: "legacy", Tools: []json.RawMessage{json.RawMessage(base)}}
	r := newRow(t, s, nil)
	identity := catalog.Server{Command: "files", Args: []string{"-v"}}
	want := r.digest(identity)
	with := func(tool string) string {
		s.Tools = []json.RawMessage{json.RawMessage(tool)}
		r.u.Rewrite(s)
		return r.digest(identity)
	}
	for _, change := range [][2]string{
		{"Reads.", "Reads all."},
		{`"type":"object"`, `"type":"object","required":["b"]`},
		{`"readOnlyHint":true`, `"readOnlyHint":false`},
		{`"x":1`, `"x":2`},
		{`"x":1`, `"x":1,"y":null`},
	} {
		if with(strings.Replace(base, change[0], change[1], 1)) == want {
			t.Errorf("%s makes no difference", change[1])
		}
	}

	if got := with(`{"x":1.0, "annotations" : { "readOnlyHint":true }, "inputSchema":{"type":"\u006fbject"},
		"description":"Reads.","name":"a"}`); got != want {
		t.Error("another spelling is another tool")
	}

	web, err := catalog.AtURL("https://files.example/mcp")
	elsewhere, err2 := catalog.AtURL("https://files.example/other")
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	seen := map[string]bool{want: true}
	for _, other := range []catalog.Server{
		{Command: "others", Args: []string{"-v"}},
		{Command: "files"},
		{Command: "files", Args: []string{"-v", ""}},
		{Command: "files", Args: []string{"-v"}, Binary: "sha256:" + strings.Repeat("0", 64)},
		web,
		elsewhere,
	} {
		got := r.digest(other)
		if seen[got] {
			t.Errorf("%s makes no difference", other)
		}
		seen[got] = true
	}

	s.Info, s.Tools = `{"name":"impostor","version":"9"}`, []json.RawMessage{json.RawMessage(base)}
	if got := newRow(t, s, nil).digest(identity); got != want {
		t.Error("what a server says of itself makes a difference")
	}
}

// changing returns a row whose server changes the definitions of write_file and read_file after a
// call of read_file, and announces that.
func changing(t *testing.T, how catalog.OnChange, kept *mcptest.Pins) *row {
	t.Helper()
	s := script("legacy")
	s.Does = map[string]string{"read_file": mcptest.Changed}
	return newRowOf(t, open, asksAboutWriting(), s, func(cfg *mcp.Config) {
		cfg.Servers[0].Judging.OnChange = how
		cfg.Pins = kept
		short(cfg)
	})
}

// change makes the server change the definitions of its first two tools.
func (r *row) change() {
	s := script("legacy")
	s.Does = map[string]string{"read_file": mcptest.Changed}
	for i, verb := range []string{"Reads", "Writes"} {
		s.Tools[i] = bytes.Replace(s.Tools[i], []byte(verb), []byte(verb+" anywhere"), 1)
	}

	r.u.Rewrite(s)
}

// approvedThenChanged approves a call whose tool changes before the call is made again. It returns
// when the request has ended.
func (r *row) approvedThenChanged(c *client) {
	r.t.Helper()
	c.expect(c.call("write_file", write), "Not run yet.")
	id := r.pending(r.t).ID
	r.left(r.t)
	r.Votes(id, "mara", approval.Approve, approval.VoteApproved, nil)
	r.change()
	c.expect(c.call("read_file", `{}`), "done")
	if got := r.ended(r.t, id); got.State == approval.Consumed {
		r.t.Error("the approval was used")
	}
}

const (
	toldChanged = "Not run. The rules or the tool's definition changed after it was asked."
	toldHeld    = "Not run. The tool's definition has changed since it was accepted; its operators must look at it."
)

func testM79(t *testing.T) {
	t.Run("hold", func(t *testing.T) {
		r := changing(t, catalog.HoldChange, &mcptest.Pins{})
		c := r.connect(t)
		r.approvedThenChanged(c)
		c.expect(c.call("write_file", write), toldHeld)
		c.expect(c.call("read_file", `{}`), toldHeld)
		c.no(c.say(request("1", "tools/list", "")), "_file")
		r.ran(1)
	})
	t.Run("ask", testM79Ask)
	t.Run("accept", func(t *testing.T) {
		kept := &mcptest.Pins{}
		r := changing(t, catalog.AcceptChange, kept)
		c := r.connect(t)
		r.approvedThenChanged(c)
		c.expect(c.call("write_file", write), toldChanged)
		c.expect(c.call("write_file", write), "Not run yet.")
		c.expect(c.call("read_file", `{}`), "done")
		if by := kept.Of("files", "read_file").By; by != catalog.ByOnChange {
			t.Errorf("it was accepted by %s", by)
		}
		r.ran(2)
	})
	t.Run("gone", func(t *testing.T) {
		r := newRow(t, script("legacy"), short)
		c := r.connect(t)
		c.expect(c.call("write_file", write), "Not run yet.")
		id := r.pending(t).ID
		s := script("legacy")
		s.Tools = s.Tools[:1]
		r.u.Rewrite(s)
		must.Do(t, r.gateway.Refresh(t.Context(), "files"))
		r.ended(t, id)
		c.code(wire.CodeInvalidParams, c.say(request("1", wire.MethodCall, `"name":"write_file"`)))
		r.ran(0)
	})
	t.Run("large", testM79Large)
	t.Run("silent", func(t *testing.T) {
		r := newRow(t, script("legacy"), func(cfg *mcp.Config) {
			cfg.Recheck = 1
			short(cfg)
		})
		c := r.connect(t)
		c.expect(c.call("write_file", write), "Not run yet.")
		id := r.pending(t).ID
		r.change()
		r.Votes(id, "mara", approval.Approve, approval.VoteApproved, nil)
		r.ended(t, id)
		c.expect(c.call("write_file", write), toldHeld)
		r.ran(0)
	})
}

// testM79Ask: people are asked about calls that the rules allow, they see both definitions, and the
// approved call runs once.
func testM79Ask(t *testing.T) {
	r := changing(t, catalog.AskChange, &mcptest.Pins{})
	c := r.connect(t)
	c.expect(c.call("read_file", `{}`), "done")
	r.approvedThenChanged(c)
	c.expect(c.call("write_file", write), toldChanged)
	for i, name := range []string{"write_file", "read_file"} {
		c.expect(c.call(name, write), "Not run yet.")
		id := r.pending(t).ID
		asked := must.Get(r.Service.Request(t.Context(), assenttest.Tenant, id))(t)
		shown := fmt.Sprint(asked.Context)
		for _, want := range []string{`description: was "`, `s.", is "`, `"description": "`, "anywhere"} {
			c.expect(shown, want)
		}
		r.ran(2 + i)
		r.Votes(id, "mara", approval.Approve, approval.VoteApproved, nil)
		testwait.Until(t, "it runs", func() bool { return c.call(name, write) == "done" })
	}

	asTask := request("8", wire.MethodCall, `"name":"read_file","arguments":{"a":1},"task":{}`)
	c.expect(c.say(asTask), `"status":"working"`)
	r.pending(t)
	c.expect(c.call("read_file", `{"a":2}`), "Not run yet.")
	r.ran(4)
}

// testM79Large: people are asked about a definition that is too long to be shown completely.
func testM79Large(t *testing.T) {
	s := script("legacy")
	r := newRowOf(t, open, asksAboutWriting(), s, func(cfg *mcp.Config) {
		cfg.Servers[0].Judging.OnChange = catalog.AskChange
		short(cfg)
	})
	c := r.connect(t)
	c.expect(c.call("read_file", `{}`), "done")
	const half = 12_000
	more := `,"` + strings.Repeat("ü", half) + `":"` + strings.Repeat("ö", half) + `"}`
	s.Tools[0] = append(s.Tools[0][:len(s.Tools[0])-1], more...)
	r.u.Rewrite(s)
	must.Do(t, r.gateway.Refresh(t.Context(), "files"))
	c.expect(c.call("read_file", `{"a":1}`), "Not run yet.")
	asked, err := r.Service.Request(t.Context(), assenttest.Tenant, r.pending(t).ID)
	if err != nil || !strings.Contains(fmt.Sprint(asked.Context), "ü\n…") {
		t.Errorf("people see %.200q, %v", fmt.Sprint(asked.Context), err)
	}
}

// findings collects the findings about tools in a gateway's log.
type findings struct {
	slog.Handler
	mu  sync.Mutex
	all []string
}

func (f *findings) keep(cfg *mcp.Config) {
	f.Handler = cfg.Log.Handler()
	cfg.Log = slog.New(f)
}

// Handle is slog.Handler's.
func (f *findings) Handle(ctx context.Context, r slog.Record) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "finding" {
			f.all = append(f.all, a.Value.String())
		}
		return true
	})
	return f.Handler.Handle(ctx, r)
}

// expect checks that there are findings with a prefix and a rule.
func (f *findings) expect(t *testing.T, rule string, places ...string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, place := range places {
		found := slices.ContainsFunc(f.all, func(text string) bool {
			return strings.HasPrefix(text, place) && strings.HasSuffix(text, "["+rule+"]")
		})
		if !found {
			t.Errorf("%s: no finding %s in %q", place, rule, f.all)
		}
	}
}

func testM80(t *testing.T) {
	bad := []string{`\u001b[31m`, `\u202e`, `\u200b`, `\udb40\udc41`, `\u0007`}
	all := strings.Join(bad, "")
	tool := `{"name":"a","title":"t` + all + `","description":"d` + all + `","inputSchema":{"type":"object","properties":` +
		`{"p":{"type":"string","description":"s` + all + `","oneOf":[{"const":"x","title":"e` + all + `"}]}}}}`
	s := mcptest.Script{Era: "legacy", Tools: []json.RawMessage{json.RawMessage(tool)}}
	for _, how := range []catalog.OnText{catalog.StripText, catalog.HoldText} {
		book := &findings{}
		r := newRowOf(t, open, asksAboutWriting(), s, func(cfg *mcp.Config) {
			cfg.Servers[0].Judging.OnText = how
			book.keep(cfg)
		})
		c := r.connect(t)
		list := c.say(request("1", "tools/list", ""))
		for _, hidden := range bad {
			var text string
			must.Do(t, json.Unmarshal([]byte(`"`+hidden+`"`), &text))
			c.no(list, text)
			c.no(list, hidden)
		}

		if shown := strings.Contains(list, `"description":"d"`); shown != (how == catalog.StripText) {
			t.Errorf("%s: the list is %s", how, list)
		}
		book.expect(t, catalog.RuleHidden, "files/a: title", "files/a: description",
			"files/a: inputSchema.properties.p.description", "files/a: inputSchema.properties.p.oneOf[0].title")
	}
}

// named returns tools with names.
func named(names ...string) (all []json.RawMessage) {
	for _, name := range names {
		all = append(all, json.RawMessage(`{"name":"`+name+`","inputSchema":{"type":"object"}}`))
	}

	return all
}

// alike returns two names that are equal after shortening.
func alike(limit int) (one, other string) {
	const digits = 6
	seen := map[string]string{}
	for i := 0; ; i++ {
		name := "files__" + strings.Repeat("x", limit) + fmt.Sprint(i)
		sum := sha256.Sum256([]byte(name))
		key := hex.EncodeToString(sum[:])[:digits]
		if seen[key] != "" {
			return strings.TrimPrefix(seen[key], "files__"), strings.TrimPrefix(name, "files__")
		}

		seen[key] = name
	}
}

func testM81(t *testing.T) {
	const limit = 32
	one, other := alike(limit)
	s := mcptest.Script{
		Era:   "legacy",
		Tools: named("read", "Copy", "copy", "p\u0430y", "pay", "file", "\uff46ile", one, other),
	}
	var more *mcptest.Server
	book := &findings{}
	r := newRowOf(t, open, asksAboutWriting(), s, func(cfg *mcp.Config) {
		cfg.Naming.Limit = limit
		more = another(t, cfg, "more", mcptest.Script{Era: "legacy", Tools: named("read")})
		book.keep(cfg)
	})
	c := r.connect(t)
	list := c.say(request("1", "tools/list", ""))
	if n := strings.Count(list, `"name":`); n != 2 {
		t.Errorf("%d tools are listed: %s", n, list)
	}
	c.expect(c.call("files__read", `{"a":1}`), "done")
	c.expect(c.call("more__read", `{"a":2}`), "done")
	r.sees(`{"name":"read","arguments":{"a":1}}`)
	if got := more.Calls(); len(got) != 1 || got[0] != `{"name":"read","arguments":{"a":2}}` {
		t.Errorf("the other server got %q", got)
	}

	for _, name := range []string{"Copy", "copy", "pay", "p\u0430y", "file"} {
		c.expect(c.call("files__"+name, `{}`), "so nobody knows which one is meant.")
	}

	c.code(wire.CodeInvalidParams, c.say(request("1", wire.MethodCall, `"name":"read"`)))
	book.expect(t, catalog.RuleCollision, "files/Copy: ", "files/copy: ", "files/pay: ", "files/p", "files/file: ",
		"files/"+one, "files/"+other)
	r.ran(1)
}

func testM82(t *testing.T) {
	names := []string{"assent__x", "Assent__Wait", "resources/read", "prompts/get"}
	for _, prefix := range []catalog.Prefix{catalog.PrefixAuto, catalog.PrefixAlways} {
		book := &findings{}
		s := mcptest.Script{Era: "legacy", Tools: named(append(names, "a")...)}
		r := newRowOf(t, open, asksAboutWriting(), s, func(cfg *mcp.Config) {
			cfg.Naming.Prefix = prefix
			book.keep(cfg)
		})
		c := r.connect(t)
		if n := strings.Count(c.say(request("1", "tools/list", "")), `"name":`); n != 1 {
			t.Errorf("%d tools are listed", n)
		}
		for _, name := range names {
			called := name
			if prefix == catalog.PrefixAlways {
				called = "files__" + name
			}
			c.expect(c.call(called, `{}`), "Not run. The gateway keeps this name for itself.")
			book.expect(t, catalog.RuleReserved, "files/"+name)
		}

		r.ran(0)
	}
}

// numbered returns n tools.
func numbered(n int) (all []json.RawMessage) {
	for i := range n {
		all = append(all, named(fmt.Sprintf("tool_%04d", i))...)
	}
	return all
}

func testM83(t *testing.T) {
	const each, rest, size = 833, 834, 1000
	s := mcptest.Script{Era: "legacy", Tools: numbered(each)}
	const last = "    - {alias: more, server_ref: more, description: More.}\n"
	agent := strings.Replace(open, last, last+strings.ReplaceAll(last, "more", "again"), 1)
	r := newRowOf(t, agent, asksAboutWriting(), s, func(cfg *mcp.Config) {
		another(t, cfg, "more", mcptest.Script{Era: "legacy", Tools: numbered(each)})
		another(t, cfg, "again", mcptest.Script{Era: "legacy", Tools: numbered(rest)})
	})
	c := r.connect(t)
	names, cursors := c.pages()
	if len(names) != 2*each+rest || len(cursors) != (2*each+rest-1)/size {
		t.Fatalf("%d tools on %d pages", len(names), len(cursors)+1)
	}
	var want []string
	for alias, n := range map[string]int{"again": rest, "files": each, "more": each} {
		for i := range n {
			want = append(want, fmt.Sprintf("%s__tool_%04d", alias, i))
		}
	}

	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("the list begins %q", names[:3])
	}
	if again, _ := c.pages(); !slices.Equal(again, want) {
		t.Error("the order is not stable")
	}

	s.Tools = numbered(each + 1)
	r.u.Rewrite(s)
	must.Do(t, r.gateway.Refresh(t.Context(), "files"))
	for _, cursor := range append(cursors, "", "x", cursors[0][1:]) {
		c.code(wire.CodeInvalidParams, c.say(request("1", "tools/list", `"cursor":"`+cursor+`"`)))
	}

	if names, _ := c.pages(); len(names) != 2*each+rest+1 {
		t.Errorf("%d tools are listed", len(names))
	}
}

// pages returns the names of all listed tools, and the cursors between the pages.
func (c *client) pages() (names, cursors []string) {
	c.t.Helper()
	params := ""
	for {
		var page struct {
			Tools      []struct{ Name string }
			NextCursor string
		}
		must.Do(c.t, json.Unmarshal(c.result(c.say(request("1", "tools/list", params))), &page))
		for _, tool := range page.Tools {
			names = append(names, tool.Name)
		}
		if page.NextCursor == "" {
			return names, cursors
		}
		cursors = append(cursors, page.NextCursor)
		params = `"cursor":"` + page.NextCursor + `"`
	}
}
