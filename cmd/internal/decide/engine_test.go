package decide

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/clients/playground/engine"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/must"
)

// exampleFiles reads an example of the repository, by paths within it.
func exampleFiles(t *testing.T, dir string) engine.Files {
	t.Helper()
	out := engine.Files{}
	for _, pattern := range []string{"*.yaml", "*/*.yaml"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", dir, err)
		}
		for _, file := range found {
			rel, err := filepath.Rel(dir, file)
			must.Do(t, err)
			out[filepath.ToSlash(rel)] = []byte(testfiles.Read(t, file))
		}
	}

	return out
}

// TestEngineDecidesAsTheCommand, to the byte: the calls of the
// examples, and lines that are none.
func TestEngineDecidesAsTheCommand(t *testing.T) {
	const examples = "../../../examples/"
	for _, tt := range []struct{ dir, agent, parent, calls, config string }{
		{dir: "trading-desk", agent: "agent.agf.yaml", calls: "calls.jsonl"},
		{
			dir: "trading-desk", agent: "agents/financial_executor.agf.yaml", parent: "agent.agf.yaml",
			calls: "agents/financial_executor.calls.jsonl",
		},
		{dir: "platform-operator", agent: "agent.agf.yaml", calls: "calls.jsonl", config: "decisions.yaml"},
		{dir: "customer-support", agent: "agent.agf.yaml", calls: "calls.jsonl"},
	} {
		files := exampleFiles(t, examples+tt.dir)
		calls := testfiles.Read(t, examples+tt.dir+"/"+tt.calls) +
			"\n{\"kind\":\"tool\"\n{\"kind\":\"tool\",\"tool\":\"x\",\"args\":{\"a\":1,\"a\":2}}\n[]\r\n \t\n{\"kind\":\"nothing\"}"
		r := engine.Request{Kind: engine.Decide, Files: files, Agent: tt.agent, Calls: calls, Config: tt.config}
		args := []string{"--agent", tt.agent}
		if tt.config == "" {
			r.Policies = []string{"policies"}
			args = append(args, "--policies", "policies")
		} else {
			args = append(args, "--decisions", tt.config)
		}

		if tt.parent != "" {
			r.Parents = []string{tt.parent}
			args = append(args, "--parent", tt.parent)
		}

		t.Run(tt.dir+" "+tt.agent, func(t *testing.T) { sameDecisions(t, r, args) })
	}
}

func sameDecisions(t *testing.T, r engine.Request, args []string) {
	t.Chdir(t.TempDir())
	for name, text := range r.Files {
		testfiles.Write(t, name, string(text))
	}
	var out, errOut bytes.Buffer
	code := run(term.Streams{In: strings.NewReader(r.Calls), Out: &out, Err: &errOut}, args...)
	got := r.Answer()
	if string(got.Output) != out.String() || got.Exit != code || out.Len() == 0 {
		t.Errorf("exit %d, %s\n%s\nthe command: exit %d\n%s%s", got.Exit, got.Error, got.Output, code, &out, &errOut)
	}
	if !strings.Contains(errOut.String(), got.Error) {
		t.Errorf("error %q, the command says %s", got.Error, &errOut)
	}
}

// TestEngineDecidesNothingWithBrokenFiles: as the command, it answers
// no call and says why.
func TestEngineDecidesNothingWithBrokenFiles(t *testing.T) {
	const call = `{"kind":"tool","tool":"quote"}`
	for name, files := range map[string]engine.Files{
		"agent":  {"a.agf.yaml": []byte("metadata: 1"), "p/x.policy.yaml": nil},
		"policy": {"a.agf.yaml": []byte(testfiles.Agent), "p/x.policy.yaml": []byte("rules: 1")},
		"none":   {"a.agf.yaml": []byte(testfiles.Agent), "p/README": []byte("Nothing.")},
	} {
		t.Run(name, func(t *testing.T) {
			r := engine.Request{
				Kind:     engine.Decide,
				Files:    files,
				Agent:    "a.agf.yaml",
				Policies: []string{"p"},
				Calls:    call,
			}
			t.Chdir(t.TempDir())
			for name, text := range files {
				testfiles.Write(t, name, string(text))
			}
			var out, errOut bytes.Buffer
			in := strings.NewReader(call)
			code := run(term.Streams{In: in, Out: &out, Err: &errOut}, "--agent", r.Agent, "--policies", "p")
			got := r.Answer()
			if code != got.Exit || out.Len()+len(got.Output) > 0 || !strings.Contains(errOut.String(), got.Error) {
				t.Errorf("exit %d, %s\nthe command: exit %d\n%s%s", got.Exit, got.Error, code, &out, &errOut)
			}
			if len(got.Findings) == 0 || got.Findings[0].Range.Start.Line == 0 && name == "policy" {
				t.Errorf("findings %v", got.Findings)
			}
		})
	}
}
