package policyhttp_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/policyhttp"
)

var _ policy.Registry = (*policyhttp.Registry)(nil)

// doc writes a policy with one rule.
func doc(ref, applies string) string {
	return fmt.Sprintf(
		"schema_version: \"1.0.0\"\npolicy_ref: %s\napplies: %s\nrules:\n  - {id: all, approval: true}\n",
		ref,
		applies,
	)
}

// bundleOf makes a bundle of implicit policies.
func bundleOf(t testing.TB, refs ...string) []byte {
	t.Helper()
	tree := fstest.MapFS{}
	for _, ref := range refs {
		tree[ref+policy.Suffix] = &fstest.MapFile{Data: []byte(doc(ref, "implicit"))}
	}
	var b strings.Builder
	if findings, err := policyhttp.WriteBundle(&b, tree); err != nil {
		t.Fatal(err, findings)
	}
	return []byte(b.String())
}

// host is a real server on loopback whose behaviour can be changed
// while it runs.
type host struct {
	*httptest.Server
	handler atomic.Pointer[http.HandlerFunc]
	asked   atomic.Int64
	status  atomic.Int64 // of the last answer
}

func newHost(t testing.TB, start func(*httptest.Server)) *host {
	h := &host{}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		h.asked.Add(1)
		(*h.handler.Load())(recorder{w, &h.status}, req)
	}))
	h.Server.Config.ErrorLog = log.New(io.Discard, "", 0) // failed handshakes are what we test
	start(h.Server)
	t.Cleanup(h.Close)
	return h
}

func (h *host) serve(f http.HandlerFunc) { h.handler.Store(&f) }

func (h *host) bundle(body []byte) { h.serve(policyhttp.NewHandler(body).ServeHTTP) }

// recorder notes the status of an answer.
type recorder struct {
	http.ResponseWriter
	status *atomic.Int64
}

func (r recorder) WriteHeader(code int) {
	r.status.Store(int64(code))
	r.ResponseWriter.WriteHeader(code)
}

func (r recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// clock is a clock that only the test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func open(t testing.TB, cfg policyhttp.Config) *policyhttp.Registry {
	t.Helper()
	r, err := policyhttp.New(cfg)
	must.Do(t, err)
	return r
}

func refs(policies []*policy.Policy) string {
	var all []string
	for _, p := range policies {
		all = append(all, p.Ref)
	}
	return strings.Join(all, " ")
}

func rules(findings []diag.Finding) string {
	var all []string
	for _, f := range findings {
		all = append(all, f.Rule)
	}
	return strings.Join(all, " ")
}

func TestRegistryFollowsItsServer(t *testing.T) {
	h := newHost(t, (*httptest.Server).Start)
	r := open(t, policyhttp.Config{URL: h.URL + "/policies.json"})
	if r.Err() == nil || len(r.Implicit()) > 0 || rules(r.Findings()) != policy.RuleUnavailable {
		t.Fatalf("before the first fetch: %v", r.Err())
	}

	h.bundle(bundleOf(t, "acme.a", "acme.b"))
	if findings := r.Refresh(t.Context()); len(findings) > 0 || r.Err() != nil {
		t.Fatalf("%v %v", r.Err(), findings)
	}
	before := r.Snapshot()
	if p, ok := r.Policy("acme.a"); !ok || p.File != h.URL+"/policies.json#acme.a.policy.yaml" {
		t.Errorf("acme.a: %t %+v", ok, p)
	}

	if findings := r.Refresh(t.Context()); len(findings) > 0 || h.status.Load() != http.StatusNotModified ||
		r.Snapshot() != before {
		t.Errorf("the same bundle: status %d, %v", h.status.Load(), findings)
	}

	h.bundle(bundleOf(t, "acme.c"))
	if findings := r.Refresh(t.Context()); len(findings) > 0 || refs(r.Implicit()) != "acme.c" {
		t.Errorf("a new bundle: %s %v", refs(r.Implicit()), findings)
	}
	if refs(before.Implicit()) != "acme.a acme.b" {
		t.Error("a snapshot changed")
	}
}

// TestLastGoodCopy walks through an outage: within MaxAge the copy is
// used and a finding says so, then everything is denied, then the
// server comes back.
func TestLastGoodCopy(t *testing.T) {
	h, clk := newHost(t, (*httptest.Server).Start), newClock()
	r := open(t, policyhttp.Config{URL: h.URL, MaxAge: time.Hour, Now: clk.now})
	good := bundleOf(t, "acme.a")
	h.bundle(good)
	r.Refresh(t.Context())

	h.serve(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "secret detail", http.StatusServiceUnavailable)
	})
	clk.pass(40 * time.Minute)
	findings := r.Refresh(t.Context())
	if r.Err() != nil || refs(r.Implicit()) != "acme.a" || rules(findings) != policy.RuleStale {
		t.Fatalf("young copy: %v, %v", r.Err(), findings)
	}
	if f := findings[0]; f.Stops || f.Severity != diag.Warning || f.File != h.URL ||
		f.Message != "the policies in use were fetched 40m0s ago; the last fetch failed: the server answered with "+
			"status 503" {
		t.Errorf("finding: %+v", f)
	}

	clk.pass(20 * time.Minute)
	if r.Err() != nil {
		t.Errorf("exactly as old as allowed: %v", r.Err())
	}
	clk.pass(time.Second)
	err, ok := errors.AsType[*policyhttp.UnavailableError](r.Err())
	if !ok || err.Age != time.Hour+time.Second || err.Cause == nil {
		t.Fatalf("old copy: %v", r.Err())
	}
	want := "policy registry " + h.URL + ": the last good copy is 1h0m1s old, which is too old: the server answered " +
		"with status 503"
	if err.Error() != want || err.Unwrap() != err.Cause {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if _, ok := r.Policy("acme.a"); ok || len(r.Implicit()) > 0 || r.Snapshot().Err() == nil {
		t.Error("an old copy still answers")
	}
	if f := r.Findings(); rules(f) != policy.RuleUnavailable || !f[0].Stops {
		t.Errorf("findings: %v", f)
	}

	h.bundle(good)
	if findings := r.Refresh(t.Context()); len(findings) > 0 || r.Err() != nil ||
		h.status.Load() != http.StatusNotModified {
		t.Errorf("back again: %v %v", r.Err(), findings)
	}
}

// TestNotModifiedIsAFreshCopy checks that a confirmed copy is fresh again, even just before it
// expires.
func TestNotModifiedIsAFreshCopy(t *testing.T) {
	h, clk := newHost(t, (*httptest.Server).Start), newClock()
	r := open(t, policyhttp.Config{URL: h.URL, MaxAge: time.Hour, Now: clk.now})
	h.bundle(bundleOf(t, "acme.a"))
	for range 5 {
		r.Refresh(t.Context())
		clk.pass(50 * time.Minute)
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
	}
}

// TestNoRefreshIsNoExcuse checks that a program that stops refreshing denies in the end, without a
// failed fetch.
func TestNoRefreshIsNoExcuse(t *testing.T) {
	h, clk := newHost(t, (*httptest.Server).Start), newClock()
	r := open(t, policyhttp.Config{URL: h.URL, Now: clk.now})
	h.bundle(bundleOf(t, "acme.a"))
	r.Refresh(t.Context())
	clk.pass(policyhttp.DefaultMaxAge + time.Minute)
	if r.Err() == nil {
		t.Error("a copy that nobody confirmed is still used")
	}
	clk.pass(-policyhttp.DefaultMaxAge - time.Hour)
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "the clock went back") {
		t.Errorf("a clock that went back makes the copy young: %v", err)
	}
}

// TestBadAnswers checks that a bad response never replaces the good copy, and that a registry never
// starts from one.
func TestBadAnswers(t *testing.T) {
	good := bundleOf(t, "acme.good")
	json := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			_, _ = io.WriteString(w, body)
		}
	}
	one := func(name, text string) string {
		return fmt.Sprintf(`{"schema_version":"1.0.0","policies":[{"name":%q,"text":%q}]}`, name, text)
	}
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		want   string
	}{
		{"not found", http.NotFound, "status 404"},
		{"no content", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
		}, "status 204"},
		{"a sign-in page", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>")
		}, `no JSON but "text/html"`},
		{"no type", func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			_, _ = w.Write(good)
		}, `no JSON but ""`},
		{"cut off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", fmt.Sprint(len(good)))
			_, _ = w.Write(good[:len(good)-9])
		}, "broke off"},
		{"hung up", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		{"too large", json(strings.Repeat(" ", 5000)), "larger than 4096 bytes"},
		{"another host", func(w http.ResponseWriter, req *http.Request) {
			http.Redirect(w, req, "http://127.0.0.1:1/elsewhere", http.StatusFound)
		}, "away from the registry"},
		{"going round", func(w http.ResponseWriter, req *http.Request) {
			http.Redirect(w, req, "/again", http.StatusFound)
		}, "more than 3 redirects"},
		{"empty", json(""), "policy-bundle"},
		{"broken JSON", json(`{"schema_version":"1.0.0","policies":[`), "policy-bundle"},
		{"a key twice", json(`{"schema_version":"1.0.0","policies":[],"policies":[]}`), "duplicate key"},
		{"a list", json(`[]`), "the bundle is no object"},
		{"another document", json(`{"status":"ok"}`), `has no "schema_version"`},
		{"no policies", json(`{"schema_version":"1.0.0"}`), `has no "policies"`},
		{"another version", json(`{"schema_version":"2.0.0","policies":[]}`), `schema_version is not`},
		{"a number for a version", json(`{"schema_version":1,"policies":[]}`), `schema_version is not`},
		{"policies that are no list", json(`{"schema_version":"1.0.0","policies":{}}`), "policies is no list"},
		{"an unknown field", json(`{"schema_version":"1.0.0","policies":[],"next":"/2"}`), `unknown field "next"`},
		{"an empty bundle", json(`{"schema_version":"1.0.0","policies":[]}`), "policy-none-found"},
		{
			"an entry that is a link",
			json(`{"schema_version":"1.0.0","policies":["a.policy.yaml"]}`),
			"policies[0] is no object",
		},
		{
			"an entry without text",
			json(`{"schema_version":"1.0.0","policies":[{"name":"a.policy.yaml"}]}`),
			`policies[0] has no "text"`,
		},
		{"an entry of numbers", json(`{"schema_version":"1.0.0","policies":[{"name":1,"text":2}]}`), "not both texts"},
		{"a name from outside", json(one("../a.policy.yaml", doc("acme.a", "implicit"))), "no path of a file"},
		{"a name of another kind", json(one("a.yaml", doc("acme.a", "implicit"))), "no path of a file"},
		{
			"a name that hides",
			json(`{"schema_version":"1.0.0","policies":[{"name":"a\u202e.policy.yaml","text":""}]}`),
			"no path of a file",
		},
		{
			"one broken policy",
			json(one("a.policy.yaml", "schema_version: \"1.0.0\"\npolicy_ref: a\nrules: [{id: a, approval: false}]\n")),
			"#a.policy.yaml:3:27: approval: false could only loosen",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHost(t, (*httptest.Server).Start)
			fresh := open(t, policyhttp.Config{URL: h.URL, MaxBytes: 4096})
			h.serve(c.answer)
			fresh.Refresh(t.Context())
			if err := fresh.Err(); err == nil || !strings.Contains(err.Error()+rules(fresh.Findings()), c.want) {
				t.Errorf("alone: %v\nfindings %v\nwant %s", err, fresh.Findings(), c.want)
			}

			r := open(t, policyhttp.Config{URL: h.URL, MaxBytes: 4096})
			h.bundle(good)
			r.Refresh(t.Context())
			h.serve(c.answer)
			findings := r.Refresh(t.Context())
			if r.Err() != nil || refs(r.Implicit()) != "acme.good" ||
				findings[len(findings)-1].Rule != policy.RuleStale {
				t.Errorf("after a good copy: %v, %v", r.Err(), findings)
			}
			for _, f := range findings {
				if f.Stops {
					t.Errorf("a finding of what is not in use stops: %+v", f)
				}
			}
		})
	}
}

// TestUnaskedNotModified checks that status 304 only confirms a copy that the request named.
func TestUnaskedNotModified(t *testing.T) {
	h := newHost(t, (*httptest.Server).Start)
	h.serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) })
	r := open(t, policyhttp.Config{URL: h.URL})
	if r.Refresh(t.Context()); r.Err() == nil || !strings.Contains(r.Err().Error(), "status 304") {
		t.Errorf("got %v", r.Err())
	}
}

// TestHangingServer checks that the timeout also holds for servers that never respond, or never end
// their response.
func TestHangingServer(t *testing.T) {
	h := newHost(t, (*httptest.Server).Start)
	for name, answer := range map[string]http.HandlerFunc{
		"never answers": func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() },
		"never ends": func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{")
			_ = http.NewResponseController(w).Flush()
			<-req.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			h.serve(answer)
			r := open(t, policyhttp.Config{URL: h.URL, Timeout: 50 * time.Millisecond})
			r.Refresh(t.Context())
			if !errors.Is(r.Err(), context.DeadlineExceeded) {
				t.Errorf("got %v", r.Err())
			}
		})
	}
}

func TestRedirectOnTheSameHost(t *testing.T) {
	h := newHost(t, (*httptest.Server).Start)
	files := policyhttp.NewHandler(bundleOf(t, "acme.a"))
	h.serve(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/v2/bundle.json" {
			http.Redirect(w, req, "/v2/bundle.json", http.StatusMovedPermanently)
			return
		}
		files.ServeHTTP(w, req)
	})
	r := open(t, policyhttp.Config{URL: h.URL + "/bundle.json"})
	if findings := r.Refresh(t.Context()); r.Err() != nil {
		t.Error(findings)
	}
}

// TestTLS checks an untrusted certificate, which makes the registry unavailable, and a trusted one.
func TestTLS(t *testing.T) {
	h := newHost(t, (*httptest.Server).StartTLS)
	h.bundle(bundleOf(t, "acme.a"))
	stranger := open(t, policyhttp.Config{URL: h.URL})
	stranger.Refresh(t.Context())
	if _, ok := errors.AsType[*tls.CertificateVerificationError](stranger.Err()); !ok {
		t.Errorf("an unknown certificate: %v", stranger.Err())
	}
	r := open(t, policyhttp.Config{URL: h.URL, Transport: h.Client().Transport})
	if findings := r.Refresh(t.Context()); r.Err() != nil || refs(r.Implicit()) != "acme.a" {
		t.Errorf("%v %v", r.Err(), findings)
	}
}

// TestSecretsStayHome checks that no finding and no error contains the credentials.
func TestSecretsStayHome(t *testing.T) {
	h := newHost(t, (*httptest.Server).Start)
	header := http.Header{"Authorization": {"Bearer s3cret"}}
	r := open(t, policyhttp.Config{URL: h.URL + "/b.json?token=s3cret", Header: header})
	header.Set("Authorization", "changed later")
	h.serve(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") != "Bearer s3cret" || req.URL.Query().Get("token") != "s3cret" ||
			req.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("request: %v %v", req.URL, req.Header)
		}
		http.Redirect(w, req, "http://127.0.0.1:1/?token=s3cret", http.StatusFound)
	})
	if text := fmt.Sprint(r.Refresh(t.Context()), r.Err()); strings.Contains(text, "s3cret") {
		t.Error(text)
	}
	h.Close()
	if text := fmt.Sprint(r.Refresh(t.Context()), r.Err()); strings.Contains(text, "s3cret") ||
		!strings.Contains(text, "refused") {
		t.Error(text)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		cfg  policyhttp.Config
		want string
	}{
		{policyhttp.Config{}, "no http(s) URL"},
		{policyhttp.Config{URL: "policies/"}, "no http(s) URL"},
		{policyhttp.Config{URL: "file:///etc/policies"}, "no http(s) URL"},
		{policyhttp.Config{URL: "https://a b/"}, "invalid character"},
		{policyhttp.Config{URL: "https://me:s3cret@acme.example/"}, "holds credentials"},
		{policyhttp.Config{URL: "http://acme.example/"}, "plain http to acme.example"},
		{policyhttp.Config{URL: "http://10.0.0.1/"}, "plain http to 10.0.0.1"},
		{policyhttp.Config{URL: "https://acme.example/", Timeout: -1}, "can't be negative"},
	} {
		if _, err := policyhttp.New(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %v, want %s", c.cfg.URL, err, c.want)
		}
	}

	for _, url := range []string{"http://localhost:8080/", "http://[::1]/", "https://acme.example/"} {
		open(t, policyhttp.Config{URL: url})
	}
	open(t, policyhttp.Config{URL: "http://acme.example/", AllowPlainHTTP: true})
}

// TestConcurrentUse reads and refreshes concurrently while the server's bundle changes. It is meant
// for the race detector.
func TestConcurrentUse(t *testing.T) {
	h := newHost(t, (*httptest.Server).Start)
	bundles := [][]byte{bundleOf(t, "acme.a"), bundleOf(t, "acme.a", "acme.b"), []byte("broken")}
	h.bundle(bundles[0])
	r := open(t, policyhttp.Config{URL: h.URL})
	r.Refresh(t.Context())
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 10 {
				h.bundle(bundles[i%len(bundles)])
				r.Refresh(t.Context())
				if _, ok := r.Policy("acme.a"); !ok || r.Err() != nil || len(r.Implicit()) == 0 {
					t.Errorf("acme.a is gone: %v", r.Err())
				}
			}
		})
	}

	wg.Wait()
}

// direct hands requests to a handler without a network, which a
// synctest bubble can't wait for.
type direct struct{ http.Handler }

func (d direct) RoundTrip(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, req)
	return w.Result(), nil
}

func TestRunRefreshesUntilItIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, asked := time.Now(), 0
		files := policyhttp.NewHandler(bundleOf(t, "acme.a"))
		r := open(t, policyhttp.Config{
			URL: "https://acme.example/b.json",
			Transport: direct{http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if asked++; asked == 2 {
					http.Error(w, "down", http.StatusBadGateway)
					return
				}
				files.ServeHTTP(w, req)
			})},
		})
		ctx, cancel := context.WithCancel(t.Context())
		var reports []string
		r.Run(ctx, time.Minute, func(findings []diag.Finding) {
			reports = append(reports, fmt.Sprintf("%s[%s]", time.Since(start), rules(findings)))
			if len(reports) == 3 {
				cancel()
			}
		})
		if got := strings.Join(reports, " "); got != "0s[] 1m0s[policy-registry-stale] 2m0s[]" {
			t.Error(got)
		}
		r.Run(ctx, time.Minute, nil)
		if asked != 3 {
			t.Errorf("asked %d times", asked)
		}
	})
}
