package mcp_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/assenttest"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
)

// ruled returns a policy of one rule.
func ruled(rule string) string {
	return "schema_version: \"1.0.0\"\npolicy_ref: acme.one\nrules:\n  - {id: one, " + rule + "}\n"
}

func asksAboutWriting() string {
	return ruled(`match: {kinds: [mcp_tool], targets: [write_file]}, approval: true`)
}

// open is an agent's file that allows all tools of a server.
const open = `schema_version: "1.0.0"
metadata: {id: clerk, name: Clerk, version: "1.0.0", description: Keeps files.}
interface: {input: {type: object}, output: {type: object}}
action_space:
  mcp_servers:
    - {alias: files, server_ref: files, description: Files.}
    - {alias: more, server_ref: more, description: More.}
constraints:
  governance_policies:
    - policy_ref: acme.one
execution_policy: {id: agf.react, config: {instructions: Keep files., model: any}}
`

func testM38(t *testing.T) {
	book := &ledger{}
	r := newRowOf(t, open, ruled(`match: {kinds: [mcp_tool], targets: [write_file]}, deny: Not on Sundays.`),
		script("legacy"), book.keep)
	c := r.connect(t)
	answer := c.say(request("1", wire.MethodCall, `"name":"write_file"`))
	c.expect(answer, "Not run.")
	c.expect(answer, "Not on Sundays.")
	c.expect(answer, `"isError":true`)
	r.ran(0)
	testwait.Until(t, "the ledger has it", func() bool { return book.count("mcp_call_denied") == 1 })
}

func testM39(t *testing.T) {
	r := newRow(t, script("legacy"), nil)
	c := r.connect(t)
	list := c.say(request("1", "tools/list", ""))
	c.expect(list, `"read_file"`)
	c.expect(list, `"write_file"`)
	c.no(list, "format_disk")
	answer := c.say(request("1", wire.MethodCall, `"name":"format_disk"`))
	c.expect(answer, "Not run.")
	c.expect(answer, `"isError":true`)
	c.code(wire.CodeInvalidParams, c.say(request("1", wire.MethodCall, `"name":"nothing"`)))
	r.ran(0)
}

func testM40(t *testing.T) {
	policy := ruled(`match: {kinds: [mcp_tool], servers: [files], targets: [write_file]}, deny: No.`)
	plain := newRowOf(t, open, policy, script("legacy"), nil)
	c := plain.connect(t)
	c.expect(c.call("write_file", `{}`), "Not run.")
	c.expect(c.call("read_file", `{}`), "done")

	s := script("legacy")
	s.Tools[0] = []byte(strings.Replace(string(s.Tools[0]), "read_file", strings.Repeat("long_", 20), 1))
	two := newRowOf(t, open, policy, s, func(cfg *mcp.Config) {
		cfg.Naming = catalog.Naming{Prefix: catalog.PrefixAlways, Limit: 32}
		another(t, cfg, "more", script("legacy"))
	})
	c = two.connect(t)
	c.expect(c.call("files__write_file", `{}`), "Not run.")
	c.expect(c.call("more__write_file", `{}`), "done")
	two.ran(0)
	cut := listed(c, "files__long_")
	if len(cut) > 32 {
		t.Errorf("the name %s is too long", cut)
	}
	c.expect(c.call(cut, `{}`), "done")
	two.sees(`{"name":"` + strings.Repeat("long_", 20) + `","arguments":{}}`)
}

// listed returns the one listed tool whose name begins like this.
func listed(c *client, prefix string) string {
	c.t.Helper()
	_, rest, found := strings.Cut(c.say(request("1", "tools/list", "")), `"name":"`+prefix)
	if !found {
		c.t.Fatalf("no tool is listed as %s", prefix)
	}
	rest, _, _ = strings.Cut(rest, `"`)
	return prefix + rest
}

func testM41(t *testing.T) {
	hinted := script("legacy")
	hinted.Tools[1] = []byte(`{"name":"write_file","inputSchema":{"type":"object"},` +
		`"annotations":{"readOnlyHint":true}}`)
	r := newRowOf(t, open, asksAboutWriting(), hinted, short)
	c := r.connect(t)
	c.expect(c.call("write_file", `{}`), "Not run yet.")
	r.ran(0)

	destructive := ruled(`match: {kinds: [mcp_tool], annotations: {destructiveHint: true}}, approval: true`)
	plain := newRowOf(t, open, destructive, hinted, short)
	c = plain.connect(t)
	c.expect(c.call("read_file", `{}`), "Not run yet.")
	plain.ran(0)
}

func testM42(t *testing.T) {
	r := newRow(t, script("legacy"), long)
	c := r.connect(t)
	c.sendCall(1, "write_file", odd)
	r.approve()
	c.expect(c.text(c.hear()), "done")
	r.sees(`{"name":"write_file","arguments":` + odd + `}`)

	c.sendCall(2, "write_file", write)
	must.Do(t, r.Edit(r.pending(t).ID, "mara", `{"path":"/b"}`))
	answer := c.hear()
	c.expect(answer, `[{"text":"A person changed this call before it ran. It ran with: {\"path\":\"/b\"}","type":"text"},`)
	c.expect(answer, "done")
	r.sees(`{"name":"write_file","arguments":`+odd+`}`, `{"name":"write_file","arguments":{"path":"/b"}}`)
}

func testM43(t *testing.T) {
	r := newRow(t, script("legacy"), long)
	const many = 50
	told := r.atOnce(t, many, r.approve)
	if told["done"] != 1 || told["Not run. Not again: the approval has been used already."] != many-1 {
		t.Errorf("told %v", told)
	}
	r.ran(1)
}

func testM44(t *testing.T) {
	read := request("1", wire.MethodRead, `"uri":"file:///a"`)
	prompt := request("2", wire.MethodPrompt, `"name":"p","arguments":{"a":"b"}`)
	other := ruled(`match: {kinds: [mcp_tool], targets: [other]}, approval: true`)
	free := newRowOf(t, open, other, script("legacy"), short)
	c := free.connect(t)
	c.expect(c.say(read), `"contents":[]`)
	c.expect(c.say(prompt), `"messages":[]`)
	both := ruled(`match: {kinds: [mcp_tool], targets: [resources/read, prompts/get]}, approval: true`)
	ruledRow := newRowOf(t, open, both, script("legacy"), long)
	c = ruledRow.connect(t)
	for _, text := range []string{read, prompt} {
		c.send(text)
		r := ruledRow.pending(t)
		if got := ruledRow.u.Params(wire.MethodRead); len(got) != 0 && text == read {
			t.Errorf("the server got %q", got)
		}
		ruledRow.Votes(r.ID, "mara", approval.Approve, approval.VoteApproved, nil)
		c.expect(c.hear(), `"messages":[]`)
	}

	if got := ruledRow.u.Params(wire.MethodPrompt); len(got) != 1 || got[0] != `{"name":"p","arguments":{"a":"b"}}` {
		t.Errorf("the server got %q", got)
	}
}

func testM45(t *testing.T) {
	r := newRow(t, script("legacy"), short)
	c := r.connect(t)
	c.expect(c.call("write_file", write), "Not run yet.")
	r.approve()
	must.Do(t, r.Service.Freeze(t.Context(), assenttest.Tenant, "clerk", "ann", "an incident"))
	c.expect(c.call("write_file", write), "Not run")
	r.settle(t)
	r.ran(0)
}

func testM46(t *testing.T) {
	r := newRowOf(t, open, asksAboutWriting(), script("legacy"), short)
	c := r.connect(t)
	c.expect(c.call("write_file", write), "Not run yet.")
	first := r.pending(t)
	r.Votes(first.ID, "mara", approval.Approve, approval.VoteApproved, nil)
	r.Rewrite("policies/none.policy.yaml", "approval: true", "approval: true, require: {within: 2h}")
	c.expect(c.call("write_file", write), "Not run")
	r.ran(0)

	r.Rewrite("policies/none.policy.yaml", "approval: true", "deny: No.")
	c.expect(c.call("write_file", write), "Not run")
	r.settle(t)
	r.ran(0)
}

// away simulates an unreachable service of the people.
type away struct{ hold.People }

var errAway = errors.New("nobody is there")

func (away) As(approval.Asker) hold.Requests { return awayRequests{} }

type awayRequests struct{ hold.Requests }

func (awayRequests) Open(context.Context, string, hold.Verdict) (hold.Held, error) {
	return hold.Held{}, errAway
}

func testM47(t *testing.T) {
	r := newRow(t, script("legacy"), func(cfg *mcp.Config) {
		cfg.People = away{cfg.People}
		short(cfg)
	})
	c := r.connect(t)
	c.expect(c.call("read_file", `{}`), "done")
	c.expect(c.call("write_file", write), "Not run")
	r.ran(1)
}

func testM48(t *testing.T) {
	r := newRow(t, script("legacy"), func(cfg *mcp.Config) {
		long(cfg)
		cfg.Servers[0].Upstream = &refusing{Upstream: cfg.Servers[0].Upstream, times: 1}
	})
	c := r.connect(t)
	c.sendCall(1, "write_file", write)
	r.approve()
	c.expect(c.text(c.hear()), "done") // by the same approval
	r.ran(1)

	s := script("legacy")
	s.Does = map[string]string{"write_file": mcptest.Crash, "read_file": mcptest.Crash}
	drops := newRow(t, s, long)
	c = drops.connect(t)
	c.expect(c.call("read_file", `{}`), "This call may have run")
	testwait.Until(t, "the server is back", func() bool { return drops.u.Starts() == 2 })
	c.sendCall(2, "write_file", write)
	drops.approve()
	c.expect(c.text(c.hear()), "This call may have run")
	drops.settle(t)
	drops.ran(2)

	gone := newRow(t, script("legacy"), func(cfg *mcp.Config) {
		cfg.Servers[0].Upstream = &refusing{Upstream: cfg.Servers[0].Upstream, times: 1}
	})
	c = gone.connect(t)
	c.expect(c.call("read_file", `{}`), "Not run. The server files can't be reached.")
	gone.ran(0)
}

// refusing is a server that refuses the first connections.
type refusing struct {
	mcp.Upstream
	times int
}

func (u *refusing) Do(ctx context.Context, r upstream.Request) (upstream.Answer, error) {
	if r.Method == wire.MethodCall && u.times > 0 {
		u.times--
		return upstream.Answer{}, upstream.ErrNotSent
	}
	return u.Upstream.Do(ctx, r)
}
