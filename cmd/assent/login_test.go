package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
)

// visitor is a person at a browser.
type visitor struct {
	t    *testing.T
	http http.Client
	base string
}

// signedIn opens the one-time link of a service that runs with --dev.
func (h *testServer) signedIn(t *testing.T) *visitor {
	t.Helper()

	return h.signedInBy(t, strings.TrimPrefix(h.ready.Link, h.ready.URL))
}

// signedInBy opens the path of a one-time link.
func (h *testServer) signedInBy(t *testing.T, path string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must.Do(t, err)
	v := &visitor{t: t, base: h.ready.URL, http: http.Client{Jar: jar}}
	v.post(path, nil)

	return v
}

func (v *visitor) get(path string) string {
	v.t.Helper()
	resp, err := v.http.Get(v.base + path)
	must.Do(v.t, err)

	return v.read(resp)
}

// post sends a form as the page itself would, and returns what follows.
// A form may come too soon after its page.
func (v *visitor) post(path string, fields url.Values) string {
	v.t.Helper()
	req, err := http.NewRequestWithContext(
		v.t.Context(),
		http.MethodPost,
		v.base+path,
		strings.NewReader(fields.Encode()),
	)
	must.Do(v.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", v.base)
	resp, err := v.http.Do(req)
	must.Do(v.t, err)

	return v.read(resp)
}

func (v *visitor) read(resp *http.Response) string {
	v.t.Helper()
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must.Do(v.t, err)

	return string(text)
}

var (
	sealPattern = regexp.MustCompile(`name="seen" value="([^"]+)"`)
	codePattern = regexp.MustCompile(`[A-Z]{4}-[A-Z]{4}-[A-Z]{4}`)
)

// confirm types a code in the inbox and says yes, once the form may be
// answered.
func (v *visitor) confirm(code string) {
	v.t.Helper()
	seal := sealPattern.FindStringSubmatch(v.get("/device"))
	if seal == nil {
		v.t.Fatal("the page has no form")
	}
	fields := url.Values{"seen": {seal[1]}, "code": {code}, "answer": {"confirm"}}
	testwait.Until(v.t, "the code is confirmed", func() bool {
		return strings.Contains(v.post("/device", fields), "Signed in: the command line that shows "+code)
	})
}

// TestACommandLineSignsIn: a person signs their command line in,
// answers with it, and ends it.
func TestACommandLineSignsIn(t *testing.T) {
	t.Parallel()
	h := withFiles(t, deskFiles())
	startWith(t, h, func(c *config.Serve) { c.Dev, c.DevPerson = true, "alice" })
	home := t.TempDir()
	screen := &terminal{env: map[string]string{"HOME": home, "ASSENT_TOKEN": ""}}
	left := make(chan int, 1)
	go func() {
		left <- h.run(t, screen, "", "login", "--name", "laptop")
	}()
	screen.saw(t, "Waiting until")

	h.signedIn(t).confirm(codePattern.FindString(screen.out.String()))

	if code := <-left; code != 0 {
		t.Fatalf("exit code %d:\n%s", code, screen.out.String())
	}
	screen.saw(t, "signed in as alice until")
	file := filepath.Join(home, ".config", "assent", "token")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info, err)
	}

	r := h.ask(t, `{"kind":"tool","tool":"trade","args":{"amount":1}}`)
	answer := &terminal{env: screen.env}
	binding := strings.TrimPrefix(r.Binding(), "sha256:")[:12]
	if code := h.run(t, answer, "", "approve", r.ID, "--yes", "--binding", binding); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, answer.out.String())
	}
	if got, err := h.client(t, "runtime").Request(t.Context(), r.ID); err != nil || got.Votes[0].Person != "alice" {
		t.Errorf("got %+v, %v", got, err)
	}
}
