package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/mcp/auth/authtest"
	mcpconfig "github.com/assent-dev/assent/mcp/config"
)

const twoCallers = `agent: clerk.agf.yaml
people: people.yaml
listen: 127.0.0.1:0
oauth: {issuers: {issuer: "%s"}, scopes: mcp:tools}
callers:
  - {name: ann, subject: 00u1, person: mara, session: desk, hold: 50ms}
  - {name: builds, token_file: builds.token, person: ben, session: nightly, hold: 10m}
upstream: {alias: files, command: files-server, cwd: .}
`

// listening is a gateway that listens, in a process of its own.
type listening struct {
	t   *testing.T
	url string
	log *testwait.Buffer
}

func listenMCP(t *testing.T, file string) *listening {
	t.Helper()
	log := &testwait.Buffer{}
	cmd := exec.Command("assent", "mcp", "gateway", "--config", file)
	cmd.Stderr = io.MultiWriter(log, t.Output())
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the gateway: %v", err)
		}
	})
	at := testwait.Value(t, "the gateway listens", func() (string, bool) {
		found := regexp.MustCompile(`http://[0-9.]+:[0-9]+/mcp`).FindString(log.String())
		return found, found != ""
	})
	return &listening{t: t, url: at, log: log}
}

// get reads a document from the server of the endpoint.
func (l *listening) get(path string, into any) {
	l.t.Helper()
	resp, err := http.Get(strings.TrimSuffix(l.url, "/mcp") + path)
	must.Do(l.t, err)
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode != http.StatusOK {
		l.t.Fatalf("%s: %s, %v", path, resp.Status, err)
	}
}

// post sends a message, and returns what came.
func (l *listening) post(token, session, body string) (*http.Response, string) {
	r, err := http.NewRequestWithContext(l.t.Context(), http.MethodPost, l.url, strings.NewReader(body))
	if err != nil {
		l.t.Error(err)
		return nil, ""
	}
	for header, value := range map[string]string{
		"Content-Type":   "application/json",
		"Accept":         "application/json, text/event-stream",
		"Authorization":  token,
		"Mcp-Session-Id": session,
	} {
		if value != "" {
			r.Header.Set(header, value)
		}
	}

	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		l.t.Error(err)
		return nil, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		l.t.Error(err)
	}
	return resp, string(text)
}

// tokenClient is a client by its token, in a session of HTTP.
type tokenClient struct {
	*listening
	token, session string
}

func (l *listening) open(token string) *tokenClient {
	l.t.Helper()
	resp, text := l.post(token, "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":`+
		`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	if resp == nil || resp.StatusCode != http.StatusOK {
		l.t.Fatalf("initialize: %s", text)
	}
	return &tokenClient{listening: l, token: token, session: resp.Header.Get("Mcp-Session-Id")}
}

func (c *tokenClient) call(tool, args string) string {
	_, text := c.post(
		c.token,
		c.session,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+`{"name":"`+tool+`","arguments":`+args+`}}`,
	)
	return text
}

// TestMCPCallersByToken: of two callers at one address, each has its
// own identity, session, person and hold: one by a token of an issuer,
// one by a token of which only the digest is known here.
func TestMCPCallersByToken(t *testing.T) {
	i := authtest.NewPlain(t)
	dir, file := mcpDir(t)
	const secret = "builds-0123456789"
	writeFiles(t, dir, map[string]string{
		"gateway.yaml": fmt.Sprintf(twoCallers, i.URL),
		"builds.token": fmt.Sprintf("sha256:%x\n", sha256.Sum256([]byte(secret))),
		"people.yaml":  "schema_version: \"1.0.0\"\npeople:\n  - {id: mara}\n  - {id: ben}\n",
	})
	l := listenMCP(t, file)
	var meta struct {
		Resource string   `json:"resource"`
		Issuers  []string `json:"authorization_servers"`
	}
	l.get("/.well-known/oauth-protected-resource/mcp", &meta)
	if meta.Resource != l.url || len(meta.Issuers) != 1 || meta.Issuers[0] != i.URL {
		t.Fatalf("the metadata is %+v", meta)
	}
	token := i.Sign(map[string]any{
		"iss":   i.URL,
		"aud":   meta.Resource,
		"sub":   "00u1",
		"exp":   time.Now().Add(time.Hour).Unix(),
		"scope": "mcp:tools",
	})

	digest := fmt.Sprintf("Bearer sha256:%x", sha256.Sum256([]byte(secret)))
	for _, wrong := range []string{"", "Bearer builds", digest} {
		resp, _ := l.post(wrong, "", "{}")
		if resp == nil || resp.StatusCode != http.StatusUnauthorized ||
			!strings.Contains(resp.Header.Get("WWW-Authenticate"), "/.well-known/oauth-protected-resource/mcp") {
			t.Errorf("%q: %+v", wrong, resp)
		}
	}

	l.twoAsk(dir, file, l.open("Bearer "+token), l.open("Bearer "+secret))
	if log := l.log.String(); strings.Contains(log, token) || strings.Contains(log, secret) {
		t.Errorf("the log has a token: %s", log)
	}
}

// twoAsk has both callers make the same call.
func (l *listening) twoAsk(dir, file string, ann, builds *tokenClient) {
	t := l.t
	if resp, _ := l.post(ann.token, builds.session, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); resp == nil ||
		resp.StatusCode != http.StatusForbidden {
		t.Errorf("another's session: %+v", resp)
	}
	waits := make(chan string, 1)
	go func() { waits <- builds.call("write_file", `{"path":"/a"}`) }()
	first := ann.call("write_file", `{"path":"/a"}`)
	if !strings.Contains(first, "Not run yet.") || len(waits) != 0 {
		t.Fatalf("ann is told %s, and %d others were", first, len(waits))
	}

	mara := inboxOf(t, "--config", file, "--person", "mara")
	theirs := l.requests(mara)
	if r := theirs["ann"]; r.Person != "mara" || r.Session != "desk" || !strings.Contains(first, r.id) {
		t.Errorf("ann's request is %+v", r)
	}
	if r := theirs["builds"]; r.Person != "ben" || r.Session != "nightly" || strings.Contains(first, r.id) {
		t.Errorf("that of builds is %+v", r)
	}
	if errOut, code := approved(t, mara, theirs["ann"].id); code == 0 {
		t.Errorf("mara approved her own call: %s", errOut)
	}
	approveIn(t, mara, theirs["builds"].id)
	if text := <-waits; !strings.Contains(text, "done") {
		t.Errorf("builds got %s", text)
	}

	approveIn(t, inboxOf(t, "--config", file, "--person", "ben"), theirs["ann"].id)
	testwait.Until(t, "ann's call runs", func() bool {
		return strings.Contains(ann.call("write_file", `{"path":"/a"}`), "done")
	})
	if n := callsIn(t, dir, "write_file"); n != 2 {
		t.Errorf("two approved calls ran %d times", n)
	}
}

// asker is the asker of a request.
type asker struct {
	Runtime, Person, Session string

	id string
}

// requests returns the two that wait, by their callers.
func (l *listening) requests(at []string) map[string]asker {
	l.t.Helper()
	type waiting struct {
		Requests []struct{ ID string }
	}
	list := testwait.Value(l.t, "both have asked", func() (list waiting, both bool) {
		l.read(&list, append([]string{"list", "--json"}, at...)...)
		return list, len(list.Requests) == 2
	})
	all := map[string]asker{}
	for _, r := range list.Requests {
		var doc struct{ Requester asker }
		l.read(&doc, append([]string{"show", r.ID, "--json"}, at...)...)
		doc.Requester.id = r.ID
		all[path.Base(doc.Requester.Runtime)] = doc.Requester
	}

	return all
}

// read runs a command that prints JSON.
func (l *listening) read(into any, args ...string) {
	l.t.Helper()
	out, errOut, _ := ran("", args...)
	if err := json.Unmarshal([]byte(out), into); err != nil {
		l.t.Fatalf("%v: %s%s", args, out, errOut)
	}
}

// TestCallersTokenFiles: a file has the token, or its digest in a form
// of which there is no second reading.
func TestCallersTokenFiles(t *testing.T) {
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte("secret")))
	file := filepath.Join(t.TempDir(), "token")
	for text, opens := range map[string]string{
		"secret\n":                   "secret",
		"sha256:" + digest + "\n":    "secret",
		"sha256":                     "sha256",
		"sha256:":                    "",
		"sha256:" + digest[1:]:       "",
		"sha256:" + digest + "00":    "",
		"sha256:x" + digest[1:]:      "",
		"sha256:" + digest + " more": "",
	} {
		writeFiles(t, filepath.Dir(file), map[string]string{"token": text})
		all, err := readCallerTokens([]mcpconfig.Caller{{Name: "ann", TokenFile: file}})
		if (err == nil) != (opens != "") || err == nil && all.find([]string{"bearer " + opens}) != "ann" {
			t.Errorf("%q: %v", text, err)
		}
		if all.find([]string{"Bearer sha256:" + digest}) != "" || all.find([]string{"Basic " + opens}) != "" {
			t.Errorf("%q opens by something else", text)
		}
	}
}

// TestServersTokens: a file is read for each request, so that a new
// token in it counts at once.
func TestServersTokens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	u := mcpconfig.Upstream{URL: "https://tracker.example.com/mcp", TokenFile: file}
	source, err := tokenOf(u)
	must.Do(t, err)
	for _, want := range []string{"", "first", "second"} {
		if want != "" {
			writeFiles(t, filepath.Dir(file), map[string]string{"token": want + "\n"})
		}
		if got, err := source(t.Context(), ""); got != want || (err == nil) != (want != "") {
			t.Errorf("got %q, %v, expected %q", got, err, want)
		}
	}
}

// TestServersOAuth: the token is asked for the address of the server
// without its query.
func TestServersOAuth(t *testing.T) {
	i := authtest.NewPlain(t)
	i.Gives("")
	file := filepath.Join(t.TempDir(), "secret")
	writeFiles(t, filepath.Dir(file), map[string]string{"secret": "hush\n"})
	source, err := tokenOf(mcpconfig.Upstream{
		URL:   "https://tracker.example.com/mcp?key=hidden",
		OAuth: &mcpconfig.Client{Issuer: i.URL, ID: "assent", SecretFile: file},
	})
	must.Do(t, err)
	if got, err := source(t.Context(), ""); got != "t1" || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	_, secret, _ := i.Grants[0].BasicAuth()
	if got := i.Grants[0].PostForm.Get("resource"); got != "https://tracker.example.com/mcp" || secret != "hush" {
		t.Errorf("it was asked for %q with %q", got, secret)
	}
}
