package repotest

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// layer is one package of the repository with its level. A package may
// only import packages of lower levels.
type layer struct {
	path  string // "lint/*" means everything below lint
	level int
}

// The levels on which code is pure: bytes in, answers out, fit for WASM
// and for any process. Up to the clockless levels it also decides
// without a clock; asking, one level up, is handed one.
const (
	pureLevels      = 8
	clocklessLevels = 7
)

// layers lists every package. A new package needs a line here, so its author has to choose
// its level.
func layers() []layer {
	return []layer{
		{"internal/safetext", 0},
		{"internal/pattern", 0},
		{"value", 1},
		{"diag", 1},
		{"internal/automata", 1},
		{"internal/yamldoc", 2},
		{"internal/jsonschema", 2},
		{"internal/document", 3},
		{"internal/jsonmsg", 2},
		{"approval/ledger", 2},
		{"condition", 3},
		{"template", 3},
		{"schema", 4},
		{"policy", 5},
		{"resolve", 6},
		{"posture", 7},
		{"agent/content", 7},
		{"agent/runstate", 8},
		{"lint", 7},
		{"lint/*", 7},
		{"lint/policytest", 8},
		{"lint/sides", 8},
		{"clients/playground/engine", 9},
		{"clients/playground/wasm", 10},
		{"clients/wasm", 10},
		{"resolve/shellfacts", 2},
		{"clients/playground/site", 15}, // builds the page, with its tests
		{"rap/wire", 7},
		{"mcp/wire", 7},
		{"mcp/upstream", 11},
		{"mcp/server", 10},
		{"internal/keyset", 9},
		{"permit", 10},
		{"server/permits", 11},
		{"mcp/auth", 11},
		{"mcp/auth/authtest", 11}, // helper of tests
		{"mcp", 12},
		{"mcp/mcptest", 11},
		{"mcp/mcptest/gosdk", 11},
		{"mcp/catalog", 7},
		{"mcp/pinfile", 9},
		{"approval/form", 2},
		{"approval/info", 2},
		{"approval/signin", 2},
		{"approval", 8},
		{"approval/hold", 9},
		{"agent", 10},
		{"policy/policyhttp", 9},
		{"internal/guard", 9},
		{"internal/settings", 9},
		{"internal/backoff", 9},
		{"internal/sse", 1},
		{"internal/wait", 8},
		{"store", 9},
		{"server/openapi", 10},
		{"agent/internal/reid", 8},
		{"agent/internal/rounds", 11},
		{"agent/layer", 12},
		{"agent/compat", 13},
		{"agent/filestore", 11},
		{"internal/durable", 10},
		{"internal/durable/durabletest", 14},
		{"rap/peer", 10},
		{"agent/openai", 11},
		{"agent/anthropic", 11},
		{"agent/agui", 11},
		{"agent/a2a", 11},
		{"agent/raptools", 13},
		{"agent/serve", 12},
		{"approval/people", 6},
		{"approval/quorum", 7},
		{"server/directory", 10},
		{"client", 11},
		{"server/notify", 10},
		{"server/plans", 10},
		{"server/candidate", 11},
		{"server/apidocs", 12},
		{"server/administration", 10},
		{"server/tokens", 11},
		{"store/watermark", 10},
		{"server/quota", 10},
		{"server/feed", 10},
		{"store/internal/sqlstore", 10},
		{"store/*", 11}, // engines
		{"server/notify/*", 11},
		{"server/auth", 11},
		{"server/inbox", 12},
		{"server/witness", 11},
		{"rap/internal/raptest", 12},
		{"rap/internal/*", 11},
		{"rap", 11},
		{"mcp/config", 11},
		{"rap/runtime", 12},
		{"rap/gateway", 12},
		{"server", 13},
		{"cmd/internal/testfiles", 13}, // helper of tests
		{"cmd/internal/term", 12},
		{"cmd/internal/system", 13},
		{"cmd/internal/registry", 13},
		{"cmd/internal/keyfile", 14},
		{"cmd/internal/fileerrors", 13},
		{"cmd/internal/decide", 14},
		{"cmd/internal/editor", 14},
		{"cmd/internal/channels", 13},
		{"cmd/internal/stores", 13},
		{"cmd/internal/config", 14},
		{"cmd/internal/remote", 15},
		{"cmd/internal/edits", 13},
		{"cmd/internal/clients", 15},
		{"cmd/internal/rapcall", 15},
		{"cmd/internal/mcpcmd", 15},
		{"cmd/internal/audit", 16},
		{"cmd/internal/request", 16},
		{"cmd/internal/operate", 16},
		{"cmd/internal/answer", 17},
		{"cmd/internal/hook", 17},
		{"cmd/internal/hookfile", 18},
		{"cmd/internal/demo", 18},
		{"agent/examples/internal/*", 13}, // what examples share
		{"agent/examples", 14},
		{"agent/examples/*", 14},
		{"agent/internal/probe", 14}, // against software of others
		{"internal/golden", 14},      // helper of tests
		{"internal/growth", 14},      // the same
		{"internal/testbin", 14},     // the same
		{"internal/testbin/build", 15},
		{"internal/testdns", 14},    // the same
		{"internal/testwait", 10},   // the same; other helpers wait with it
		{"internal/chromium", 11},   // the same
		{"internal/must", 14},       // the same
		{"internal/assenttest", 14}, // the same
		{"internal/safetext/safetexttest", 14},
		{"internal/crashtest", 14},
		{"agent/internal/replay", 14}, // recorded models for tests and examples
		{"lint/linttest", 14},         // helpers of the rules' tests
		{"store/storetest", 14},       // what both engines pass
		{"store/postgres/pgtest", 14},
		{"lint/gen", 14},
		{"cmd/*", 19},
		{"examples", 14},
		{"internal/repotest", 14},
	}
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
		"golang.org/x/mod":                         "approval/ledger",
		"modernc.org/sqlite":                       "store/sqlite*",
		"github.com/jackc/pgx":                     "store/postgres*",
		"github.com/coreos/go-oidc":                "server/auth",
		"github.com/go-jose/go-jose":               "mcp/auth* internal/keyset permit",
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

// find returns the layer of a package, the one of its own name before
// one with a star.
func find(table []layer, path string) (layer, bool) {
	best, ok := layer{}, false
	for _, r := range table {
		if inside(r.path, path) && len(r.path) >= len(best.path) {
			best, ok = r, true
		}
	}
	return best, ok
}

// checkLayers complains about packages without a layer and about
// imports that go up or sideways.
func checkLayers(table []layer, packages []pkg) []string {
	var out []string
	for _, p := range packages {
		from, ok := find(table, p.path)
		if !ok {
			out = append(
				out,
				fmt.Sprintf("package %s has no layer: add it to layers() in layers_test.go", p.path),
			)
			continue
		}

		for _, imported := range p.imports {
			if to, ours := strings.CutPrefix(imported, modulePath+"/"); ours {
				out = append(out, checkArrow(table, p.path, from, to)...)
			} else {
				out = append(out, checkOutside(p.path, from, imported)...)
			}
		}
	}

	return out
}

func checkArrow(table []layer, path string, from layer, to string) []string {
	target, ok := find(table, to)
	if !ok || target.level < from.level || sameFolder(path, to) {
		return nil // a target without a layer is reported for itself
	}
	return []string{
		fmt.Sprintf(
			"%s (level %d) imports %s (level %d): arrows go down only",
			path,
			from.level,
			to,
			target.level,
		),
	}
}

// sameFolder holds for packages of the same top folder that belong
// together by design: lint and its rules.
func sameFolder(a, b string) bool {
	return strings.HasPrefix(a+"/", "lint/") && strings.HasPrefix(b+"/", "lint/")
}

func checkOutside(path string, from layer, imported string) []string {
	if from.level <= pureLevels && slices.Contains(outside(), imported) {
		return []string{
			fmt.Sprintf("%s imports %s: lint, resolve and below stay free of the outside", path, imported),
		}
	}
	return nil
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
func checkClock(table []layer, packages []checked) []string {
	var out []string
	for _, c := range packages {
		if r, _ := find(table, c.pkg.path); r.level > clocklessLevels {
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

func TestClock(t *testing.T) { report(t, checkClock(layers(), must(t, typedRepository))) }

func TestLayerChecksFail(t *testing.T) {
	table := layers()
	up := sample(t, "value", `package value; import _ "github.com/assent-dev/assent/diag"`)
	catches(t, checkLayers(table, []pkg{up}), "arrows go down only")
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
	catches(t, checkClock(table, []checked{clock}), "resolve/sample.go:1: time.Now")
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
	exports := map[string]string{}
	if len(p.imports) > 0 {
		var err error
		if exports, err = compiled(".", p.imports...); err != nil {
			t.Fatal(err)
		}
	}

	c, err := check(p, exports)
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
