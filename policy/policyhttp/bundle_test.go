package policyhttp_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/policyhttp"
)

// TestWriteBundle shows a bundle as the contract prints it.
func TestWriteBundle(t *testing.T) {
	got := string(bundleOf(t, "acme.b", "acme.a"))
	want := `{"schema_version":"1.0.0","policies":[` +
		`{"name":"acme.a.policy.yaml","text":"schema_version: \"1.0.0\"\npolicy_ref: acme.a\napplies: ` +
		`implicit\nrules:\n  - {id: all, approval: true}\n"},` +
		`{"name":"acme.b.policy.yaml","text":"schema_version: \"1.0.0\"\npolicy_ref: acme.b\napplies: ` +
		`implicit\nrules:\n  - {id: all, approval: true}\n"}]}` + "\n"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestWriteBundleRefuses(t *testing.T) {
	good := &fstest.MapFile{Data: []byte(doc("acme.a", "implicit"))}
	for name, tree := range map[string]fstest.MapFS{
		"policy-none-found":    {},
		"policy-file-name":     {"a.policy.yaml": good, "b.policy.yml": good},
		"policy-duplicate-ref": {"a.policy.yaml": good, "b.policy.yaml": good},
		"not-a-policy": {
			"a.policy.yaml": good,
			"b.policy.yaml": &fstest.MapFile{Data: []byte("deny_tools: [a]")},
		},
	} {
		var b strings.Builder
		findings, err := policyhttp.WriteBundle(&b, tree)
		if _, ok := errors.AsType[*policy.RefusedError](err); !ok || !strings.Contains(rules(findings), name) ||
			b.Len() > 0 {
			t.Errorf("%s: %v, %v, wrote %q", name, err, findings, b.String())
		}
	}
}

func TestWriteBundleReportsAFailedWrite(t *testing.T) {
	_, err := policyhttp.WriteBundle(
		full{},
		fstest.MapFS{"a.policy.yaml": &fstest.MapFile{Data: []byte(doc("acme.a", "implicit"))}},
	)
	if !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
}

var errFull = errors.New("disk full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestHandler(t *testing.T) {
	h := policyhttp.NewHandler([]byte("{}"))
	ask := func(method, tag string) *http.Response {
		req := httptest.NewRequest(method, "/", nil)
		req.Header.Set("If-None-Match", tag)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		return w.Result()
	}
	first := ask(http.MethodGet, "")
	tag := first.Header.Get("ETag")
	if first.StatusCode != http.StatusOK || first.Header.Get("Content-Type") != "application/json" ||
		!strings.HasPrefix(tag, `"sha256:`) {
		t.Errorf("%d %v", first.StatusCode, first.Header)
	}
	if got := ask(http.MethodGet, tag).StatusCode; got != http.StatusNotModified {
		t.Errorf("with the tag: %d", got)
	}
	if got := ask(http.MethodPost, ""); got.StatusCode != http.StatusMethodNotAllowed ||
		got.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d %v", got.StatusCode, got.Header)
	}
}

// FuzzBundle checks that for any response the registry has policies or a reason why not.
func FuzzBundle(f *testing.F) {
	f.Add(bundleOf(f, "acme.a", "acme.b"))
	f.Add([]byte(`{"schema_version":"1.0.0","policies":[{"name":"a.policy.yaml","text":"rules: []"}]}`))
	f.Add([]byte(`{"policies":[],"policies":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(body)
		})
		r := open(t, policyhttp.Config{URL: "https://acme.example/", Transport: direct{answer}})
		findings := r.Refresh(t.Context())
		if held := len(r.Snapshot().Policies()); (held == 0) != (r.Err() != nil) ||
			r.Err() != nil && len(findings) == 0 {
			t.Fatalf("%d policies, %v, %v", held, r.Err(), findings)
		}
	})
}
