package main_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/assent-dev/assent/clients/playground/engine"
	"github.com/assent-dev/assent/internal/golden"
)

// body is a request in JSON.
type body map[string]any

// recorded is one line of testdata/answers.jsonl.
type recorded struct {
	Request json.RawMessage `json:"request"`
	Answer  json.RawMessage `json:"answer"`
}

// requests returns checks and decisions of the examples, and the decisions
// that the tests of resolve record.
func requests(t testing.TB) []body {
	t.Helper()
	var out []body
	for _, e := range []struct{ dir, agent, parent, config string }{
		{"trading-desk", "agent", "", ""},
		{"trading-desk", "agents/financial_executor", "agent", ""},
		{"platform-operator", "agent", "", "decisions.yaml"},
		{"customer-support", "agent", "", ""},
	} {
		dir := filepath.Join("..", "..", "examples", e.dir)
		calls := strings.Replace(e.agent+".calls.jsonl", "agent.calls", "calls", 1)
		decide := body{
			"kind":  "decide",
			"files": yamlFiles(t, dir),
			"agent": e.agent + ".agf.yaml",
			"calls": read(t, filepath.Join(dir, calls)),
		}
		decide.choose(e.config, e.parent)
		out = append(out, decide)
		if e.parent == "" {
			lint := body{"kind": "lint", "files": decide["files"]}
			lint.choose(e.config, "")
			out = append(out, lint)
		}
	}

	return append(append(out, stories(t)...), refused()...)
}

func (b body) choose(config, parent string) {
	if config != "" {
		b["config"] = config
	} else {
		b["policies"] = []string{"policies"}
	}
	if parent != "" {
		b["parents"] = []string{parent + ".agf.yaml"}
	}
}

// yamlFiles returns the texts below a directory, by their paths.
func yamlFiles(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".yaml") && !strings.HasSuffix(name, ".test.yaml") {
			out[name] = read(t, filepath.Join(dir, name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return out
}

const version = "schema_version: \"1.0.0\"\n"

// head is what the agents of stories leave out.
const head = version + `metadata: {id: story, name: Story, version: "1.0.0", description: Of a test.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Tell., model: any}}
`

// stories returns the cases of resolve: a file each, with an agent, its
// policies and calls.
func stories(t testing.TB) []body {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("..", "..", "resolve", "testdata", "*.txtar"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	var out []body
	for _, file := range found {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, story(archive))
	}

	return out
}

func story(a *txtar.Archive) body {
	files := map[string]string{}
	b := body{"kind": "decide", "files": files, "agent": "agent.agf.yaml"}
	for _, f := range a.Files {
		text := string(f.Data)
		switch {
		case f.Name == "calls.jsonl":
			b["calls"] = text
		case strings.HasSuffix(f.Name, ".policy.yaml"):
			files["policies/"+f.Name] = version + text
			b["policies"] = []string{"policies"}
		case strings.HasSuffix(f.Name, ".agf.yaml"):
			files[f.Name] = whole(text)
		}

		if f.Name == "parent.agf.yaml" {
			b["parents"] = []string{f.Name}
		}
	}

	return b
}

// refused returns requests that can't be used.
func refused() []body {
	return []body{
		{},
		{"kind": "diff", "files": body{"a.agf.yaml": ""}},
		{"kind": "decide", "agent": "gone.agf.yaml"},
		{"kind": "decide", "agent": "a.agf.yaml", "files": body{"a.agf.yaml": "metadata: ["}},
		{"kind": "lint", "polices": []string{}},
	}
}

// whole returns an agent's file with what its story leaves out.
func whole(text string) string {
	if strings.HasPrefix(text, version) {
		return text
	}
	return head + text
}

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAnswersAreRecorded for the packages of other languages, whose
// tests have to get the same from the module.
func TestAnswersAreRecorded(t *testing.T) {
	var b strings.Builder
	for _, r := range all(t) {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
		b.WriteByte('\n')
	}

	golden.Equal(t, "answers.jsonl", b.String())
}

// all returns the requests with the answers of this process.
func all(t testing.TB) []recorded {
	t.Helper()
	var out []recorded
	for _, r := range requests(t) {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, recorded{Request: text, Answer: engine.RunLocal(text)})
	}

	return out
}

// single returns the requests to decide with one call each, and what is
// answered to it.
func single(t testing.TB) map[string][2]string {
	t.Helper()
	out := map[string][2]string{}
	for _, r := range requests(t) {
		calls, ok := r["calls"].(string)
		if !ok {
			continue
		}
		line := strings.TrimSpace(strings.Split(calls, "\n")[0])
		r = maps.Clone(r)
		r["calls"] = line
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Answer []json.RawMessage }
		if err := json.Unmarshal(engine.RunLocal(text), &got); err != nil || len(got.Answer) != 1 {
			t.Fatalf("%s: %v", line, err)
		}
		out[string(text)] = [2]string{line, string(got.Answer[0])}
	}

	if len(slices.Collect(maps.Keys(out))) == 0 {
		t.Fatal("no calls")
	}

	return out
}
