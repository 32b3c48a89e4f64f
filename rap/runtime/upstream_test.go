package runtime

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/peer"
)

// The desk of an upstream server approves nothing and knows nothing.
func TestRelayDeskApprovesNothing(t *testing.T) {
	d := newRelay()
	if held, err := d.Open(t.Context(), "k", hold.Verdict{}); err == nil {
		t.Errorf("%v", held)
	}
	if err := d.Claim(t.Context(), "ref", "k", hold.Verdict{}); err == nil {
		t.Error("a run was given away")
	}
	ref := must.Get(d.Ask(t.Context(), "q", hold.Question{Within: -2 * relayKept}))(t)
	must.Get(d.Ask(t.Context(), "q2", hold.Question{Within: time.Hour}))(t)
	if _, err := d.Answer(t.Context(), ref); !errors.Is(err, hold.ErrNoRequest) {
		t.Errorf("what expired is known: %v", err)
	}
}

func TestUpstreamMustBeThere(t *testing.T) {
	for name, url := range map[string]string{
		"nobody":     "http://127.0.0.1:1",
		"no address": "",
		"far":        "http://tools.example",
	} {
		_, err := Upstream(t.Context(), UpstreamConfig{
			Common:      rap.Common{Records: rap.NewMemory(), Namespace: "up", Key: bytes.Repeat([]byte{9}, 32)},
			Server:      Server{Name: "back", Peer: peer.Config{URL: url, Timeout: time.Second, Attempts: 1}},
			CallbackURL: "http://127.0.0.1:2",
		})
		if err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
