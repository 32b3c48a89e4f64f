package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/operate"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/server/notify"
	"github.com/assent-dev/assent/server/notify/slack"
	"github.com/assent-dev/assent/server/notify/webhook"
)

// TestDrain: after the signal a long poll ends with an answer instead of being cut off, new
// requests are refused, and everything is sealed.
func TestDrain(t *testing.T) {
	h := startWith(t, withFiles(t, deskFiles()), func(c *config.Serve) { c.MetricsListen = "127.0.0.1:0" })
	r := h.ask(t, `{"kind":"tool","tool":"trade","args":{}}`)
	polling, err := h.client(t, "runtime").Request(t.Context(), r.ID)
	must.Do(t, err)
	poll, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		h.ready.API+"/v1/requests/"+r.ID+"?wait=60s&version="+strconv.FormatInt(polling.Version, 10), nil)
	must.Do(t, err)
	poll.Header.Set("Authorization", "Bearer "+h.token["runtime"])
	answered := make(chan error, 1)
	go func() {
		resp, err := ownClient().Do(poll)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		answered <- err
	}()
	testwait.Until(t, "the long poll has arrived", func() bool {
		_, figures := fetched(t, http.MethodGet, h.ready.Metrics, "", "")
		return strings.Contains(figures, "\nassent_long_polls 1\n")
	})
	must.Do(t, h.stop())
	if err := receive(t, "the answer to the long poll", answered); err != nil {
		t.Errorf("the long poll was cut off: %v", err)
	}
	if _, err := http.Get(h.ready.API + "/healthz"); err == nil {
		t.Error("it still answers")
	}
	s, err := openStore(t.Context(), h.where(), nil)
	must.Do(t, err)
	defer s.Close()
	entries, err := s.Entries(t.Context(), "default", 0, 10)
	if err != nil || len(entries) != 6 { // two tokens, which agents and people are in force, the start and the request
		t.Errorf("%d entries are sealed, %v", len(entries), err)
	}
}

// TestWebhookFromTheConfiguration: the configured webhook gets a signed notification of a request.
func TestWebhookFromTheConfiguration(t *testing.T) {
	t.Parallel()
	heard := make(chan error, 10)
	var raw [32]byte
	if _, err := rand.Read(raw[:]); err != nil {
		t.Fatal(err)
	}
	secret := "whsec_" + base64.StdEncoding.EncodeToString(raw[:])
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = webhook.Verify(secret, r.Header, body, time.Now(), time.Minute)
		}
		heard <- err
	}))
	defer receiver.Close()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"desk.agf.yaml": testAgent,
		"people.yaml":   testPeople,
		"secret":        secret + "\n",
		"url":           receiver.URL,
	})

	hook := webhook.Settings{
		Name:        "ops",
		URLFile:     filepath.Join(dir, "url"),
		SecretFiles: []string{filepath.Join(dir, "secret")},
		Loopback:    true,
	}
	h := startWith(t, &testServer{dir: dir, token: map[string]string{}}, func(c *config.Serve) {
		c.Tenants[0].Notify.Say("webhooks", []webhook.Settings{hook})
	})
	h.ask(t, `{"kind":"tool","tool":"trade","args":{"n":1}}`)
	if err := receive(t, "the delivery", heard); err != nil {
		t.Error(err)
	}
}

// TestStartRefuses: errors in the environment are found before the server answers.
func TestStartRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"desk.agf.yaml": testAgent,
		"people.yaml":   testPeople,
		"closed.yaml":   testPeople + "groups: {admins: {}}\n",
		"empty":         "",
		"secret":        "whsec_short",
	} {
		testfiles.Write(t, filepath.Join(dir, name), text)
	}

	file := func(name string) string { return filepath.Join(dir, name) }
	hook := func(w webhook.Settings) func(*config.Serve) {
		return func(c *config.Serve) { c.Tenants[0].Notify.Say("webhooks", []webhook.Settings{w}) }
	}
	for want, change := range map[string]func(*config.Serve){
		"empty is empty": hook(webhook.Settings{
			Name:        "a",
			URL:         "https://a.example",
			SecretFiles: []string{file("empty")},
		}),
		"webhook a: webhook": hook(webhook.Settings{
			Name:        "a",
			URL:         "https://a.example",
			SecretFiles: []string{file("secret")},
		}),
		"networks": hook(webhook.Settings{
			Name:        "a",
			URL:         "https://a.example",
			SecretFiles: []string{file("secret")},
			Networks:    []string{"ten"},
		}),
		"no event about": hook(webhook.Settings{
			Name:  "a",
			URL:   "https://a.example",
			Route: notify.Route{Events: []string{"nothing"}},
		}),
		"share a name:": func(c *config.Serve) { c.Tenants[0].Notify.Say("webhooks", make([]webhook.Settings, 2)) },
		"slack: open": func(c *config.Serve) {
			c.Tenants[0].Notify.Say("slack", &slack.Settings{TokenFile: file("nothing")})
		},
		"the client's secret": func(c *config.Serve) {
			c.Tenants[0].OIDC, c.Tenants[0].People = &config.OIDC{
				ClientSecretFile: file("nothing"),
			}, file("closed.yaml")
		},
		"expected https": func(c *config.Serve) {
			c.Tenants[0].OIDC, c.Tenants[0].People = &config.OIDC{Issuer: "https://i.example", ClientID: "c"},
				file("closed.yaml")
		},
		// TestM3: without a list any group of the provider would count
		"groups: {\"admins\": {}}": func(c *config.Serve) {
			c.Tenants[0].OIDC, c.PublicURL = &config.OIDC{Issuer: "https://i.example", ClientID: "c"},
				"https://assent.example"
		},
		"--metrics-listen":       func(c *config.Serve) { c.MetricsListen = "256.0.0.1:x" },
		"--public-url":           func(c *config.Serve) { c.PublicURL = "ftp://x" },
		"--listen":               func(c *config.Serve) { c.Listen = "256.0.0.1:x" },
		"can be read by others":  func(c *config.Serve) { c.KeyFile = file("loose.key") },
		"no such file":           func(c *config.Serve) { c.Store = file("nowhere/s.db") },
		"file is not a database": func(c *config.Serve) { c.Store = file("secret") },
		"dev mode listens on":    func(c *config.Serve) { c.Dev, c.Listen = true, "0.0.0.0:0" },
		"people.yaml: no such":   func(c *config.Serve) { c.Tenants[0].People = file("none/people.yaml") },
		"connection refused|dial": func(c *config.Serve) {
			c.Store = "postgres://nobody@127.0.0.1:1/none?connect_timeout=2"
		},
	} {
		must.Do(t, os.WriteFile(file("loose.key"), []byte("x"), 0o644))
		cfg := config.Serve{
			Listen:  "127.0.0.1:0",
			Store:   file("s.db"),
			KeyFile: file("k"),
			Tenants: []config.Tenant{{Name: "default", Agents: []string{dir}, People: file("people.yaml")}},
		}
		change(&cfg)
		var log bytes.Buffer
		err := serve(t.Context(), cfg, &log, func(operate.Ready) { t.Errorf("%s: it answers", want) })
		matched := false
		for word := range strings.SplitSeq(want, "|") {
			matched = matched || err != nil && strings.Contains(err.Error(), word)
		}
		if !matched {
			t.Errorf("%v, want %s", err, want)
		}
		if err != nil && strings.Contains(err.Error()+log.String(), "whsec_short") {
			t.Errorf("a secret is shown: %v", err)
		}
	}
}

// TestLostStoreAllowsNothing: with the store gone read-only, calls that
// need no asking are refused too.
func TestLostStoreAllowsNothing(t *testing.T) {
	t.Parallel()
	h := start(t, "")
	locker, err := openStore(t.Context(), h.where(), nil)
	must.Do(t, err)
	defer locker.Close()
	held, release := make(chan struct{}), make(chan struct{})
	go func() {
		_ = locker.Update(context.WithoutCancel(t.Context()), "default", func(approval.Tx) error {
			close(held)
			<-release
			return nil
		})
	}()
	<-held
	to, err := url.Parse(h.ready.API)
	must.Do(t, err)
	arrived := make(chan struct{}, 100)
	forward := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)

	// The command fails if it runs before the lock is released.
	screen := &terminal{env: map[string]string{"ASSENT_SERVER": front.URL}}
	released, ran := filepath.Join(h.dir, "released"), filepath.Join(h.dir, "ran")
	call := h.file(t, `{"kind":"tool","tool":"quote","args":{}}`)
	done := make(chan int, 1)
	go func() {
		done <- h.run(t, screen, "runtime", "request", "--agent", "desk", "--call", call,
			"--", "sh", "-c", `touch "$1" && test -e "$0"`, released, ran)
	}()
	receive(t, "the request at the server", arrived)
	testfiles.Write(t, released, "")
	close(release)
	code := receive(t, "the end of the command", done)
	if _, err := os.Stat(ran); code != term.ExitOK || err != nil {
		t.Errorf("exit %d, %v\n%s", code, err, screen.out.String())
	}
}
