package engine_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/assent-dev/assent/clients/playground/engine"
)

const agent = `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Trades}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Trade., model: any}}
action_space: {local_tools: [{alias: quote}, {alias: trade, approval: true}]}
`

// request writes a request of a kind about one agent.
func request(t *testing.T, kind string, more map[string]any) []byte {
	t.Helper()
	r := map[string]any{"kind": kind, "files": map[string]string{"desk.agf.yaml": agent}}
	for name, v := range more {
		r[name] = v
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}

	return text
}

// TestRun answers each kind of request in JSON.
func TestRun(t *testing.T) {
	t.Parallel()
	loose := map[string]string{"desk.agf.yaml": strings.Replace(agent, ", approval: true", "", 1)}
	for _, tt := range []struct {
		kind string
		more map[string]any
		want string
	}{
		{"lint", nil, `{"exit":0,"answer":{"findings":[],` + "\n" + `"files":1,`},
		{
			"decide", map[string]any{"agent": "desk.agf.yaml", "calls": "{\"kind\":\"tool\",\"tool\":\"trade\"}\n\n1"},
			`{"exit":2,"answer":[{"outcome":"ask","message":`,
		},
		{"decide", map[string]any{"agent": "desk.agf.yaml"}, `{"exit":0,"answer":[]}`},
		{"diff", map[string]any{"new": loose}, `{"exit":1,"answer":{"verdict":"loosens","changes":[{`},
		{
			"ask",
			map[string]any{"agent": "desk.agf.yaml", "query": map[string]string{"tool": "trade", "outcome": "allow"}},
			`{"exit":0,"answer":{"found":"no"}}`,
		},
		{
			"lint", map[string]any{"policies": []string{"none"}},
			`{"exit":2,"answer":{"findings":[` + "\n" + `{"rule":"policy-none-found"`,
		},
		{
			"decide", map[string]any{"agent": "gone.agf.yaml"},
			`{"exit":2,"answer":[],"error":"the agent: \"gone.agf.yaml\" is none of the files: file does not exist"}`,
		},
		{
			"decide",
			map[string]any{"agent": "a.agf.yaml", "files": map[string]string{"a.agf.yaml": "metadata: ["}},
			`{"exit":2,"answer":[],"error":"the agent a.agf.yaml can't be used","findings":{"findings":[` + "\n" + `{"rule":"yaml-syntax"`,
		},
	} {
		got := string(engine.Run(request(t, tt.kind, tt.more)))
		if !strings.HasPrefix(got, tt.want) || !json.Valid([]byte(got)) {
			t.Errorf("%s %v:\n%s\nexpected to begin with\n%s", tt.kind, tt.more, got, tt.want)
		}
	}
}

// TestRequestsAreReadStrictly: an unknown, repeated or malformed member could change the
// answer, so it is an error with its position.
func TestRequestsAreReadStrictly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                                "the request can't be used",
		`[]`:                              "the request can't be used",
		`{"kind":"lint"} x`:               "the request can't be used",
		`{"kind":"lint","kind":"decide"}`: "the request can't be used",
		`{}`:                              "kind: expected",
		`{"kind":"fix"}`:                  "kind: expected lint, decide, diff or ask",
		`{"kind":"lint","polices":[]}`:    `polices: expected no such field; did you mean \"policies\"`,
		`{"kind":"lint","Files":{}}`:      "Files: expected no such field",
		`{"kind":"lint","files":[]}`:      "files: expected",
		`{"kind":"lint","files":{"/etc/a.agf.yaml":""}}`:        "expected a path below the directory",
		`{"kind":"lint","files":{"../a.agf.yaml":""}}`:          "expected a path below the directory",
		`{"kind":"lint","files":{"a\\b.agf.yaml":""}}`:          "expected a path below the directory",
		`{"kind":"lint","files":{"a":"","a/b":""}}`:             "expected another path: a is a file",
		`{"kind":"lint","files":{"a.agf.yaml":{}}}`:             "a.agf.yaml: expected",
		`{"kind":"lint","policies":[1]}`:                        "policies[0]: expected",
		`{"kind":"lint","strict":"yes"}`:                        "strict: expected",
		`{"kind":"ask","query":{"tools":"x"}}`:                  `did you mean \"tool\"`,
		`{"kind":"ask","files":{},"query":{"outcome":"allow"}}`: "name one target",
		`{"kind":"lint","files":{}}`:                            "nothing was checked",
		`{"kind":"diff","files":{"x":""}}`:                      "nothing was compared",
		`{"kind":"lint","files":{"a":""},"config":"c"}`:         "is none of the files",
		`{"kind":"lint","files":{"a":""},"people":"p"}`:         "is none of the files",
	} {
		got := string(engine.Run([]byte(text)))
		if !strings.HasPrefix(got, `{"exit":2,`) || !strings.Contains(got, want) {
			t.Errorf("%s\n%s\nexpected %s", text, got, want)
		}
	}
}

// TestOwnersChoices: the configuration and the people of a request are read. A registry isn't
// used.
func TestOwnersChoices(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ kind, config, want string }{
		{"decide", "undeclared: ask", `"outcome":"ask"`},
		{"decide", "undeclared: [", `the decision configuration decisions.yaml can't be used`},
		{"decide", `registry: {url: "https://policies.example/p.json"}`, `are not fetched here`},
		{"lint", `registry: {url: "https://policies.example/p.json"}`, `are not fetched here`},
		{"lint", "undeclared: [", `the configuration decisions.yaml can't be used`},
		{"diff", "undeclared: [", `old side: the decision configuration old/decisions.yaml can't be used`},
		{"ask", "undeclared: ask", `{"exit":0,"answer":{"found":"no"}}`},
	} {
		files := map[string]string{"desk.agf.yaml": agent, "decisions.yaml": tt.config}
		more := map[string]any{"files": files, "config": "decisions.yaml"}
		switch tt.kind {
		case "decide":
			more["agent"], more["calls"] = "desk.agf.yaml", `{"kind":"tool","tool":"nobody"}`
		case "ask":
			more["agent"], more["query"] = "desk.agf.yaml", map[string]string{"tool": "nobody", "outcome": "allow"}
		}

		if got := string(engine.Run(request(t, tt.kind, more))); !strings.Contains(got, tt.want) {
			t.Errorf("%s %s: %s", tt.kind, tt.config, got)
		}
	}

	people := map[string]any{
		"files":  map[string]string{"desk.agf.yaml": agent, "people.yaml": "people: 1"},
		"people": "people.yaml",
	}
	if got := string(engine.Run(request(t, "lint", people))); !strings.Contains(got, "the people in people.yaml can't be used") {
		t.Error(got)
	}
}

// TestFilesAreAFileSystem checks the rules of io/fs.
func TestFilesAreAFileSystem(t *testing.T) {
	t.Parallel()
	files := engine.Files{"a.yaml": []byte("a"), "b/c.yaml": []byte("c"), "b/d/e.yaml": nil}
	if err := fstest.TestFS(files, "a.yaml", "b/c.yaml", "b/d/e.yaml"); err != nil {
		t.Error(err)
	}
}

// TestLinksNoWayOut: the engine doesn't link packages that speak HTTP, run programs or store
// anything. So it also works in environments without them.
func TestLinksNoWayOut(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for path := range strings.FieldsSeq(string(out)) {
		switch path {
		case "net/http", "os/exec", "database/sql", "crypto/tls", "log/slog", "github.com/spf13/cobra":
			t.Errorf("the engine links %s", path)
		}
	}
}

// FuzzRun sends any text. The answer is always JSON with an exit code.
func FuzzRun(f *testing.F) {
	f.Add([]byte(`{"kind":"lint","files":{"a.agf.yaml":"metadata: {id: a}"},"policies":["."]}`))
	f.Add([]byte(`{"kind":"decide","files":{"a.agf.yaml":"x"},"agent":"a.agf.yaml","calls":"{}"}`))
	f.Add([]byte(`{"kind":"diff","files":{"a.agf.yaml":"x"},"new":{"a.agf.yaml":"y"}}`))
	f.Add([]byte(`{"kind":"ask","files":{"a.agf.yaml":"x"},"agent":"a.agf.yaml","query":{"tool":"t","where":"a>1","outcome":"allow"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var got struct{ Exit *int }
		if err := json.Unmarshal(engine.Run(text), &got); err != nil || got.Exit == nil {
			t.Errorf("%s: %v", text, err)
		}
		if r, err := engine.ParseRequest(text); err == nil && !slices.Contains(engine.Kinds(), r.Kind) {
			t.Errorf("a request of the kind %q was read", r.Kind)
		}
	})
}

// BenchmarkRun measures a check and a decision of a small agent. The numbers are for a native
// build.
func BenchmarkRun(b *testing.B) {
	files := map[string]string{"desk.agf.yaml": agent}
	for _, r := range []map[string]any{
		{"kind": "lint", "files": files},
		{"kind": "decide", "files": files, "agent": "desk.agf.yaml", "calls": `{"kind":"tool","tool":"trade"}`},
	} {
		text, err := json.Marshal(r)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(r["kind"].(string), func(b *testing.B) {
			for b.Loop() {
				engine.Run(text)
			}
		})
	}
}

// TestContractNamesEveryField: the table in docs/contracts/engine.md has every field of a
// request, and each field in it is accepted.
func TestContractNamesEveryField(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/contracts/engine.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("(?m)^\\| ((?:`[a-z]+`(?:, )?)+) \\|").FindAllStringSubmatch(string(page), -1)
	fields := 0
	for _, row := range names {
		for name := range strings.SplitSeq(row[1], ", ") {
			fields++
			text := `{"kind":"lint",` + strings.ReplaceAll(name, "`", `"`) + `:null}`
			if got := string(engine.Run([]byte(text))); strings.Contains(got, "no such field") {
				t.Errorf("%s: %s", name, got)
			}
		}
	}

	if fields != 11 {
		t.Errorf("the table has %d fields, expected 11", fields)
	}
}
