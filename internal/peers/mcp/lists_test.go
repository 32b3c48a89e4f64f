//go:build peers

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/catalog"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/server"
	"github.com/assent-dev/assent/mcp/upstream"
	"github.com/assent-dev/assent/mcp/wire"
)

// lister is a server that has only lists.
type lister struct {
	lists   map[string][]json.RawMessage // by method
	changed chan string
	fails   error
}

func (l *lister) Changed() <-chan string { return l.changed }

func (l *lister) Do(context.Context, upstream.Request) (upstream.Answer, error) {
	return upstream.Answer{}, upstream.ErrNotSent
}

func (l *lister) List(_ context.Context, method string) ([]json.RawMessage, error) {
	return l.lists[method], l.fails
}

func (l *lister) Peer() upstream.Peer {
	return upstream.Peer{Capabilities: json.RawMessage(`{"tools":{},"resources":{},"prompts":{}}`)}
}

// The members of definitions by the method of their list. Each value is sound at some place, and
// wrong at most others.
func listMembers() map[string][]string {
	const common = "title description icons _meta annotations size mimeType execution"
	return map[string][]string{
		"tools/list":               strings.Fields("name inputSchema outputSchema " + common),
		"prompts/list":             strings.Fields("name arguments " + common),
		"resources/list":           strings.Fields("name uri " + common),
		"resources/templates/list": strings.Fields("name uriTemplate " + common),
	}
}

// badTools returns the seven kinds of definitions for which clients refused whole lists.
func badTools() []string {
	return []string{
		`{"name":"b","inputSchema":{"anyOf":[{"type":"object"}]}}`,
		`{"name":"b","inputSchema":{"type":"string"}}`,
		`{"name":"b","inputSchema":{}}`,
		`{"name":"b","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}`,
		`{"name":"b","inputSchema":{"type":"object"},"title":null}`,
		`{"name":"b","inputSchema":{"type":"object"},"annotations":null}`,
		`{"name":"b","inputSchema":{"type":"object","properties":{"a":{}},"required":{"a":true}}}`,
		`{"name":"b","inputSchema":{"type":"object","properties":{"a":{},"required":["a"]}}}`,
		`{"name":"b"}`,
	}
}

// member returns values of a member, most of them sound.
func member(name string) *rapid.Generator[string] {
	sound := map[string][]string{
		"name":         {`"a"`, `"b"`, `"c d"`, `""`},
		"inputSchema":  {`{"type":"object"}`, `{"type":"object","properties":{"a":{}},"required":["a"]}`},
		"outputSchema": {`{"type":"object"}`, `{"type":"object","properties":{},"anyOf":[{}]}`},
		"arguments":    {`[]`, `[{"name":"x","required":true}]`, `[{"name":"x","description":"y","title":"z"}]`},
		"uri":          {`"file:///a"`, `"test:b"`, `"c"`},
		"uriTemplate":  {`"file:///{a}"`, `"{"`},
		"icons":        {`[]`, `[{"src":"https://a.example/i","sizes":["1x1"],"mimeType":"image/png","theme":"dark"}]`},
		"_meta":        {`{}`, `{"a":null}`},
		"annotations":  {`{}`, `{"readOnlyHint":true,"title":"x"}`, `{"priority":1,"audience":["user"]}`},
		"size":         {`7`, `0`},
		"execution":    {`{}`, `{"taskSupport":"optional"}`},
	}[name]
	if sound == nil {
		sound = []string{`"text"`, `""`, `"\u202e"`}
	}
	mostly := rapid.SampledFrom(sound)
	return rapid.OneOf(mostly, mostly, mostly, rapid.SampledFrom([]string{
		"null", "true", "7", "7.0", "-1.5", "1e30", "1e-7", `"\u0000"`, `{"":[null]}`, `"x"`, "[]", "{}", "[7]", "[null]",
		"[{}]", `{"type":"object","properties":[]}`,
		`{"type":["object"]}`, `{"type":"object","required":"a"}`, `{"type":"object","properties":{"a":true}}`,
		`{"type":"object","properties":{"a":null}}`, `{"title":null}`, `{"readOnlyHint":null}`, `{"taskSupport":"x"}`,
		`[{"src":7}]`, `[{"src":"a","theme":null}]`, `[{"name":7}]`, `[{"name":"a","required":null}]`,
		`{"priority":"1"}`,
		`{"audience":["x"]}`, `{"priority":7}`, `{"lastModified":7}`,
	}))
}

// definition returns a definition of a list, which clients may refuse.
func definition(method string) *rapid.Generator[json.RawMessage] {
	return rapid.Custom(func(t *rapid.T) json.RawMessage {
		if method == "tools/list" && rapid.IntRange(0, 5).Draw(t, "kind") == 0 {
			return json.RawMessage(rapid.SampledFrom(badTools()).Draw(t, "bad"))
		}
		var members []string
		for i, name := range listMembers()[method] {
			if rapid.IntRange(0, 9).Draw(t, name) < 3 || i < 2 && rapid.IntRange(0, 9).Draw(t, name) > 0 {
				members = append(members, fmt.Sprintf("%q:%s", name, member(name).Draw(t, name)))
			}
		}
		return json.RawMessage("{" + strings.Join(members, ",") + "}")
	})
}

// sentList is a list in the file that the clients' schemas read.
type sentList struct {
	Version string          `json:"version"`
	Method  string          `json:"method"`
	Raw     bool            `json:"raw"` // as the server sends it, so that some are refused
	Result  json.RawMessage `json:"result"`
}

// TestOfficialClientsTakeEachList: whatever definitions a server has, the schemas of the official
// clients accept the lists of the gateway, of each version of the protocol. They refuse lists as
// drawn.
func TestOfficialClientsTakeEachList(t *testing.T) {
	dir := installed(t)
	up := &lister{lists: map[string][]json.RawMessage{}, changed: make(chan string)}
	announced := make(chan string)
	w := newWorld(t, mcptest.ClerkOf("    - {alias: files}\n"), up, func(cfg *mcp.Config) {
		cfg.Naming.Page = 1000
		cfg.Servers[0].Judging = catalog.Settings{OnChange: catalog.AcceptChange}
		cfg.Servers[0].Identity = catalog.Server{Command: "files"}
		cfg.Resources = "files"
		cfg.WaitTool = true
		cfg.Servers = append(cfg.Servers, mcp.Server{
			Alias:    "closed",
			Upstream: &lister{fails: upstream.ErrSignIn},
			SignIn:   "assent mcp sign-in closed",
		})
		cfg.Announce = func(_ context.Context, method string) {
			if method != server.ToolsChanged { // which comes with other changes, too
				announced <- method
			}
		}
	})
	file := must.Get(os.Create(filepath.Join(t.TempDir(), "lists.jsonl")))(t)
	out, offered := json.NewEncoder(file), 0
	versions := []string{wire.V20241105, wire.V20250326, wire.V20250618, wire.V20251125, wire.V20260728}
	rapid.Check(t, func(rt *rapid.T) {
		for method := range listMembers() {
			up.lists[method] = rapid.SliceOfN(definition(method), 1, 4).Draw(rt, method)
		}
		if err := w.gateway.Refresh(t.Context(), "files"); err != nil {
			rt.Fatal(err)
		}
		for _, method := range []string{"prompts/list", "resources/list"} {
			up.changed <- method
			<-announced
		}
		for method, all := range up.lists {
			name, _, _ := strings.Cut(strings.Replace(method, "resources/templates", "resourceTemplates", 1), "/")
			raw := must.Get(json.Marshal(map[string]any{name: all}))(t)
			must.Do(t, out.Encode(sentList{wire.V20251125, method, true, raw}))
			for _, version := range versions {
				result, bad := w.gateway.Handle(t.Context(), &server.Request{
					Caller: "short", Method: method, Version: version, Modern: wire.IsModern(version),
				}, nil)
				if bad != nil {
					rt.Fatalf("%s: %v", method, bad)
				}
				offered += strings.Count(string(result), `"name"`)
				must.Do(t, out.Encode(sentList{version, method, false, result}))
			}
		}
	})
	must.Do(t, file.Close())
	text := string(must.Get(os.ReadFile(file.Name()))(t))
	if !strings.Contains(text, "assent__sign_in_closed") || !strings.Contains(text, `"files__a"`) || offered == 0 {
		t.Errorf("%d definitions are offered", offered)
	}

	for _, command := range [][]string{
		{"node", filepath.Join(dir, "lists.mjs")},
		{filepath.Join(os.Getenv("ASSENT_MCP_PYTHON"), "python"), filepath.Join(dir, "lists.py")},
	} {
		said, err := exec.Command(command[0], append(command[1:], file.Name())...).CombinedOutput()
		if err != nil || !strings.Contains(string(said), "refused as drawn: ") ||
			strings.Contains(string(said), "refused as drawn: 0") {
			t.Errorf("%s: %v\n%s", command[1], err, said)
		}
	}
}
