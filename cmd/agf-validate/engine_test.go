package main

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/assent-dev/assent/clients/playground/engine"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/must"
)

const wholeTree = "../.."

// filesBelow reads the YAML files of a folder.
func filesBelow(t *testing.T, dir string) engine.Files {
	t.Helper()
	out := engine.Files{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && path.Ext(name) == ".yaml" {
			out[name] = []byte(testfiles.Read(t, path.Join(dir, name)))
		}
		return err
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("%s: %d files, %v", dir, len(out), err)
	}

	return out
}

// folders returns all examples, and the samples of every rule.
func folders(t *testing.T) map[string]engine.Files {
	t.Helper()
	out := map[string]engine.Files{}
	for _, name := range []string{
		"examples/trading-desk", "examples/platform-operator", "examples/customer-support", "agent/examples/travel",
	} {
		out[name] = filesBelow(t, wholeTree+"/"+name)
	}
	rules, err := os.ReadDir(wholeTree + "/lint/rules")
	must.Do(t, err)
	for _, d := range rules {
		if d.IsDir() {
			out["lint/rules/"+d.Name()] = filesBelow(t, wholeTree+"/lint/rules/"+d.Name())
		}
	}

	return out
}

// stand writes files below a directory of the working directory.
func stand(t *testing.T, dir string, files engine.Files) {
	t.Helper()
	for name, text := range files {
		testfiles.Write(t, path.Join(dir, name), string(text))
	}
}

// sameAsCommand compares an answer with the output and the exit code of the command.
func sameAsCommand(t *testing.T, r engine.Request, args ...string) engine.Answer {
	t.Helper()
	got := r.Answer()
	out, errOut, code := validated(t, args...)
	if string(got.Output) != out || got.Exit != code {
		t.Errorf("%s: exit %d, %s\n%s\nthe command: exit %d\n%s%s",
			strings.Join(args, " "), got.Exit, got.Error, got.Output, code, out, errOut)
	}
	return got
}

// TestEngineChecksAsTheCommand: the output is byte for byte the same for every example and every
// sample of a rule, alone, with its policies, with its people, and strict.
func TestEngineChecksAsTheCommand(t *testing.T) {
	findings := 0
	for name, files := range folders(t) {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			stand(t, ".", files)
			r := engine.Request{Kind: engine.Lint, Files: files}
			sameAsCommand(t, r, "--format", "json", ".")
			args := []string{"--format", "json", "--policies", ".", "--strict"}
			r.Policies, r.Strict = []string{"."}, true
			if files["people.yaml"] != nil {
				r.People = "people.yaml"
				args = append(args, "--people", r.People)
			}
			if files["decisions.yaml"] != nil {
				r.Config = "decisions.yaml"
				args = append(args, "--decisions", r.Config)
			}
			findings += strings.Count(string(sameAsCommand(t, r, append(args, ".")...).Output), `"rule"`)
		})
	}

	if findings < 100 {
		t.Errorf("only %d findings were compared", findings)
	}
}

// TestEngineChecksWithoutPolicies: the directory has no policies, or its name is slightly wrong.
func TestEngineChecksWithoutPolicies(t *testing.T) {
	for _, files := range []engine.Files{
		{"desk.agf.yaml": []byte(testfiles.Agent)},
		{"desk.agf.yaml": []byte(testfiles.Agent), "p/near.policy.yml": []byte(soundPolicy)},
		{"desk.agf.yaml": []byte("metadata: [")},
	} {
		t.Run("", func(t *testing.T) {
			t.Chdir(t.TempDir())
			stand(t, ".", files)
			must.Do(t, os.MkdirAll("p", 0o755))
			r := engine.Request{Kind: engine.Lint, Files: files, Policies: []string{"p"}}
			sameAsCommand(t, r, "--format", "json", "--policies", "p", ".")
		})
	}
}

// changed returns a version in which one text is replaced.
func changed(t *testing.T, files engine.Files, file, old, new string) engine.Files {
	t.Helper()
	out := engine.Files{}
	for name, text := range files {
		out[name] = text
	}
	if !strings.Contains(string(files[file]), old) {
		t.Fatalf("%s holds no %q", file, old)
	}
	out[file] = []byte(strings.ReplaceAll(string(files[file]), old, new))

	return out
}

// TestEngineComparesAsTheCommand: the output is byte for byte the same for examples that change,
// and for the bad sample of every rule with its good one.
func TestEngineComparesAsTheCommand(t *testing.T) {
	all := folders(t)
	desk := all["examples/trading-desk"]
	compare := func(name string, old, new engine.Files, flags ...string) {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			stand(t, "old", old)
			stand(t, "new", new)
			r := engine.Request{Kind: engine.Diff, Files: old, New: new}
			if len(flags) > 0 {
				r.Config = "decisions.yaml"
			}
			sameAsCommand(t, r, append([]string{"diff", "--format", "json"}, append(flags, "old", "new")...)...)
		})
	}
	compare("same", desk, desk)
	compare("looser", desk, changed(t, desk, "agent.agf.yaml", "gt: 10000", "gt: 20000"))
	compare("policy", desk, changed(t, desk, "policies/trade-controls.policy.yaml", "people: 2", "people: 3"))
	broken := changed(t, desk, "policies/trade-controls.policy.yaml", "rules:", "rulez:")
	compare("broken", desk, broken)
	operator := all["examples/platform-operator"]
	compare("owner", operator, changed(t, operator, "decisions.yaml", "[metrics, database]", "[metrics]"),
		"--decisions-old", "old/decisions.yaml", "--decisions-new", "new/decisions.yaml")
	for name, files := range all {
		if bad, good := files["bad.agf.yaml"], files["good.agf.yaml"]; bad != nil && good != nil {
			compare(name, engine.Files{"a.agf.yaml": bad}, engine.Files{"a.agf.yaml": good})
		}
	}
}

// TestEngineAsksAsTheCommand: the output is byte for byte the same.
func TestEngineAsksAsTheCommand(t *testing.T) {
	files := filesBelow(t, wholeTree+"/examples/trading-desk")
	t.Chdir(t.TempDir())
	stand(t, ".", files)
	for _, q := range []engine.Query{
		{Tool: "execute_trade", Where: "amount>50000,currency=USD", Outcome: "allow"},
		{Tool: "execute_trade", Where: "amount<500", Outcome: "allow"},
		{Tool: "wire_funds", Outcome: "ask"},
		{Tool: "nobody", Outcome: "allow"},
		{Delegate: "financial_executor", Outcome: "ask"},
		{Server: "s", Tool: "t", Outcome: "allow"},
		{Remote: "r", Skill: "s", Outcome: "deny"},
		{Tool: "wire_funds", Delegate: "x", Outcome: "ask"},
		{Tool: "wire_funds", Outcome: "maybe"},
		{Tool: "wire_funds", Where: "amount>", Outcome: "ask"},
	} {
		r := engine.Request{
			Kind:     engine.Ask,
			Files:    files,
			Agent:    "agent.agf.yaml",
			Policies: []string{"policies"},
			Query:    q,
		}
		sameAsCommand(t, r, "ask", "--format", "json", "--agent", r.Agent, "--policies", "policies",
			"--tool", q.Tool, "--server", q.Server, "--remote", q.Remote, "--skill", q.Skill, "--delegate", q.Delegate,
			"--where", q.Where, "--outcome", q.Outcome)
	}
}
