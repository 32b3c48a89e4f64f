package neighbours

import (
	"os"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testbin"
)

func TestMain(m *testing.M) {
	if Noisy() {
		return
	}
	os.Exit(m.Run())
}

// TestNeighbourGetsItsAnswers is the small form of make -C bench
// neighbours, which also measures times: one tenant sends as many large
// calls, streams, polls, pages and made-up sign-ins as it can for some
// seconds. Another tenant's decisions are all answered, its people sign in
// and answer, and the server stays within its memory.
func TestNeighbourGetsItsAnswers(t *testing.T) {
	bin := testbin.Path(t, "cmd/assent")
	noise := Noise{Bodies: 12, Streams: 200, Polls: 600, SignIns: 100, Pages: 4}
	r := must.Get(Run(t.Context(), Config{Bin: bin, Noise: noise, For: 8 * time.Second}))(t)
	t.Logf("decide: p50 %v, p99 %v before, p50 %v, p99 %v during; %d sign-ins, %d answers; %d MiB; noise %v",
		r.Before.At(0.5), r.Before.At(0.99), r.During.At(0.5), r.During.At(0.99), len(r.SignIns), len(r.Answers),
		r.Memory>>20, r.Noise)
	for _, f := range append(r.Failures, r.Faults...) {
		t.Error(f)
	}
	if len(r.During) == 0 || len(r.SignIns) == 0 || len(r.Answers) == 0 {
		t.Errorf("%d decisions, %d people signed in, %d answered", len(r.During), len(r.SignIns), len(r.Answers))
	}
	if r.Memory > 1<<30 {
		t.Errorf("the server had %d MiB", r.Memory>>20)
	}
	for _, want := range []string{"stream 200", "stream 429", "poll 429", "forged sign-in 400"} {
		if r.Noise[want] == 0 {
			t.Errorf("there was no %q: %v", want, r.Noise)
		}
	}
	if most := int64(r.Noise["begun sign-in 403"]*2 + 40); r.Posts > most {
		t.Errorf("%d posts to the provider, at most %d are for sign-ins that were begun here", r.Posts, most)
	}
}

func TestNoiseEnds(t *testing.T) {
	much := Noise{Bodies: 1 << 20, Streams: 1 << 20, Polls: 1 << 20, SignIns: 1 << 20, Pages: 1 << 20}
	if got := much.bounded(); got != Worst() {
		t.Errorf("got %+v", got)
	}
	for address, want := range map[string]bool{
		"127.0.0.1:80": true,
		"[::1]:80":     true,
		"192.0.2.1:80": false,
		"localhost:80": false,
		"x":            false,
	} {
		if got := local(address) == nil; got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}
