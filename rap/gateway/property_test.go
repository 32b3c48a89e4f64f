package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/rap/wire"
)

// story is what happens to a gateway, and what is allowed by it.
type story struct {
	*harness
	t        *rapid.T
	accepted map[string]bool // by id: an invocation got 200
	may      map[string]bool // by id: an allowing answer was sent, or a session grant could cover it
	granted  map[string]bool // by thread: a session answer was sent, and no closure acknowledged since
	threads  map[string]string
}

const storyIDs = 5

// TestGatewayProperty has invocations, answers, cancellations,
// closures, deadlines and crashes come in any order, crashes also
// between any two writes. An operation runs at most once, and only
// after an allowance; every accepted invocation gets a result.
func TestProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newHarness(t, func(c *Config) { c.Poll = 5 * time.Millisecond })
		defer func() {
			h.stop()
			h.runtime.server.Close()
		}()
		s := &story{h, rt, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]string{}}
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
	acts := []string{
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
	}
	switch rapid.SampledFrom(acts).Draw(s.t, "what") {
	case "invoke":
		s.call(id, thread)
	case "answer":
		s.reply(id, rapid.IntRange(-1, 3).Draw(s.t, "index"))
	case "cancel":
		s.send("/cancel_tool_call", string(wire.CancelCall{ThreadID: thread, ToolCallID: id}.Append(nil)))
	case "close":
		if s.send("/close_thread", string(wire.CloseThread{ThreadID: thread}.Append(nil))) == 200 &&
			s.disk.alive(false) == nil {
			s.granted[thread] = false
		}
	case "crash":
		s.crash()
	case "die":
		s.disk.die(rapid.IntRange(0, 6).Draw(s.t, "writes"))
	case "pass":
		s.pass(time.Duration(rapid.IntRange(1, 12).Draw(s.t, "minutes")) * time.Minute)
	case "settle":
		s.settle()
	}
}

func (s *story) send(path, body string) int {
	req := s.request(s.cfg.PublicURL+path, body)
	req.Header.Set("Authorization", "Bearer "+callerToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = resp.Body.Close() // nothing is in it
	return resp.StatusCode
}

func (s *story) call(id, thread string) {
	op := rapid.SampledFrom([]string{"write", "write", "look"}).Draw(s.t, "operation")
	if s.granted[thread] || op == "look" {
		s.may[id] = true
	}
	s.threads[id] = thread
	in := wire.Invocation{
		Operation:   op,
		Arguments:   []byte(`{}`),
		ID:          id,
		CallbackURL: s.runtime.url(),
		GroupID:     thread,
		UserID:      "ann",
	}
	if s.send("/invoke", string(in.Append(nil))) == 200 {
		s.accepted[id] = true
	}
}

// reply answers the question of a call, when it was asked.
func (s *story) reply(id string, index int) {
	var q *wire.Choice
	for _, cb := range s.runtime.all() {
		if c, ok := cb.(*wire.Choice); ok && c.ID == id {
			q = c
		}
	}
	if q == nil {
		return
	}
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

	body := fmt.Sprintf(`{"id":%q,"selected":%d}`, id, index)
	s.send("/answer/"+q.ResponseURL[strings.LastIndex(q.ResponseURL, "/")+1:], body)
}

// settle waits until a call that needs nobody went all the way, if the
// process lives.
func (s *story) settle() {
	in := wire.Invocation{
		Operation:   "look",
		Arguments:   []byte(`{}`),
		ID:          fmt.Sprint("barrier", len(s.runtime.all())),
		CallbackURL: s.runtime.url(),
		GroupID:     "barrier",
	}
	if s.send("/invoke", string(in.Append(nil))) == 200 && s.disk.alive(false) == nil {
		s.runtime.until("a barrier", func() bool {
			return len(s.runtime.results(in.ID)) > 0 || s.disk.alive(false) != nil
		})
	}
}

func (s *story) holds() {
	for n := 1; n <= storyIDs; n++ {
		id := fmt.Sprint("c", n)
		if ran := s.runs(id); ran > 1 || ran > 0 && !s.may[id] {
			s.t.Fatalf("%s ran %d times, allowed %t", id, ran, s.may[id])
		}
	}
}

// end lets time pass until nothing is open any more.
func (s *story) end() {
	s.crash()
	s.pass(15 * time.Minute)
	for id := range s.accepted {
		s.runtime.until("a result of "+id, func() bool {
			s.pass(time.Minute)
			return len(s.runtime.results(id)) > 0
		})
	}

	s.holds()
}
