package main

import (
	"cmp"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testbin"
	"github.com/assent-dev/assent/internal/testwait"
)

// taker is a command that compiles plans, and therefore reads a decision configuration.
type taker struct {
	command string   // as people type it
	flag    string   // that names the file
	sites   []string // where it compiles
	// run runs the command with a file, and returns its output.
	run   func(t *testing.T, file string) string
	text  string // of a file whose effect is seen; "": loud
	shows string // what it says by that text, and not by {}; "": it only reads it
}

// loud is a decision configuration with a visible effect.
const loud = "undeclared: ask\napprove_on_timeout: true\npolicies: [rules]\n"

// takers lists all commands that decide.
func takers() []taker {
	const (
		decides = "cmd/internal/decide.Decider.compileFile"
		member  = "server/plans.(*loader).compileMember"
		keeps   = "cmd/assent.(*files).load"
		checks  = "cmd/assent.(*checker).tenant"
		shouts  = "APPROVAL BY TIMEOUT is on"
	)
	said := func(args ...string) string {
		out, errOut, _ := ran("", args...)
		return out + errOut
	}
	beside := func(file, name string) string { return filepath.Join(filepath.Dir(file), name) }
	// serve prints its configuration at the start, and ends because its address is in use.
	serve := func(t *testing.T, file string, args ...string) string {
		return said(append(args, "--agents", beside(file, "desk.agf.yaml"), "--people", beside(file, "people.yaml"),
			"--store", beside(file, "s.db"), "--key", beside(file, "k"), "--decisions", file,
			"--listen", busyAddress(t))...)
	}

	return append(hookTakers(member, keeps), []taker{
		{
			command: "assent decide",
			flag:    "config",
			sites:   []string{decides},
			shows:   `"code":"undeclared"`,
			run: func(t *testing.T, file string) string {
				call := testfiles.Write(t, beside(file, "call"), nobodysCall+"\n")
				return said("decide", "--agent", beside(file, "desk.agf.yaml"), "--call", call, "--decisions", file)
			},
		},
		{
			command: "assent serve",
			flag:    "decisions",
			sites:   []string{member, keeps},
			shows:   shouts,
			run:     func(t *testing.T, file string) string { return serve(t, file, "serve") },
		},
		{
			command: "assent serve",
			flag:    "check",
			sites:   []string{member, checks},
			shows:   shouts,
			run:     func(t *testing.T, file string) string { return serve(t, file, "serve", "--check") },
		},
		{
			command: "assent rap runtime",
			flag:    "decisions",
			sites:   []string{member, keeps},
			shows:   shouts,
			run: func(t *testing.T, file string) string {
				return serve(t, file, "rap", "runtime", "--agent", "desk", "--tools", "x=http://127.0.0.1:1")
			},
		},
		{
			command: "assent rap gateway",
			flag:    "decisions",
			sites:   []string{member, keeps},
			shows:   shouts,
			run: func(t *testing.T, file string) string {
				at := testfiles.Write(t, beside(file, "gateway.yaml"), "name: tool\nagent: desk\n"+
					"agents: desk.agf.yaml\nstore: gateway.db\ncallers: {name: here, callbacks: \"http://127.0.0.1:1\"}\n"+
					"upstream: {name: shell, url: \"http://127.0.0.1:1\"}\n")
				return said("rap", "gateway", "--config", at, "--listen", busyAddress(t), "--decisions", file)
			},
		},
		{
			command: "assent mcp gateway",
			flag:    "config",
			sites:   []string{member, keeps},
			shows:   shouts,
			run: func(t *testing.T, file string) string {
				at := testfiles.Write(t, beside(file, "mcp.yaml"), "agent: desk.agf.yaml\ndecisions: decisions.yaml\n"+
					"store: mcp.db\nupstream: {alias: files, command: \"false\"}\n")
				return said("mcp", "gateway", "--config", at)
			},
		},
		{
			command: "assent rap call",
			flag:    "decisions",
			sites:   []string{decides},
			shows:   "wants this call approved",
			run: func(t *testing.T, file string) string {
				return said("rap", "call", "--url", newMachines(t).URL, "look", "--agent",
					beside(file, "desk.agf.yaml"), "--decisions", file, "--within", "10s")
			},
		},
		{
			command: "assent demo",
			flag:    "decisions",
			sites:   []string{member, keeps},
			text:    "policies: [rules]\n",
			shows:   "Not today.",
			run: func(t *testing.T, file string) string {
				out := said("demo", "--once", "--auto-approve", "--decisions", file)
				if strings.Contains(out, "not sealed in time") {
					t.Error(out)
				}
				return out
			},
		},
		{
			command: "agf-validate",
			flag:    "config",
			sites:   []string{"lint.(*Pass).Plan"},
			shows:   "warning: nobody's answer",
			run: func(t *testing.T, file string) string {
				out, _ := validator(t)("--config", file, filepath.Dir(file))
				return out
			},
		},
		exampleTaker("travel", "agent/examples/travel.decider", "pending"),
		exampleTaker("files", "agent/examples/files.(*app).planOf"),
		exampleTaker("remote", "agent/examples/remote.rentalPlan", "-desk", "http://127.0.0.1:1", "ask", "A van."),
	}...)
}

// hookTakers returns the hooks of coding agents, which ask without a server.
func hookTakers(sites ...string) (all []taker) {
	for product, doc := range hookDocs() {
		all = append(all, taker{
			command: "assent hook " + product,
			flag:    "decisions",
			sites:   sites,
			shows:   "People are still asked",
			run: func(t *testing.T, file string) string {
				agent := filepath.Join(filepath.Dir(file), "desk.agf.yaml")
				h := hookRuns(t, product, doc(callOf("nobodys", `{}`)), "--agent-file", agent, "--decisions", file,
					"--wait", "0s")
				return h.out + h.err
			},
		})
	}

	return all
}

// exampleTaker returns an example that compiles a plan. It has its own policies, so its configuration
// names none.
func exampleTaker(name, site string, args ...string) taker {
	return taker{
		command: "example " + name,
		flag:    "decisions",
		sites:   []string{site},
		text:    loud,
		shows:   "names policies: this example has its own",
		run: func(t *testing.T, file string) string {
			flags := []string{"-decisions", file}
			if name != "files" {
				flags = append(flags, "-dir", t.TempDir())
			}
			cmd := exec.Command(testbin.Path(t, "agent/examples/"+name), append(flags, args...)...)
			out, _ := cmd.CombinedOutput()

			return string(out)
		},
	}
}

// notTakers compile a plan to which no owner's configuration applies, each with the reason.
func notTakers() map[string]string {
	return map[string]string{
		"server/administration.compile":              "acts of administrators: no agent has a file there, and nothing loosens it",
		"cmd/internal/rapcall.command.rapPlan":       "without an agent's file every operation may be called, and the tool asks",
		"bench/internal/subject.(*Plan).Compile":     "measures the engine",
		"store/storetest.newSpenders":                "tests stores: only they import it",
		"server/candidate.(*files).load":             "decides nothing; it has the choices of the live plans, and its own test holds it",
		"cmd/agf-validate.comparison.side":           "fix and lsp take --config, which their options come from",
		"cmd/agf-validate.planning.posture":          "posture takes --config, and its own test holds it",
		"cmd/agf-validate.planning.compilePlan":      "replay takes --config, and its own test holds it",
		"lint/sides.compileAgent":                    "diff takes --config, and its own test holds it",
		"clients/playground/engine.compileFile":      "a request names the file itself, as config",
		"clients/playground/engine.(*compiler).plan": "the same",
		"lint/policytest.(*parts).build":             "a test names the file itself, as decisions",
	}
}

// busyAddress returns an address that is in use.
func busyAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	t.Cleanup(func() { _ = l.Close() })

	return l.Addr().String()
}

// TestEveryCommandThatDecidesTakesTheConfiguration: it reads the file
// that its flag names, decides by it, and refuses a broken one with the
// place.
func TestEveryCommandThatDecidesTakesTheConfiguration(t *testing.T) {
	for _, c := range takers() {
		t.Run(c.command+" "+c.flag, func(t *testing.T) {
			t.Parallel()
			by := func(text string) (string, string) {
				dir := t.TempDir()
				writeFiles(t, dir, deskFiles())
				writeFiles(t, dir, map[string]string{
					"decisions.yaml": text,
					"rules/late.policy.yaml": "schema_version: \"1.0.0\"\npolicy_ref: late\napplies: implicit\nrules:\n" +
						"  - {id: r, match: {targets: [quote]}, approval: true, require: {within: 1s, on_timeout: approve}}\n" +
						"  - {id: n, match: {targets: [execute_trade]}, deny: Not today.}\n",
				})
				file := filepath.Join(dir, "decisions.yaml")

				return file, c.run(t, file)
			}
			if file, text := by("{}\nundeclared: allow\n"); !strings.Contains(text, file+":") {
				t.Errorf("a broken file is not refused:\n%s", text)
			}
			_, plain := by("{}\n")
			_, text := by(cmp.Or(c.text, loud))
			if !strings.Contains(text, c.shows) || strings.Contains(plain, c.shows) {
				t.Errorf("no effect %q in\n%s\nor one in\n%s", c.shows, text, plain)
			}
		})
	}
}

// TestEveryPlaceThatCompilesIsInTheTable: every function that compiles a plan belongs to a command
// that reads the file, and every command with policies is in the table.
func TestEveryPlaceThatCompilesIsInTheTable(t *testing.T) {
	var known, commands []string
	for _, c := range takers() {
		known, commands = append(known, c.sites...), append(commands, c.command)
	}
	found := compiling(t)
	for _, site := range found {
		if !slices.Contains(known, site) && notTakers()[site] == "" {
			t.Errorf("%s compiles a plan: add the command behind it to takers", site)
		}
	}
	for _, site := range known {
		if !slices.Contains(found, site) {
			t.Errorf("%s compiles nothing", site)
		}
	}
	for site := range notTakers() {
		if !slices.Contains(found, site) || slices.Contains(known, site) {
			t.Errorf("%s needs no excuse", site)
		}
	}

	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			visit(below)
		}
		known := slices.Contains(commands, c.CommandPath()) || undeciding()[c.CommandPath()] != ""
		if c.Flags().Lookup("policies") != nil && !known {
			t.Errorf("%s has policies, and takes no decision configuration", c.CommandPath())
		}
		for _, taker := range takers() {
			if taker.command == c.CommandPath() && c.Flags().Lookup(taker.flag) == nil {
				t.Errorf("%s has no --%s", taker.command, taker.flag)
			}
		}
	}
	visit(program{Backend: backend()}.command())
}

// undeciding returns commands with policies that decide nothing.
func undeciding() map[string]string {
	return map[string]string{
		"assent mcp install":  "writes the gateway's configuration, which may name a file",
		"assent hook install": "writes the line of a hook, which may name a file",
		"assent mcp inbox":    "reads the gateway's configuration as the gateway does, and answers what that asked",
		"assent hook inbox":   "reads the flags of hooks as they do, and answers what they asked",
	}
}

// compiling returns the functions of the repository, without tests, that call resolve.Compile or
// plans.Load.
func compiling(t *testing.T) []string {
	t.Helper()
	const top = "../.."
	var out []string
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "assenttest" ||
			strings.HasPrefix(d.Name(), ".") && path != top):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}

		src, err := os.ReadFile(path)
		folder, relative := filepath.Rel(top, filepath.Dir(path))
		if err := errors.Join(err, relative); err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			if compiles(d) {
				out = append(out, filepath.ToSlash(folder)+"."+declared(d))
			}
		}

		return nil
	})
	must.Do(t, err)

	return out
}

// compiles reports whether a declaration uses one of the functions that
// make plans.
func compiles(d ast.Decl) (found bool) {
	ast.Inspect(d, func(n ast.Node) bool {
		if x, ok := n.(*ast.SelectorExpr); ok {
			on, named := x.X.(*ast.Ident)
			found = found || named && (on.Name == "resolve" && x.Sel.Name == "Compile" ||
				on.Name == "plans" && x.Sel.Name == "Load")
		}

		return !found
	})

	return found
}

// TestAGatewayDecidesByTheConfiguration: the gateway uses the current configuration without a
// restart.
func TestAGatewayDecidesByTheConfiguration(t *testing.T) {
	t.Parallel()
	wrapped := newEndpoint(t)
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"decisions.yaml": "policies: [rules]\n",
		"rules/no.policy.yaml": "schema_version: \"1.0.0\"\npolicy_ref: no\napplies: implicit\nrules:\n" +
			"  - {id: n, match: {targets: [quote]}, deny: Not today.}\n",
	})
	callbacks := "http://" + freeAddress(t)
	url, log := gatewayOf(t, map[string]string{"tool.agf.yaml": toolAgent, "quote.json": quoteSchema}, `
name: quotes
agent: tool
agents: tool.agf.yaml
decisions: `+filepath.Join(dir, "decisions.yaml")+`
callers: {name: here, callbacks: "`+callbacks+`"}
operations: {name: quote, description: Last price., schema: quote.json, url: "`+wrapped.URL+`"}
`)
	call := func() string {
		out, errOut, _ := ran("", "rap", "call", "--url", url, "quote", "--args", `{"of":"ACME"}`, "--answer", "0",
			"--listen", strings.TrimPrefix(callbacks, "http://"), "--within", "10s")
		return out + errOut
	}
	if text := call(); !strings.Contains(text, "Not today.") {
		t.Errorf("%s\n%s", text, log.String())
	}
	testfiles.Write(t, filepath.Join(dir, "decisions.yaml"), "permit_age: 1m\n")
	testwait.Until(t, "the change is in force", func() bool { return !strings.Contains(call(), "Not today.") })
	testfiles.Write(t, filepath.Join(dir, "decisions.yaml"), "permit_age: never\n")
	testwait.Until(t, "readiness tells", func() bool {
		_, text := fetched(t, "GET", url+"/readyz", "", "")
		return strings.Contains(text, `"configuration"`) && strings.Contains(text, `"degraded":true`)
	})
	if !strings.Contains(log.String(), "decisions.yaml:1:13: ") {
		t.Errorf("the log does not say where:\n%s", log.String())
	}
}
