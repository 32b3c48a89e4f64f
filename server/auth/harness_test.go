package auth_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/server/auth"
	"github.com/assent-dev/assent/server/directory"
	"github.com/assent-dev/assent/store"
)

// values is a store.Values in memory.
type values struct {
	mu   sync.Mutex
	all  map[[2]string]value
	sets int
	lost error
	// failAt counts down with every access. The access that makes it 0 fails.
	failAt int
}

// fails reports whether this access fails. The caller holds the lock.
func (v *values) fails() error {
	if v.failAt > 0 {
		if v.failAt--; v.failAt == 0 {
			return errors.New("failed")
		}
	}
	return v.lost
}

type value struct {
	text    []byte
	expires time.Time
}

func (v *values) SetValue(_ context.Context, bucket, key string, text []byte, expires time.Time) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.fails(); err != nil {
		return err
	}
	v.sets++
	v.all[[2]string{bucket, key}] = value{slices.Clone(text), expires}
	return nil
}

func (v *values) Value(_ context.Context, bucket, key string, now time.Time) ([]byte, error) {
	return v.value(bucket, key, now, false)
}

func (v *values) TakeValue(_ context.Context, bucket, key string, now time.Time) ([]byte, error) {
	return v.value(bucket, key, now, true)
}

func (v *values) value(bucket, key string, now time.Time, take bool) ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	one, ok := v.all[[2]string{bucket, key}]
	err := v.fails()
	switch {
	case err != nil:
		return nil, err
	case !ok || !now.Before(one.expires):
		return nil, approval.ErrNotFound
	case take:
		delete(v.all, [2]string{bucket, key})
	}

	return one.text, nil
}

func (v *values) DeleteValue(_ context.Context, bucket, key string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.fails(); err != nil {
		return err
	}
	delete(v.all, [2]string{bucket, key})
	return nil
}

func (v *values) ListValues(_ context.Context, bucket string, now time.Time) (map[string][]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := map[string][]byte{}
	for k, one := range v.all {
		if k[0] == bucket && now.Before(one.expires) {
			out[k[1]] = one.text
		}
	}
	return out, v.fails()
}

func (v *values) SweepValues(context.Context, time.Time) error { return v.lost }

// set changes the store between requests.
func (v *values) set(change func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	change()
}

// text returns everything that is stored, as a thief would see it.
func (v *values) text() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var b strings.Builder
	for k, one := range v.all {
		fmt.Fprintf(&b, "%s %s %s\n", k[0], k[1], one.text)
	}
	return b.String()
}

// records is a store.Records in memory, with the methods that sign-ins need.
type records struct {
	store.Records
	mu   sync.Mutex
	all  map[[2]string]store.Record
	lost error
}

func (r *records) PutRecord(_ context.Context, rec store.Record) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := [2]string{rec.Namespace, rec.Key}
	if _, known := r.all[key]; known || rec.Version != 0 {
		return 0, approval.ErrVersion
	}
	if r.lost == nil {
		r.all[key] = rec
	}
	return 1, r.lost
}

const peopleFile = `schema_version: "1.0.0"
people:
  - {id: alice@example.com, name: Alice Doe, groups: [desk-heads]}
  - {id: bob, groups: [risk]}
  - {id: "<b>&mallory\"", groups: [risk]}
groups: {risk: {}, desk-heads: {}}
`

// harness is assent's sign-in as browsers see it.
type harness struct {
	t      *testing.T
	idp    *idp
	server *httptest.Server
	auth   *auth.Auth
	values *values
	used   *records
	people *switched
	cfg    auth.Config

	mu      sync.Mutex
	now     time.Time
	entries []string // recorded
	refuse  error    // returned by Record
	log     bytes.Buffer
}

// switched is a directory that can be replaced, or made to fail.
type switched struct {
	mu   sync.Mutex
	base directory.Base
	lost error
}

func (s *switched) get() (directory.Base, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.base, s.lost
}

func (s *switched) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *switched) Person(ctx context.Context, tenant, name string) (approval.Person, bool, error) {
	base, err := s.get()
	if err != nil {
		return approval.Person{}, false, err
	}
	return base.Person(ctx, tenant, name)
}

func (s *switched) Members(ctx context.Context, tenant, group string) ([]approval.Person, error) {
	base, _ := s.get()
	return base.Members(ctx, tenant, group)
}

func (s *switched) Reading(ctx context.Context, tenant string, p approval.Person) (people.Reading, error) {
	base, err := s.get()
	if err != nil {
		return people.Reading{}, err
	}
	return base.Reading(ctx, tenant, p)
}

func (s *switched) Owners(ctx context.Context, tenant, agent string) ([]string, error) {
	base, _ := s.get()
	return base.Owners(ctx, tenant, agent)
}

func (s *switched) Blocked(tenant, name string) bool {
	base, _ := s.get()
	return base.Blocked(tenant, name)
}

func (s *switched) Declares(tenant, group string) bool {
	base, _ := s.get()
	return base.Declares(tenant, group)
}

func read(t testing.TB, text string) *people.Directory {
	t.Helper()
	d, findings := people.Parse("people.yaml", []byte(text))
	if d == nil {
		t.Fatal(findings)
	}
	return d
}

// open starts assent over https with one provider, or with dev over http without one.
func open(t *testing.T, dev bool) *harness {
	t.Helper()
	h := &harness{
		t:      t,
		values: &values{all: map[[2]string]value{}},
		used:   &records{all: map[[2]string]store.Record{}},
		people: &switched{base: directory.Tenants{"acme": read(t, peopleFile)}},
		now:    time.Now(),
	}
	h.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.serve(w, r)
	}))
	h.cfg = auth.Config{
		URL:     "http://" + h.server.Listener.Addr().String(),
		Dev:     dev,
		Values:  h.values,
		Records: h.used,
		Now:     h.clock,
		Key:     []byte("a key of the server's, thirty-two"),
		Record:  h.record,
		People:  directory.With(h.people, h.values, h.clock),
		Log:     slog.New(slog.NewTextHandler(&guarded{h: h}, nil)),
	}
	if dev {
		h.server.Start()
	} else {
		h.idp = newIDP(t, h.clock)
		h.server.StartTLS()
		h.cfg.URL = h.server.URL
		h.cfg.Client = &http.Client{Transport: transport(h.idp.Server)}
		h.cfg.Providers = []auth.Provider{{
			ID:           "corp",
			Title:        "Corp",
			Tenant:       "acme",
			Issuer:       h.idp.URL,
			ClientID:     clientID,
			ClientSecret: clientSecret,
		}}
	}

	t.Cleanup(h.server.Close)
	h.restart()
	return h
}

// restart makes a new Auth, as after a restart of the process.
func (h *harness) restart() {
	h.t.Helper()
	a, err := auth.New(h.cfg)
	must(h.t, err)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.auth = a
}

func (h *harness) serve(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	a := h.auth
	h.mu.Unlock()
	mux := http.NewServeMux()
	mux.Handle("/auth/", a.Handler())
	mux.Handle("/", a.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, ok := auth.FromContext(r.Context())
		fmt.Fprintf(
			w,
			"%t %s %s %v %s %s %s",
			ok,
			id.Tenant,
			id.Person.ID,
			id.Person.Groups,
			id.Method,
			id.Provider,
			r.URL.RequestURI(),
		)
	})))
	base, err := url.Parse(h.cfg.URL)
	must(h.t, err)
	auth.Secure(mux, base).ServeHTTP(w, r)
}

func (h *harness) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *harness) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

func (h *harness) record(_ context.Context, tenant, event, subject, actor string, facts map[string]any) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuse == nil {
		h.entries = append(h.entries, fmt.Sprint(tenant, " ", event, " ", subject, " ", actor, " ", facts))
	}
	return h.refuse
}

type guarded struct{ h *harness }

func (g *guarded) Write(b []byte) (int, error) {
	g.h.mu.Lock()
	defer g.h.mu.Unlock()
	return g.h.log.Write(b)
}

func (h *harness) logged() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.log.String()
}

// transport returns a transport that trusts the certificate that all test servers share.
func transport(s *httptest.Server) *http.Transport {
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
	}
}

// browser is a person's browser. It keeps cookies, and stops at every redirect unless
// follow is set.
type browser struct {
	t      *testing.T
	h      *harness
	client *http.Client
	follow bool
	header http.Header
}

type answer struct {
	*http.Response
	body string
}

func (h *harness) browser() *browser {
	jar, err := cookiejar.New(nil)
	must(h.t, err)
	b := &browser{
		t:      h.t,
		h:      h,
		follow: true,
		header: http.Header{"Accept": {"text/html,*/*"}, "Sec-Fetch-Mode": {"navigate"}},
	}
	b.client = &http.Client{
		Jar: jar,
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if !b.follow || len(via) > 10 {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
	if h.server.TLS != nil {
		b.client.Transport = transport(h.server)
	}
	return b
}

// do sends a request to a path of assent, or to a whole address.
func (b *browser) do(method, to string, body url.Values) answer {
	b.t.Helper()
	if strings.HasPrefix(to, "/") {
		to = b.h.server.URL + to
	}
	r, err := http.NewRequest(method, to, strings.NewReader(body.Encode()))
	must(b.t, err)
	if b.header != nil {
		r.Header = b.header.Clone()
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := b.client.Do(r)
	must(b.t, err)
	text, err := io.ReadAll(res.Body)
	must(b.t, errors.Join(err, res.Body.Close()))
	return answer{res, string(text)}
}

func (b *browser) get(to string) answer { b.t.Helper(); return b.do(http.MethodGet, to, nil) }

// who returns the person whose name the pages show, or an empty string without a session.
func (b *browser) who() string {
	b.t.Helper()
	r, _ := http.NewRequest(http.MethodGet, b.h.server.URL+"/who", nil)
	res, err := b.client.Do(r)
	must(b.t, err)
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	if res.StatusCode == http.StatusUnauthorized {
		return ""
	}
	return string(text)
}

// cookie returns the value of one of our cookies in the browser.
func (b *browser) cookie(part string) string {
	u, _ := url.Parse(b.h.server.URL)
	for _, c := range b.client.Jar.Cookies(u) {
		if c.Name == "__Host-assent"+part || c.Name == "assent"+part+"-"+u.Port() {
			return c.Value
		}
	}
	return ""
}

// begin stops right before the callback and returns its address.
func (b *browser) begin() string {
	b.t.Helper()
	b.follow = false
	defer func() { b.follow = true }()
	start := b.get("/auth/start/corp?next=/r/1")
	if start.StatusCode != http.StatusFound {
		b.t.Fatalf("start: %d %s", start.StatusCode, start.body)
	}
	back := b.get(start.Header.Get("Location"))
	if back.StatusCode != http.StatusFound {
		b.t.Fatalf("authorize: %d %s", back.StatusCode, back.body)
	}
	return back.Header.Get("Location")
}

const aliceIs = "true acme alice@example.com [desk-heads risk] oidc corp "

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
