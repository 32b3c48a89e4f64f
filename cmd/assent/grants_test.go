package main

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/server/openapi"
)

// givesGrant approves a request with a standing approval in which texts may vary, at one entrance.
type givesGrant func(t *testing.T, h *testServer, r *approval.Request, bounds []approval.Bound)

func waysToGrant() map[string]givesGrant {
	var v *visitor // of the inbox
	return map[string]givesGrant{
		"HTTP": func(t *testing.T, h *testServer, r *approval.Request, bounds []approval.Bound) {
			_, err := h.client(t, "alice").Vote(t.Context(), r.ID, r.Version, openapi.VoteBody{
				Verdict: approval.Approve, Binding: r.Binding(), ShownFully: true,
				Grant: openapi.GrantOffer{MaxAge: "1h", MaxUses: 20, Session: true, Bounds: bounds},
			})
			must.Do(t, err)
		},
		"the command line": func(t *testing.T, h *testServer, r *approval.Request, bounds []approval.Bound) {
			args := []string{"approve", "--grant-age", "1h", "--grant-uses", "20", "--grant-session"}
			shown := h.prints(t, "alice", term.ExitOK, "show", r.ID)
			for _, b := range bounds {
				flag := b.Path + "=" + string(b.Kind)
				if b.Value != "" {
					flag += ":" + b.Value
				}
				holds(t, shown, "--grant '"+flag+"'")
				args = append(args, "--grant", flag)
			}
			told := h.prints(t, "alice", term.ExitOK, append(args, "--yes", "--binding", r.Binding(), r.ID)...)
			for _, e := range r.Examples(bounds) {
				holds(t, told, e.Path+" "+map[bool]string{true: "covered", false: "not covered"}[e.Covered]+": "+e.Text)
			}
		},
		"the inbox": func(t *testing.T, h *testServer, r *approval.Request, bounds []approval.Bound) {
			if v == nil {
				v = h.signedIn(t)
			}
			page := v.get("/requests/" + r.ID)
			form := url.Values{
				"request": {r.ID}, "version": {strconv.FormatInt(r.Version, 10)}, "binding": {r.Binding()},
				"seen": {seal(page)}, "verdict": {"approve"}, "grant": {"on"}, "hours": {"1"}, "uses": {"20"},
				"session": {"on"},
			}
			for _, b := range bounds {
				text, err := json.Marshal(b)
				must.Do(t, err)
				form.Add("bound", string(text))
				holds(t, page, strings.ReplaceAll(string(text), `"`, "&#34;"))
			}
			for _, e := range r.Examples(bounds) {
				holds(t, page, map[bool]string{true: "covered", false: "not covered"}[e.Covered]+": <code>")
			}
			v.submits("/requests/"+r.ID+"/vote", form)
		},
	}
}

// TestGrantsOfTextsAtEveryEntrance gives standing approvals of writing below docs, and of go test with other
// words, under the delivered files of coding agents, wherever people can give one.
func TestGrantsOfTextsAtEveryEntrance(t *testing.T) {
	t.Parallel()
	root := "../../examples/coding-agent/careful"
	for name, give := range waysToGrant() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			files := deskFiles()
			for _, file := range []string{"claude-code.agf.yaml", "decisions.yaml"} {
				text, err := os.ReadFile(filepath.Join(root, file))
				must.Do(t, err)
				files[file] = string(text)
			}
			writeFiles(t, dir, files)
			cfg, said, err := configured(t, dir)
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			cfg.Tenants[0].Agents = []string{dir}
			cfg.Dev, cfg.DevPerson = true, "alice"
			h := &testServer{dir: dir, token: map[string]string{}}
			h.tokens(t, cfg.Location())
			log := h.serves(t, cfg)
			defer func() {
				if err := h.stop(); err != nil {
					t.Errorf("%v\n%s", err, log.String())
				}
			}()
			h.testGrants(t, give)
		})
	}
}

func (h *testServer) testGrants(t *testing.T, give givesGrant) {
	t.Helper()
	opens := func(tool string, args map[string]string, session string) *openapi.Opened {
		text, err := json.Marshal(map[string]any{
			"kind": "tool",
			"tool": tool, "args": args, "session": session, "workspace": map[string]string{"root": "/w"},
		})
		must.Do(t, err)
		out, err := h.client(t, "runtime").Open(t.Context(), "claude-code-careful", text, client.OpenOptions{})
		must.Do(t, err)
		return out
	}
	write := func(path, content string) map[string]string {
		return map[string]string{"file_path": path, "content": content}
	}
	run := func(command, description string) map[string]string {
		return map[string]string{"command": command, "description": description}
	}

	r := opens("Write", write("/w/docs/a.md", "# A"), "s").Request
	give(t, h, r, []approval.Bound{
		{Path: "file_path", Kind: approval.Below, Value: "/w/docs"}, {Path: "content", Kind: approval.AnyText},
	})
	r = opens("Bash", run("go run ./cmd/x", "Starts it"), "s").Request
	give(t, h, r, []approval.Bound{{Path: "command", Kind: approval.Words, Value: "go run *"}})
	for _, tt := range []struct {
		tool, session string
		args          map[string]string
		covered       bool
	}{
		{"Write", "s", write("/w/docs/b.md", "# B"), true},
		{"Write", "s", write("/w/docs/deep/c.md", ""), true},
		{"Write", "s", write("/w/src/b.go", "# B"), false},
		{"Write", "s", write("/w/docs/../src/b.go", "# B"), false},
		{"Write", "s", write("/w/docs/.env", "A=1"), false},
		{"Write", "another", write("/w/docs/b.md", "# B"), false},
		{"Edit", "s", write("/w/docs/b.md", "# B"), false},
		{"Bash", "s", run("go run ./cmd/y", "Starts another"), true},
		{"Bash", "s", run("go run ./cmd/y; rm -r x", "Starts another"), false},
		{"Bash", "s", run("go run /tmp/y", "Starts another"), false},
		{"Bash", "s", map[string]string{"command": "go run ./cmd/y", "env": "PATH=/tmp"}, false},
	} {
		if out := opens(tt.tool, tt.args, tt.session); out.Granted() != tt.covered {
			t.Errorf("%s %v in session %s: %s", tt.tool, tt.args, tt.session, out.Outcome)
		}
	}

	grants, err := h.client(t, "alice").Grants(t.Context(), false)
	must.Do(t, err)
	for _, g := range grants {
		if !slices.ContainsFunc(g.Examples, func(e approval.Example) bool { return e.Covered }) ||
			!slices.ContainsFunc(g.Examples, func(e approval.Example) bool { return !e.Covered }) {
			t.Errorf("%s has no examples: %+v", g.Target, g.Examples)
		}
	}
	holds(t, h.prints(t, "alice", term.ExitOK, "grants"), "may be any path below /w/docs",
		"description is not compared")
}
