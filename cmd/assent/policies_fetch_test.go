package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/cmd/internal/registry"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy/policyhttp"
)

// TestCIChecksAgainstTheLiveRegistry: assent policies fetch downloads the current content of the
// registry, and agf-validate checks with it. The two kinds of copies can't be mixed up. If the
// content can't be fetched or is invalid, the copy is left unchanged.
func TestCIChecksAgainstTheLiveRegistry(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	writeFiles(t, dir, map[string]string{
		"desk.agf.yaml": strings.Replace(testAgent, "action_space:",
			"constraints: {governance_policies: [{policy_ref: acme.all}]}\naction_space:", 1),
		"rules/all.policy.yaml": choosingPolicy,
		"token":                 "sesame\n",
	})
	var holds atomic.Value
	holds.Store(guarded(bundleOf(t, at("rules"))))
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		holds.Load().(http.Handler).ServeHTTP(w, r)
	}))
	defer site.Close()
	const settings = ", token_file: token, cache: cache.json}\napprove_on_timeout: true\n"
	file := testfiles.Write(t, at("decisions.yaml"), "registry: {url: \""+site.URL+"/p.json\""+settings)
	validate := validator(t)
	check := func(code int, words ...string) {
		t.Helper()
		out, got := validate("--config", file, "--registry-age", "10m", at("desk.agf.yaml"))
		for _, w := range words {
			if got != code || !strings.Contains(out, w) {
				t.Errorf("agf-validate: exit %d, want %d with %q\n%s", got, code, w, out)
			}
		}
	}
	fetch := func(code int, words string, args ...string) {
		t.Helper()
		out, errOut, got := ran("", append([]string{"policies", "fetch", "--decisions", file}, args...)...)
		if got != code || !strings.Contains(out+errOut, words) {
			t.Errorf("fetch %q: exit %d, want %d with %q\n%s%s", args, got, code, words, out, errOut)
		}
	}

	check(term.ExitFailure, "there is no copy of it", "assent policies fetch --decisions "+file)
	fetch(term.ExitOK, "holds 1 policies")
	check(term.ExitOK, "no findings", "its policies are those of the copy "+at("cache.json"))
	kept := testfiles.Read(t, at("cache.json"))

	testfiles.Write(t, at("rules/all.policy.yaml"), strings.Replace(choosingPolicy, "acme.all", "acme.new", 1))
	holds.Store(guarded(bundleOf(t, at("rules"))))
	check(term.ExitOK, "no findings")
	fetch(term.ExitOK, "holds 1 policies")
	check(term.ExitFindings, `"acme.all" is not in the registry`)

	testfiles.Write(t, at("cache.json"), kept)
	for name, answer := range map[string]http.HandlerFunc{
		"status 502":        refuses(http.StatusBadGateway),
		"schema_version":    sends(`{"schema_version":"9","policies":[]}`),
		"status 401":        refuses(http.StatusUnauthorized),
		"no policy is here": sends(`{"schema_version":"1.0.0","policies":[]}`),
		"the answer is no JSON": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("<html>"))
		},
	} {
		holds.Store(http.Handler(answer))
		fetch(term.ExitFailure, name)
		if testfiles.Read(t, at("cache.json")) != kept {
			t.Errorf("%s: the copy has changed", name)
		}
	}

	check(term.ExitOK, "no findings")
	testFetchedFiles(t, file, at("out"), func() { holds.Store(guarded(bundleOf(t, at("rules")))) })

	testfiles.Write(t, file, "registry: {url: \""+site.URL+"/p.json\", token_file: token}\n")
	fetch(term.ExitFailure, "registry.cache: expected the file to write to, or --out DIR")
	testfiles.Write(t, file, "policies: [rules]\n")
	fetch(term.ExitFailure, "names no registry")
}

// refuses answers with a status alone.
func refuses(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// sends answers with JSON.
func sends(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(text))
	}
}

// testFetchedFiles: --out writes the policies byte for byte, into a
// directory that holds nothing else.
func testFetchedFiles(t *testing.T, file, out string, back func()) {
	t.Helper()
	back()
	text, errOut, code := ran("", "policies", "fetch", "--decisions", file, "--out", out, "--json")
	var told struct {
		Origin, Digest, Written string
		Policies                int
	}
	if err := json.Unmarshal([]byte(text), &told); err != nil || code != 0 || told.Policies != 1 ||
		told.Written != out ||
		!strings.HasPrefix(told.Digest, "sha256:") ||
		!strings.HasPrefix(told.Origin, "http://") {
		t.Errorf("%v %d %s%s", err, code, text, errOut)
	}

	rules := filepath.Join(filepath.Dir(file), "rules")
	for _, dir := range []string{rules, out} {
		if found, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(found) != 1 {
			t.Errorf("%v %q", err, found)
		}
	}

	const name = "all.policy.yaml"
	published := testfiles.Read(t, filepath.Join(rules, name))
	if testfiles.Read(t, filepath.Join(out, name)) != published {
		t.Error("the policy is not as it was published")
	}
	if _, errOut, code := ran("", "policies", "fetch", "--decisions", file, "--out", out); code != term.ExitFailure ||
		!strings.Contains(errOut, "is not empty") {
		t.Errorf("into what is there: %d %s", code, errOut)
	}
}

// opened returns the registry that a configuration names.
func opened(t *testing.T, file string) *policyhttp.Registry {
	t.Helper()
	chosen, err := term.ReadDecisions(file, nil, os.Stderr)
	must.Do(t, err)
	r, err := registry.Open(chosen, func(err error) { t.Error(err) })
	must.Do(t, err)
	return r
}

// TestTheTokenOfARegistryMayChange: it is read before each request, and
// a registry that refuses one goes on with the next.
func TestTheTokenOfARegistryMayChange(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"rules/all.policy.yaml": choosingPolicy, "token": "sesame"})
	site := httptest.NewServer(guarded(bundleOf(t, filepath.Join(dir, "rules"))))
	defer site.Close()
	file := testfiles.Write(t, filepath.Join(dir, "decisions.yaml"),
		"registry: {url: \""+site.URL+"\", token_file: token}\n")
	r := opened(t, file)
	for _, step := range []struct{ token, failure string }{
		{"sesame", ""},
		{"stale", "status 401"},
		{" \n", "registry.token_file: " + filepath.Join(dir, "token") + " is empty"},
		{"sesame\n", ""},
	} {
		testfiles.Write(t, filepath.Join(dir, "token"), step.token)
		r.Refresh(t.Context())
		told := ""
		if failure := r.State().Failure; failure != nil {
			told = failure.Error()
		}
		if !strings.Contains(told, step.failure) || (step.failure == "") != (told == "") {
			t.Errorf("token %q: %q, want %q", step.token, told, step.failure)
		}
	}
}

// TestAConfirmedCopyIsAsGoodAsNew: when a registry says that nothing
// has changed, the time stamp of its copy says when.
func TestAConfirmedCopyIsAsGoodAsNew(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"rules/all.policy.yaml": choosingPolicy})
	site := httptest.NewServer(bundleOf(t, filepath.Join(dir, "rules")))
	defer site.Close()
	file := testfiles.Write(t, filepath.Join(dir, "decisions.yaml"),
		"registry: {url: \""+site.URL+"\", cache: cache.json}\n")
	r := opened(t, file)
	r.Refresh(t.Context())
	cache := filepath.Join(dir, "cache.json")
	before := testfiles.Read(t, cache)
	long := time.Now().Add(-48 * time.Hour)
	must.Do(t, os.Chtimes(cache, long, long))
	r.Refresh(t.Context())
	info, err := os.Stat(cache)
	if err != nil || !info.ModTime().After(long) || testfiles.Read(t, cache) != before {
		t.Errorf("%v %v", err, info)
	}
}
