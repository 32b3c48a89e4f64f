package plans_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/plans"
)

// away is a registry that does not answer until back is set.
type away struct {
	*policy.Set
	back atomic.Bool
}

func (a *away) Err() error {
	if a.back.Load() {
		return a.Set.Err()
	}
	return errors.New("the registry does not answer")
}

func (a *away) Snapshot() *policy.Set { return a.Set }

func (*away) Findings() []diag.Finding { return nil }

// chosen are plans with a decision configuration in a directory.
type chosen struct {
	dir      string
	registry *away // of every configuration that names one
	used     int   // registries in use
	log      bytes.Buffer
}

func (c *chosen) load(t *testing.T, deny bool) *plans.Plans {
	t.Helper()
	set, findings := policy.NewSet()
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	c.registry = &away{Set: set}

	return load(t, plans.Config{
		Agents:     []string{filepath.Join(c.dir, "a.agf.yaml")},
		DenyBroken: deny,
		Logger:     slog.New(slog.NewTextHandler(&c.log, nil)),
		Decisions: &plans.Decisions{
			File:   filepath.Join(c.dir, "decisions.yaml"),
			Open:   c.open,
			Retain: func(used []policy.Registry) { c.used = len(used) },
		},
	})
}

func (c *chosen) open(config *resolve.Config) (plans.Sources, error) {
	var from plans.Sources
	for _, dir := range config.Policies {
		from.Policies = append(from.Policies, filepath.Join(c.dir, dir))
	}
	if config.Registry != nil && config.Registry.TokenFile != "" {
		return from, errors.New("decisions.yaml: registry.token_file: it is not there")
	}
	if config.Registry != nil {
		from.Registry = c.registry
	}

	return from, nil
}

// undeclared returns the outcome of calls to tools that the agent's file does not declare.
func undeclared(t *testing.T, p *plans.Plans) string {
	t.Helper()
	c, err := p.Plan(t.Context(), "", "a")
	if err != nil {
		return err.Error()
	}

	return c.Plan.Decide(&resolve.Call{Kind: resolve.Tool, Tool: "nobody"}).Outcome.String()
}

// TestTheDecisionConfigurationIsReloaded checks that a change takes effect at the next
// look, and that a broken file leaves the last good one in force, or denies if the owner
// wants that, with the position of the error.
func TestTheDecisionConfigurationIsReloaded(t *testing.T) {
	for _, deny := range []bool{false, true} {
		c := &chosen{dir: write(t, map[string]string{
			"a.agf.yaml":     agent("a", ""),
			"decisions.yaml": "permit_age: 10m\n",
		})}
		p := c.load(t, deny)
		first := p.Chosen().Digest()
		if undeclared(t, p) != "deny" || p.Parts()[2].Digest != first || p.Reload() {
			t.Errorf("at the start: %+v", p.Parts())
		}
		if now := reloaded(t, p, c.dir, map[string]string{"decisions.yaml": "undeclared: ask\n"}); len(now) > 0 {
			t.Fatal(now)
		}
		second := p.Chosen().Digest()
		if undeclared(t, p) != "ask" || second == first || p.Parts()[2].Digest != second {
			t.Errorf("changed: %s %+v", undeclared(t, p), p.Parts())
		}

		now := reloaded(t, p, c.dir, map[string]string{"decisions.yaml": "undeclared: deny\npermit_age: 25h\n"})
		problem(t, now[:1], plans.Configuration, "decisions.yaml:2:13: ", !deny)
		want := "ask"
		if deny {
			want = "policy registry refused"
		}
		if got := undeclared(t, p); !strings.Contains(got, want) || p.Chosen().Digest() != second {
			t.Errorf("broken, deny %t: %s by %+v", deny, got, p.Chosen())
		}
		if !strings.Contains(c.log.String(), "decisions.yaml:2:13: ") {
			t.Errorf("the log does not say where:\n%s", c.log.String())
		}
		must(t, os.Truncate(filepath.Join(c.dir, "decisions.yaml"), 0))
		if !p.Reload() || !strings.Contains(p.Problems()[0].String(), "holds no document") {
			t.Errorf("emptied: %v", p.Problems())
		}
		must(t, os.Remove(filepath.Join(c.dir, "decisions.yaml")))
		if !p.Reload() || !strings.Contains(p.Problems()[0].String(), "no such file") || p.Chosen().Digest() != second {
			t.Errorf("deleted: %v", p.Problems())
		}
		if got := undeclared(t, p); !strings.Contains(got, want) && !deny {
			t.Errorf("deleted: %s", got)
		}
		if now := reloaded(t, p, c.dir, map[string]string{"decisions.yaml": "{}\n"}); len(now) > 0 ||
			undeclared(t, p) != "deny" || outcome(p, "a") != "allow" {
			t.Errorf("mended: %v %s", now, undeclared(t, p))
		}
	}
}

// TestAChangedConfigurationIsInForceWhole checks that a configuration's choices are never
// combined with the previous one's policies. It takes effect only when its directories are
// valid and its registry has answered.
func TestAChangedConfigurationIsInForceWhole(t *testing.T) {
	c := &chosen{dir: write(t, map[string]string{
		"a.agf.yaml":          agent("a", ""),
		"decisions.yaml":      "policies: [one]\n",
		"one/p.policy.yaml":   policyText,
		"empty/not-a-policy":  "",
		"other/o.policy.yaml": strings.ReplaceAll(policyText, "deny: \"No.\"", "approval: true"),
	})}
	p := c.load(t, false)
	for text, why := range map[string]string{
		"undeclared: ask\npolicies: [empty]\n":                                         "empty",
		"undeclared: ask\npolicies: [gone]\n":                                          "gone",
		"undeclared: ask\nregistry: {url: \"https://a.example\", token_file: token}\n": "registry.token_file",
		"undeclared: ask\nregistry: {url: \"https://a.example\"}\n":                    "does not answer",
	} {
		problem(t, reloaded(t, p, c.dir, map[string]string{"decisions.yaml": text}), plans.Configuration, why, true)
		if undeclared(t, p) != "deny" || outcome(p, "a") != "deny" || p.Registry() != nil {
			t.Errorf("%s: %s, %s", text, undeclared(t, p), outcome(p, "a"))
		}
	}

	reloaded(t, p, c.dir, map[string]string{
		"decisions.yaml": "undeclared: ask\npolicies: [other]\nregistry: {url: \"https://a.example\"}\n",
	})
	c.registry.back.Store(true)
	if !p.Reload() || len(p.Problems()) > 0 || undeclared(t, p) != "ask" || outcome(p, "a") != "ask" || c.used != 1 {
		t.Errorf("the registry is there: %v %s, %d in use", p.Problems(), undeclared(t, p), c.used)
	}
	c.registry.back.Store(false)
	if got := outcome(p, "a"); !strings.Contains(got, "does not answer") {
		t.Errorf("the registry in force is away: %s", got)
	}
	if now := reloaded(t, p, c.dir, map[string]string{"decisions.yaml": "policies: [one]\n"}); len(now) > 0 ||
		c.used != 0 || outcome(p, "a") != "deny" {
		t.Errorf("without a registry: %v, %d in use", now, c.used)
	}
}

// TestLoadRefusesABrokenConfiguration checks the first load, which has no good one to keep.
func TestLoadRefusesABrokenConfiguration(t *testing.T) {
	c := &chosen{dir: write(t, map[string]string{
		"a.agf.yaml":     agent("a", ""),
		"decisions.yaml": "undeclared: allow\n",
	})}
	_, err := plans.Load(plans.Config{
		Agents:    []string{filepath.Join(c.dir, "a.agf.yaml")},
		Decisions: &plans.Decisions{File: filepath.Join(c.dir, "decisions.yaml"), Open: c.open},
	})
	if err == nil || !strings.Contains(err.Error(), "decisions.yaml:1:13: ") {
		t.Errorf("%v", err)
	}
	put(t, c.dir, map[string]string{"decisions.yaml": "{}\n"})
	if p := c.load(t, false); !slices.Equal(p.Agents(), []string{"a"}) {
		t.Errorf("%v", p.Agents())
	}
}
