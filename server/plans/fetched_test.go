package plans_test

import (
	"bytes"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/assent-dev/assent/policy/policyhttp"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/plans"
)

const onQuote = `schema_version: "1.0.0"
policy_ref: fetched
applies: implicit
rules: [{id: r, match: {targets: ["*"]}, approval: true}]
`

// TestFetchedPoliciesStandBesideDirectories checks that both decide, that the digest covers
// both, and that a copy that becomes too old denies at that moment, even before Run looks
// for changes.
func TestFetchedPoliciesStandBesideDirectories(t *testing.T) {
	var bundle bytes.Buffer
	if _, err := policyhttp.WriteBundle(&bundle, fstest.MapFS{"q.policy.yaml": {Data: []byte(onQuote)}}); err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(policyhttp.NewHandler(bundle.Bytes()))
	defer site.Close()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	registry, err := policyhttp.New(policyhttp.Config{
		URL:    site.URL,
		MaxAge: time.Minute,
		Now:    func() time.Time { return now },
	})
	must(t, err)
	registry.Refresh(t.Context())
	dir := write(t, map[string]string{
		"a.agf.yaml":          agent("a", ""),
		"rules/l.policy.yaml": strings.ReplaceAll(onQuote, "fetched", "local"),
	})
	p := load(t, plans.Config{Agents: []string{dir}, Policies: []string{dir + "/rules"}, Registry: registry})
	c, err := p.Plan(t.Context(), "", "a")
	must(t, err)
	d := c.Plan.Decide(&resolve.Call{Kind: resolve.Tool, Tool: "quote"})
	var refs []string
	for _, r := range d.Reasons {
		if r.Policy != "" {
			refs = append(refs, r.Policy)
		}
	}
	if strings.Join(refs, ",") != "fetched,local" {
		t.Errorf("%+v", d)
	}
	parts := p.Parts()
	if parts[1].Count != 2 || !strings.HasPrefix(parts[1].Digest, "sha256:") || len(parts[1].Problems) > 0 {
		t.Errorf("%+v", parts[1])
	}

	now = now.Add(2 * time.Minute)
	_, err = p.Plan(t.Context(), "", "a")
	var unusable *plans.UnusableError
	if !errors.As(err, &unusable) || !strings.Contains(err.Error(), "too old") {
		t.Errorf("a copy that is too old: %v", err)
	}
	if !p.Reload() || len(p.Parts()[1].Problems) != 1 || p.Parts()[1].Problems[0].Kept {
		t.Errorf("%+v", p.Parts()[1])
	}
	registry.Refresh(t.Context())
	if _, err = p.Plan(t.Context(), "", "a"); !p.Reload() {
		t.Errorf("it is back, and nothing is loaded: %v", err)
	}
	if _, err = p.Plan(t.Context(), "", "a"); err != nil || len(p.Problems()) > 0 {
		t.Errorf("%v %v", err, p.Problems())
	}
}
