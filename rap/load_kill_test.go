package rap_test

import (
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/rap/runtime"
)

// slaughter is a gateway and a runtime, each a process that is killed
// again and again while calls go through both.
type slaughter struct {
	t                *testing.T
	gateway, runtime *loaded
	ids              []string
	ends             map[string]runtime.Call
}

// TestLoadKilled: either side is killed with SIGKILL at random moments.
// No operation runs twice, every call has one end, which it keeps, and
// nothing is stuck: what was lost on its way ends at its deadline and
// never ran.
func TestLoadKilled(t *testing.T) {
	size := loadSizes()
	s := &slaughter{
		t:    t,
		ids:  loadIDs(size.calls),
		ends: map[string]runtime.Call{},
	}
	s.runtime = newLoaded(t, func(l *loadLife) { l.People = 1 })
	s.gateway = newLoaded(t, func(l *loadLife) {
		l.Gateway = true
		l.Sync = true
		l.Other = s.runtime.life.Own
	})
	s.runtime.life.Other = s.gateway.life.Own
	s.gateway.start()
	s.runtime.start()
	start := time.Now()
	s.kills()
	killed := time.Since(start)
	s.settles(true)
	s.runtime.reborn(longestWait + time.Hour) // calls that were lost on their way have waited long enough
	s.settles(false)
	first := maps.Clone(s.ends)
	s.gateway.reborn(time.Minute)
	s.runtime.reborn(time.Minute)
	s.ends = map[string]runtime.Call{}
	s.settles(false)
	tally := map[string]int{}
	for id, end := range s.ends {
		if end.Outcome.Text != first[id].Outcome.Text || end.Why != first[id].Why {
			t.Errorf("%s ended with %q, and then with %q", id, first[id].Outcome.Text, end.Outcome.Text)
		}
		tally[s.holds(id, end)]++
	}

	t.Logf("%d kills in %v, all over after %v: %v", size.kills, killed, time.Since(start), tally)
	if len(s.ends) != size.calls || tally["done"] == 0 || tally["denied"] == 0 {
		t.Errorf("%d of %d calls ended: %v", len(s.ends), size.calls, tally)
	}
}

// kills makes the calls while processes die.
func (s *slaughter) kills() {
	size := loadSizes()
	random := rand.New(rand.NewPCG(11, 13))
	made, all := make(chan string, size.calls), make(chan struct{})
	go func() {
		defer close(all)
		for id := range made {
			s.invokes(id)
		}
	}()
	for n := range size.kills {
		for _, id := range s.ids[size.calls*n/size.kills : size.calls*(n+1)/size.kills] {
			made <- id
		}
		<-time.After(time.Duration(random.IntN(250)) * time.Millisecond)
		victim := s.runtime
		if random.IntN(2) == 0 {
			victim = s.gateway
		}
		victim.reborn(time.Minute)
	}

	close(made)
	<-all
}

// invokes makes a call, until some life of the runtime has it.
func (s *slaughter) invokes(id string) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); <-tick.C {
		res, err := s.runtime.client.Post(s.runtime.life.Own+"/test/invoke?id="+id, "", nil)
		if err != nil {
			continue // killed
		}
		_ = res.Body.Close()
		if res.StatusCode == http.StatusOK {
			return
		}
	}

	s.t.Errorf("no runtime takes %s", id)
}

// settles waits until all calls have ended; where some may be lost, but
// for those that a runtime was killed with before they arrived: the
// protocol bars sending them again.
func (s *slaughter) settles(some bool) {
	s.t.Helper()
	open := s.ids
	loadUntil(s.t, "ends", func() string { return strings.Join(open, " ") }, func() bool {
		var rest []string
		lost := 0
		for _, id := range open {
			c := s.runtime.call(id)
			switch {
			case c.State == runtime.CallDone:
				s.ends[id] = c
				continue
			case some && c.State == runtime.CallPending && c.Question == "" && !s.gateway.alive(id):
				lost++
			}

			rest = append(rest, id)
		}

		open = rest
		return lost == len(open)
	})
}

// holds checks the end of a call against its runs, and names it.
func (s *slaughter) holds(id string, end runtime.Call) string {
	s.t.Helper()
	runs, text := s.gateway.runs()[id], end.Outcome.Text
	kind := ""
	most := 0
	least := 0
	switch {
	case text == "done "+id && !end.Synthetic:
		kind = "done"
		most = 1
		least = 1
	case text == "Error: the user denied this call" && !end.Synthetic:
		kind = "denied"
	case strings.Contains(text, "outcome unknown") && !end.Synthetic:
		kind, most = "unknown", 1
	case end.Why == runtime.WhyTimeout:
		kind = "lost"
	case end.Why == runtime.WhyInvalid: // there was no gateway to ask what it offers
		kind = "refused"
	}

	if kind == "" || runs > most || runs < least || s.gateway.alive(id) {
		s.t.Errorf(
			"%s ran %d times and ended with %q (%s); the gateway still works on it: %t",
			id,
			runs,
			text,
			end.Why,
			s.gateway.alive(id),
		)
	}

	return kind
}
