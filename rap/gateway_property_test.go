package rap_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/rap/gateway"
)

// story is a random history of a gateway with the effects that it permits.
type story struct {
	*confHarness
	runtime  *confRuntime
	t        *rapid.T
	accepted map[string]bool // by id: an invocation got 200
	may      map[string]bool // by id: an allowing answer was sent, or a session grant could cover it
	granted  map[string]bool // by thread: a session answer was sent, and no closure acknowledged since
	threads  map[string]string
}

const storyIDs = 5

// Invocations, answers, cancellations, closures, deadlines and crashes come in any order, and
// crashes also between any two writes. An operation runs at most once, and only if it was
// allowed; every accepted invocation gets a result.
func TestGatewayProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		h, r := confGateway(t, confOffer, func(cfg *gateway.Config) { cfg.Poll = time.Millisecond })
		defer func() {
			h.stop()
			r.server.Close()
		}()
		s := &story{h, r, rt, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]string{}}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			s.step()
			s.holds()
		}
		s.end()
	})
}

func (s *story) step() {
	id := fmt.Sprint("c", rapid.IntRange(1, storyIDs).Draw(s.t, "id"))
	thread := fmt.Sprint("t", len(id)%2+int(id[1])%2)
	switch rapid.SampledFrom([]string{
		"invoke",
		"invoke",
		"invoke",
		"answer",
		"answer",
		"answer",
		"cancel",
		"close",
		"crash",
		"die",
		"pass",
		"settle",
	}).Draw(s.t, "what") {
	case "invoke":
		s.call(id, thread)
	case "answer":
		s.reply(id, rapid.IntRange(-1, 3).Draw(s.t, "index"))
	case "cancel":
		s.runtime.cancel(thread, id)
	case "close":
		if status, _ := s.runtime.closeThread(thread); status == http.StatusOK && s.disk.alive(false) == nil {
			s.granted[thread] = false
		}
	case "crash":
		s.crash()
	case "die":
		s.disk.die(rapid.IntRange(0, 6).Draw(s.t, "writes"))
	case "pass":
		s.clock.pass(time.Duration(rapid.IntRange(1, 12).Draw(s.t, "minutes")) * time.Minute)
	case "settle":
		s.settle()
	}
}

// named returns a call with an id. All of them have the same callback URL.
func (s *story) named(operation, id, thread string) *confCall {
	c := s.runtime.call(operation, `{"path":"/a"}`)
	c.uri = "/cb/story-secret"
	c.in.ID, c.in.GroupID = id, thread
	c.in.CallbackURL = s.runtime.server.URL + c.uri
	return c
}

// heardOf returns the messages of a type for an id.
func (s *story) heardOf(kind, id string) []*confCallback {
	found, _ := s.runtime.found(func(cb *confCallback) bool { return cb.Type == kind && cb.ID == id })
	return found
}

func (s *story) call(id, thread string) {
	op := rapid.SampledFrom([]string{"write_file", "write_file", "read_file"}).Draw(s.t, "operation")
	if s.granted[thread] || op == "read_file" {
		s.may[id] = true
	}
	s.threads[id] = thread
	if s.named(op, id, thread).post() == http.StatusOK {
		s.accepted[id] = true
	}
}

// reply answers the question of a call, if it was asked.
func (s *story) reply(id string, index int) {
	asked := s.heardOf("user_choice", id)
	if len(asked) == 0 {
		return
	}
	q := asked[len(asked)-1]
	switch index {
	case 0:
		s.may[id] = true
	case 1:
		s.granted[q.GroupID] = true
		for other, thread := range s.threads {
			if thread == q.GroupID {
				s.may[other] = true
			}
		}
	}

	s.runtime.send(http.MethodPost, q.ResponseURL, fmt.Appendf(nil, `{"id":%q,"selected":%d}`, id, index))
}

// settle waits until a call that needs no approval has ended, unless the gateway died.
func (s *story) settle() {
	c := s.named("read_file", fmt.Sprint("barrier", s.runtime.calls), "barrier")
	if c.post() == http.StatusOK {
		testwait.Until(s.confHarness.t, "a barrier", func() bool {
			return len(s.heardOf("tool_result", c.in.ID)) > 0 || s.disk.alive(false) != nil
		})
	}
}

func (s *story) holds() {
	ran := map[string]int{}
	for _, op := range s.ops {
		for _, job := range op.runs() {
			ran[job.ID]++
		}
	}
	for n := range storyIDs {
		if id := fmt.Sprint("c", n+1); ran[id] > 1 || ran[id] > 0 && !s.may[id] {
			s.t.Fatalf("%s ran %d times, allowed %t", id, ran[id], s.may[id])
		}
	}
}

// end lets time pass until no call is open.
func (s *story) end() {
	s.crash()
	s.clock.pass(15 * time.Minute)
	for id := range s.accepted {
		testwait.Until(s.confHarness.t, "a result of "+id, func() bool {
			s.clock.pass(time.Minute)
			return len(s.heardOf("tool_result", id)) > 0
		})
	}

	s.holds()
}
