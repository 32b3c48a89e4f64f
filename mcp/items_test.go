package mcp_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
)

// havingItems returns a server with resources and prompts in addition to its tools.
func havingItems(resources, templates, prompts string) mcptest.Script {
	s := script("legacy")
	s.News = true
	s.Lists = map[string]string{
		"resources/list":           `{"resources":[` + resources + `]}`,
		"resources/templates/list": `{"resourceTemplates":[` + templates + `]}`,
		"prompts/list":             `{"prompts":[` + prompts + `]}`,
		"resources/read":           `{"contents":[PARAMS]}`,
		"prompts/get":              `{"messages":[],"description":"got","_meta":PARAMS}`,
		"completion/complete":      `{"completion":{"values":[]},"_meta":PARAMS}`,
	}
	return s
}

// openFor returns an agent that may do everything with servers.
func openFor(aliases ...string) string {
	var all strings.Builder
	for _, alias := range aliases {
		all.WriteString("    - {alias: " + alias + ", server_ref: x, description: All of it.}\n")
	}
	return mcptest.ClerkOf(all.String())
}

func TestItemsOfSeveralServersAreOffered(t *testing.T) {
	t.Parallel()
	var other *mcptest.Server
	r := newRowOf(t, openFor("files", "notes"), policyFile, havingItems(
		`{"uri":"mem:///a b","name":"a"},{"uri":"mem:///both","name":"b"},{"uri":"assent://notes/mem:///n","name":"c"},`+
			`{"uri":"no-scheme","name":"d"},{"uri":"mem:///null","name":"e","title":null}`,
		`{"uriTemplate":"logs:///{day}/of","name":"logs"},{"uriTemplate":"mem:///dir/{+x}","name":"dir"}`,
		`{"name":"sum"},{"name":"bad","arguments":[{}]}`,
	), func(cfg *mcp.Config) {
		other = another(t, cfg, "notes", havingItems(
			`{"uri":"mem:///n","name":"n"},{"uri":"mem:///both","name":"b"}`,
			`{"uriTemplate":"mem:///{+x}/end","name":"all"}`, `{"name":"sum"}`))
	})
	c := r.connect(t)
	for _, test := range []struct{ method, params, want string }{
		{"prompts/list", ``, `"prompts":[{"name":"files__sum"},{"name":"notes__sum"}]`},
		{"resources/list", ``, `"resources":[{"name":"a","uri":"mem:///a b"},` +
			`{"name":"b","uri":"assent://files/mem:///both"},` +
			`{"name":"c","uri":"assent://files/assent://notes/mem:///n"},` +
			`{"name":"n","uri":"mem:///n"},{"name":"b","uri":"assent://notes/mem:///both"}]`},
		{"resources/templates/list", ``, `"resourceTemplates":[{"name":"logs","uriTemplate":"logs:///{day}/of"},` +
			`{"name":"dir","uriTemplate":"assent://files/mem:///dir/{+x}"},` +
			`{"name":"all","uriTemplate":"assent://notes/mem:///{+x}/end"}]`},
		{"resources/read", `"uri":"mem:///a%20b"`, `{"contents":[{"uri":"mem:///a%20b"`},
		{"resources/read", `"uri":"logs:///1/of"`, `{"contents":[{"uri":"logs:///1/of"`},
		{"resources/read", `"uri":"mem:///both"`, `name one: assent://files/mem:///both or assent://notes/mem:///both`},
		{"resources/read", `"uri":"mem:///dir/x/end"`, `name one: assent://files/`},
		{"resources/read", `"uri":"assent://nosuch/mem:///n"`, `unknown resource: assent://nosuch/mem:///n`},
		{"resources/read", `"uri":"what:///ever"`, `unknown resource: what:///ever`},
		{"resources/read", `"uri":"assent://notes/mem:///both"`, `{"contents":[{"uri":"assent://notes/mem:///both"`},
		{"prompts/get", `"name":"notes__sum","arguments":{"a":"1"}`, `"_meta":{"arguments":{"a":"1"},"name":"sum"}`},
		{"prompts/get", `"name":"sum"`, `unknown prompt: sum`},
		{"completion/complete", `"ref":{"type":"ref/prompt","name":"notes__sum"},"argument":{"name":"a","value":""}`,
			`"_meta":{"argument":{"name":"a","value":""},"ref":{"type":"ref/prompt","name":"sum"}}`},
		{"completion/complete", `"ref":{"type":"ref/resource","uri":"assent://notes/mem:///{+x}/end"}`,
			`"_meta":{"ref":{"type":"ref/resource","uri":"mem:///{+x}/end"}}`},
	} {
		if got := c.say(request("2", test.method, test.params)); !strings.Contains(got, test.want) {
			t.Errorf("%s %s: got %s, expected %s", test.method, test.params, got, test.want)
		}
	}
	if got := strings.Join(other.Params(wire.MethodRead), " "); got != `{"uri":"mem:///both"}` {
		t.Errorf("notes was asked to read %s", got)
	}

	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.expect(c.say(request("3", "resources/subscribe", `"uri":"assent://notes/mem:///both"`)), `"result":{}`)
	testwait.Until(t, "notes has a subscriber", func() bool {
		return strings.Join(other.Params("resources/subscribe"), " ") == `{"uri":"mem:///both"}`
	})
}

func TestFaultyServerHidesAndBlamesNoOther(t *testing.T) {
	t.Parallel()
	late := havingItems("", "", `{"name":"late"}`)
	mute := late
	mute.Lists = map[string]string{"prompts/list": "", "resources/list": "", "resources/templates/list": ""}
	var u *mcptest.Server
	r := newRowOf(t, openFor("files", "mute", "gone"), policyFile, havingItems(
		`{"uri":"mem:///a","name":"a"}`, "", `{"name":"sum"}`,
	), func(cfg *mcp.Config) {
		cfg.ListPatience, cfg.ListWithin, cfg.Recheck = 50*time.Millisecond, 3*time.Second, time.Millisecond
		u = another(t, cfg, "mute", mute)
		cfg.Servers = append(cfg.Servers, mcp.Server{
			Alias: "gone",
			Upstream: startedOf(t, upstream.Config{Alias: "gone",
				Command: []string{"sh", "-c", "echo no key >&2; exit 1"}}),
		})
		cfg.Servers[0].Exclude = []string{"write_file"}
		cfg.Servers[1].Include = []string{"write_file"}
	})
	c := r.connect(t)
	for name, want := range map[string]string{
		"gone__read": "Not run. The server gone can't be reached. The last words of its program: no key",
		"files__x":   "unknown tool: files__x", "gone_read": "unknown tool: gone_read",
		"mute__x":           "unknown tool: mute__x",
		"files__write_file": "Not run. The gateway's configuration leaves out this tool.",
		"mute__read_file":   "Not run. The gateway's configuration leaves out this tool.",
	} {
		testwait.Until(t, name+": "+want, func() bool { return strings.Contains(c.call(name, `{}`), want) })
	}
	sees := func(what, method, params, want string) {
		testwait.Until(t, what, func() bool {
			return strings.Contains(c.say(request("2", method, params)), want)
		})
	}
	sees("the prompts of files are listed", "prompts/list", "", `"prompts":[{"name":"files__sum"}]`)
	sees("a resource of files is read", wire.MethodRead, `"uri":"mem:///a"`, `"contents"`)
	u.Rewrite(late)
	sees("the other server's prompts are listed", "prompts/list", "", `"mute__late"`)
}

func TestListOfASlowServerIsAnnounced(t *testing.T) {
	t.Parallel()
	slow := &slowLists{files: files{changed: make(chan string)}, answer: make(chan struct{})}
	told := make(chan string, 100)
	r := newRowOf(t, openFor("files", "slow"), policyFile, havingItems("", "", `{"name":"sum"}`),
		func(cfg *mcp.Config) {
			cfg.ListPatience = time.Millisecond
			cfg.Announce = func(_ context.Context, method string) { told <- method }
			cfg.Servers = append(cfg.Servers, mcp.Server{Alias: "slow", Upstream: slow})
		})
	c := r.connect(t)
	c.no(c.say(request("2", "prompts/list", "")), "slow__")
	close(slow.answer)
	for method := range told {
		if method == server.PromptsChanged {
			break
		}
	}
	testwait.Until(t, "the slow server's prompt is listed", func() bool {
		return strings.Contains(c.say(request("3", "prompts/list", "")), `"slow__p"`)
	})
}

// slowLists is a server that answers requests for lists only when it is allowed to.
type slowLists struct {
	files
	answer chan struct{}
}

func (s *slowLists) List(_ context.Context, method string) ([]json.RawMessage, error) {
	if method != "prompts/list" {
		return nil, nil
	}
	<-s.answer
	return []json.RawMessage{json.RawMessage(`{"name":"p"}`)}, nil
}
