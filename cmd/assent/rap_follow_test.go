package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/operate"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/server/openapi"
)

// ready returns what the process printed at its last start (with --json).
func (n *nearby) ready() operate.Ready {
	n.t.Helper()

	return testwait.Value(n.t, "where it answers", func() (ready operate.Ready, ok bool) {
		text, err := os.ReadFile(filepath.Join(n.dir, "log"))
		must.Do(n.t, err)

		for line := range strings.Lines(string(text)) {
			if json.Unmarshal([]byte(line), &ready) == nil && ready.Link != "" {
				return ready, true
			}
		}
		return ready, false
	})
}

// TestACallIsFollowedThroughAKilledProcess: the output of a tool reaches the API's reader, and the
// page of the call's user, once and in order, even if the process is killed in between.
func TestACallIsFollowedThroughAKilledProcess(t *testing.T) {
	m, far := newMachines(t), opsFiles(t)
	m.streams()
	startWith(t, far, func(*config.Serve) {})
	n := newNearby(t, far, m.URL)
	n.args = append(n.args, "--dev", "--dev-person", "zoe", "--json")
	n.start()
	n.calls("c", "look")
	sent := m.sent(t, "look", 0)

	ctx := t.Context()
	var got []string
	for news, err := range n.client.RAPFollow(ctx, "desk", "t", "c", "") {
		switch {
		case err != nil:
			t.Fatal(err)
		case news.Event == nil && news.View == nil:
			if news.Call != nil && news.Call.State == "done" && len(got) == 0 {
				got = append(got, "begun")
				m.event(t, sent, "one", false)
			}

			continue
		case news.View != nil:
			got = append(got, "view "+news.View.Type)
			m.event(t, sent, "two", true)
			continue
		}

		if got = append(got, news.Event.Text); news.Event.Text == "one" {
			n.kill()
			n.start()
			m.view(t, sent, "disk", "90 % full")
		}
	}

	if got := strings.Join(got, ", "); got != "begun, one, view disk, two" {
		t.Errorf("told %s", got)
	}

	page := (&testServer{ready: n.ready()}).signedIn(t).get("/calls")
	for _, want := range []string{"look", "machines", "one", "two", "disk", "90 % full", "0 calls go on"} {
		if !strings.Contains(page, want) {
			t.Errorf("zoe's page lacks %q:\n%s", want, page)
		}
	}
	if _, err := n.client.RAPWait(ctx, "desk", "t", "other", 0); client.Code(err) != openapi.CodeNotFound {
		t.Errorf("another call: %v", err)
	}
}
