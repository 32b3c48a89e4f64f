package repotest

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// layer is one of the six layers. A package may import packages of its own layer and of those
// below it.
type layer struct {
	name     string
	packages string // "lint/*" means everything below lint
}

// layers lists the layers, lowest first. A package belongs to the layer with the longest pattern
// that matches its path. The packages of internal are part of the layer that first needs them.
func layers() []layer {
	return []layer{
		{"kernel", "value diag condition template schema policy policy/* resolve resolve/* internal/*"},
		{"authoring", "lint lint/*"},
		{"asking", "approval approval/* internal/keyset"},
		{"storage", "store store/*"},
		{"edges", "server server/* client rap rap/* mcp mcp/* policy/policyhttp internal/durable internal/durable/*"},
		// Commands, programs, tests of the whole, and the module agent, which no other module imports.
		{"commands", "cmd/* clients/* examples agent agent/* internal/assenttest internal/crashtest internal/repotest " +
			"internal/testbin/*"},
	}
}

// pure lists the packages without effects outside of the process: bytes in, answers out, fit for
// WASM and for any process. Packages that ask people get a clock as an argument; the rest has none.
func pure() string {
	return clockless() + " approval internal/wait agent/runstate lint/policytest lint/sides"
}

// clockless lists the pure packages that don't read the clock either, so that a decision depends on
// nothing but its inputs.
func clockless() string {
	return "value diag condition template schema policy policy/people policy/quorum resolve resolve/* lint lint/* " +
		"approval/form approval/info approval/ledger approval/signin agent/content mcp/catalog mcp/wire rap/wire " +
		"internal/automata internal/document internal/jsonmsg internal/jsonschema internal/pattern internal/safetext " +
		"internal/sse internal/webhost internal/yamldoc"
}

// withEffects lists packages below a pure folder that read files: programs and helpers of tests.
func withEffects() string { return "lint/gen lint/linttest" }

// isPure reports whether a package is in a list of patterns, and not a program or a helper of tests.
func isPure(list, path string) bool { return among(list, path) && !among(withEffects(), path) }

// among reports whether a path matches one of some patterns.
func among(patterns, path string) bool {
	return slices.ContainsFunc(strings.Fields(patterns), func(p string) bool { return inside(p, path) })
}

// outside lists the packages with effects outside of the process. Pure code may not import them.
func outside() []string {
	return []string{
		"database/sql",
		"io/ioutil",
		"log",
		"log/slog",
		"net",
		"net/http",
		"os",
		"os/exec",
		"os/signal",
		"plugin",
		"syscall",
	}
}

// fences maps each outside technology to the one package that may import it, so that replacing it
// changes one package. The browser is used by a test helper and by the three packages that have
// pages.
func fences() map[string]string {
	return map[string]string{
		"gopkg.in/yaml.v3":                         "internal/yamldoc",
		"github.com/santhosh-tekuri/jsonschema/v5": "internal/jsonschema",
		"github.com/go-json-experiment/json":       "internal/jsonmsg",
		"github.com/spf13/cobra":                   "cmd/*",
		"github.com/sourcegraph/jsonrpc2":          "cmd/internal/editor",
		"github.com/KimMachineGun/automemlimit":    "cmd/*",
		"golang.org/x/term":                        "cmd/internal/term",
		"golang.org/x/net":                         "internal/webhost",
		"golang.org/x/mod":                         "approval/ledger",
		"modernc.org/sqlite":                       "store/sqlite*",
		"github.com/jackc/pgx":                     "store/postgres*",
		"github.com/coreos/go-oidc":                "server/auth",
		"github.com/go-jose/go-jose":               "mcp/auth* internal/keyset approval/permit",
		"golang.org/x/oauth2":                      "server/auth mcp/auth",
		"github.com/alexedwards/scs":               "server/auth",
		"github.com/slack-go/slack":                "server/notify/slack",
		"github.com/prometheus/client_golang":      "server",
		"github.com/openai/openai-go":              "agent/openai",
		"github.com/anthropics/anthropic-sdk-go":   "agent/anthropic",
		"github.com/tailscale/hujson":              "internal/settings",
		"github.com/rogpeppe/go-internal/diff":     "cmd/*",
		"github.com/pelletier/go-toml":             "internal/settings",
		"github.com/modelcontextprotocol/go-sdk":   "mcp/mcptest/gosdk",
		"github.com/tetratelabs/wazero":            "clients/wasm",
		"mvdan.cc/sh/v3":                           "resolve/shellfacts cmd/internal/hookfile",
		"github.com/chromedp":                      "internal/chromium server/inbox server/apidocs clients/playground/site",
	}
}

// inside reports whether a path is the pattern, or below it when the
// pattern ends in a star.
func inside(pattern, path string) bool {
	folder, below := strings.CutSuffix(pattern, "*")
	return pattern == path || below && strings.HasPrefix(path, folder)
}

// find returns the number of a package's layer.
func find(table []layer, path string) (int, bool) {
	best, found, longest := 0, false, -1
	for n, l := range table {
		for _, p := range strings.Fields(l.packages) {
			if inside(p, path) && len(p) > longest {
				best, found, longest = n, true, len(p)
			}
		}
	}
	return best, found
}

// checkLayers complains about packages without a layer, about imports of a higher layer, and about
// effects of pure packages.
func checkLayers(table []layer, packages []pkg) []string {
	var out []string
	for _, p := range packages {
		from, ok := find(table, p.path)
		if !ok {
			out = append(out, fmt.Sprintf("package %s has no layer: add it to layers() in layers_test.go", p.path))
			continue
		}
		for _, imported := range p.imports {
			path, ours := strings.CutPrefix(imported, modulePath+"/")
			to, ok := find(table, path)
			switch {
			case ours && ok && to > from: // a package without a layer is reported for itself
				out = append(out, fmt.Sprintf("%s (%s) imports %s (%s): arrows go down only",
					p.path, table[from].name, path, table[to].name))
			case !ours && isPure(pure(), p.path) && slices.Contains(outside(), imported):
				out = append(out, fmt.Sprintf("%s imports %s: it is listed as pure", p.path, imported))
			}
		}
	}

	return out
}

// checkFences complains about a technology used outside its package, in
// tests too.
func checkFences(fences map[string]string, packages []pkg) []string {
	var out []string
	for _, p := range packages {
		for _, imported := range slices.Compact(slices.Sorted(slices.Values(p.used))) {
			for fenced, home := range fences {
				within := slices.ContainsFunc(strings.Fields(home), func(h string) bool { return inside(h, p.path) })
				if (imported == fenced || strings.HasPrefix(imported, fenced+"/")) && !within {
					out = append(out, fmt.Sprintf("%s imports %s, which only %s may", p.path, imported, home))
				}
			}
		}
	}

	return out
}

// checkClock complains about pure code that reads the clock.
func checkClock(packages []checked) []string {
	var out []string
	for _, c := range packages {
		if !isPure(clockless(), c.pkg.path) {
			continue
		}
		for id, object := range c.info.Uses {
			f, ok := object.(*types.Func)
			if ok && f.Pkg() != nil && f.Pkg().Path() == "time" &&
				slices.Contains(
					[]string{
						"Now",
						"Since",
						"Until",
						"Sleep",
						"After",
						"NewTimer",
						"Tick",
						"NewTicker",
						"AfterFunc",
					},
					f.Name(),
				) {
				out = append(out, fmt.Sprintf("%s: time.%s: deciding has no clock", at(c.fset, id), f.Name()))
			}
		}
	}

	return out
}

func TestLayers(t *testing.T) { report(t, checkLayers(layers(), must(t, repository))) }

func TestFences(t *testing.T) { report(t, checkFences(fences(), must(t, repository))) }

func TestClock(t *testing.T) { report(t, checkClock(must(t, typedRepository))) }

func TestLayerChecksFail(t *testing.T) {
	table := layers()
	up := sample(t, "lint/sides", `package sides; import _ "github.com/assent-dev/assent/approval"`)
	below := sample(t, "policy", `package policy; import _ "github.com/assent-dev/assent/policy/policyhttp"`)
	catches(t, checkLayers(table, []pkg{up}), "arrows go down only")
	catches(t, checkLayers(table, []pkg{below}), "policy/policyhttp (edges)")
	unlisted := sample(t, "unlisted", `package unlisted`)
	catches(t, checkLayers(table, []pkg{unlisted}), "has no layer")
	impure := sample(t, "resolve", `package resolve; import _ "net/http"`)
	catches(t, checkLayers(table, []pkg{impure}), "imports net/http")
	rule := sample(t, "lint/vacuous", `package vacuous; import _ "os"`)
	catches(t, checkLayers(table, []pkg{rule}), "imports os")
	unfenced := sampleTest(t, "policy", `package policy; import _ "gopkg.in/yaml.v3"`)
	catches(t, checkFences(fences(), []pkg{unfenced}), "only internal/yamldoc may")
	clock := typedSample(
		t,
		"resolve",
		`package resolve; import "time"; func now() time.Time { return time.Now() }`,
	)
	catches(t, checkClock([]checked{clock}), "resolve/sample.go:1: time.Now")
	for _, good := range []pkg{
		sample(t, "condition", `package condition; import (_ "github.com/assent-dev/assent/value"; _ "strings")`),
		sample(
			t,
			"cmd/agf-validate",
			`package validate; import (_ "os"; _ "github.com/assent-dev/assent/lint"; _ "github.com/spf13/cobra")`,
		),
		sample(t, "lint/all", `package all; import _ "github.com/assent-dev/assent/lint"`),
	} {
		report(t, append(checkLayers(table, []pkg{good}), checkFences(fences(), []pkg{good})...))
	}
}

// typedSample type-checks a counterexample, which may import what the
// repository itself imports.
func typedSample(t *testing.T, path, src string) checked {
	t.Helper()
	p := sample(t, path, src)
	var imports types.Importer
	if len(p.imports) > 0 {
		var err error
		if imports, err = compiled(".", p.imports...); err != nil {
			t.Fatal(err)
		}
	}

	c, err := check(p, imports)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// apart returns the packages that a command must not link: an operator's binary contains no agent
// framework, and nothing that is shipped contains test helpers.
func apart() map[string][]string {
	helpers := []string{"internal/assenttest", "internal/testwait", "internal/must"}

	return map[string][]string{
		"cmd/assent":       append([]string{"agent", "agent/content"}, helpers...),
		"cmd/agf-validate": append([]string{"agent", "agent/content"}, helpers...),
	}
}

// checkReach complains about commands that link a package which they
// must not.
func checkReach(apart map[string][]string, packages []pkg) []string {
	imports := map[string][]string{}
	for _, p := range packages {
		imports[p.path] = p.imports
	}
	var out []string
	for command, barred := range apart {
		if _, ok := imports[command]; !ok {
			out = append(out, "there is no command "+command)
		}
		for path, by := range reached(command, imports) {
			if slices.Contains(barred, path) {
				out = append(out, fmt.Sprintf("%s links %s, which %s imports", command, path, by))
			}
		}
	}

	return out
}

// reached returns the packages that one package links, each with a
// package that imports it.
func reached(from string, imports map[string][]string) map[string]string {
	out := map[string]string{}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, imported := range imports[queue[0]] {
			path, ours := strings.CutPrefix(imported, modulePath+"/")
			if _, seen := out[path]; ours && !seen {
				out[path] = queue[0]
				queue = append(queue, path)
			}
		}
	}

	return out
}

func TestReach(t *testing.T) { report(t, checkReach(apart(), must(t, repository))) }

func TestReachCheckFails(t *testing.T) {
	command := sample(t, "cmd/x", `package main; import _ "github.com/assent-dev/assent/rap"`)
	between := sample(t, "rap", `package rap; import _ "github.com/assent-dev/assent/agent"`)
	agent := sample(t, "agent", `package agent`)
	barred := map[string][]string{"cmd/x": {"agent"}}
	catches(t, checkReach(barred, []pkg{command, between, agent}), "cmd/x links agent, which rap imports")
	catches(t, checkReach(barred, []pkg{agent}), "there is no command cmd/x")
}
