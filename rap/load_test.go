package rap_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/rap/internal/raptest"
	"github.com/assent-dev/assent/rap/runtime"
	"github.com/assent-dev/assent/rap/wire"
)

const (
	loadWorkers = 32        // concurrent senders
	loadMemory  = 100 << 20 // limit of the memory for pending choices, in bytes
	loadThreads = 400       // limit of the goroutines of one side, however many calls it has
	loadShare   = 5         // one choice of this many is answered; the others have to wait
)

// loadSize is the size of a load test.
type loadSize struct {
	pending int // pending choices
	calls   int // calls made while processes are killed
	kills   int
}

// loadSizes returns small sizes by default. ASSENT_LOAD=full measures what
// docs/design/006-rap.md and bench/README.md claim.
func loadSizes() loadSize {
	if os.Getenv("ASSENT_LOAD") == "full" {
		return loadSize{pending: 10_000, calls: 200, kills: 32}
	}

	return loadSize{pending: 500, calls: 60, kills: 8}
}

// loadUser is the peer of many calls: the runtime with its user for a gateway, the tool for a
// runtime. Unlike confRuntime and toolPeer it indexes messages by call and drops the bodies.
type loadUser struct {
	t      *testing.T
	server *httptest.Server
	mu     sync.Mutex
	urls   map[string]string   // URLs for the answers to choices, by id; for a runtime, those for callbacks
	ends   map[string][]string // results, or answers
}

func newLoadUser(t *testing.T) *loadUser {
	u := &loadUser{t: t, urls: map[string]string{}, ends: map[string][]string{}}
	u.server = httptest.NewServer(u)
	t.Cleanup(u.server.Close)
	return u
}

func (u *loadUser) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender was killed
	}
	switch where, id := path.Split(req.URL.Path); where {
	case "/.well-known/":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, raptest.Manifest(u.server.URL+"/tool/invoke", "write_file"))
	case "/tool/":
		in, err := wire.ParseInvocation(body)
		u.hear(err, in.ID, in.CallbackURL, "")
	case "/answers/":
		in, err := wire.ParseAnswer(body)
		u.hear(err, id, "", fmt.Sprint(in.ID, " ", in.Selected))
	default:
		cb, err := wire.ParseCallback(body)
		switch cb := cb.(type) {
		case *wire.Choice:
			u.hear(err, cb.ID, cb.ResponseURL, "")
		case *wire.Result:
			u.hear(err, cb.ID, "", *cb.Text)
		default:
			u.t.Errorf("heard %s: %v", body, err)
		}
	}
}

func (u *loadUser) hear(err error, id, url, end string) {
	if err != nil {
		u.t.Error(err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if url != "" {
		u.urls[id] = strings.Clone(url)
	}
	if end != "" && !slices.Contains(u.ends[id], end) { // the message of a killed sender may be repeated
		u.ends[id] = append(u.ends[id], end)
	}
}

// awaits waits for a number of questions (or invocations) and ends.
func (u *loadUser) awaits(what string, asked, ended int) {
	u.t.Helper()
	testwait.Value(u.t, what, func() ([2]int, bool) {
		u.mu.Lock()
		defer u.mu.Unlock()
		return [2]int{len(u.urls), len(u.ends)}, len(u.urls) >= asked && len(u.ends) >= ended
	})
}

// must posts a document to the URL of a call and checks for 200.
func (u *loadUser) must(p *process, id string, body []byte) {
	u.mu.Lock()
	url := u.urls[id]
	u.mu.Unlock()
	if status, text := p.post(strings.TrimPrefix(url, p.life.Own), body); status != http.StatusOK {
		u.t.Errorf("%s: answered with %d %s", id, status, text)
	}
}

// loadEach calls do for every id, several at a time.
func loadEach(ids []string, do func(id string)) {
	var all sync.WaitGroup
	next := atomic.Int64{}
	for range loadWorkers {
		all.Go(func() {
			for at := next.Add(1) - 1; at < int64(len(ids)); at = next.Add(1) - 1 {
				do(ids[at])
			}
		})
	}

	all.Wait()
}

func loadIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("call_%05d", i)
	}
	return ids
}

// loadInvocation returns the call with an id. There are a hundred threads, and consecutive
// calls are in different ones.
func loadInvocation(id string) runtime.Invocation {
	return runtime.Invocation{
		Thread:    "thread " + id[len(id)-2:],
		ID:        id,
		User:      "ann",
		Operation: "write_file",
		Arguments: json.RawMessage(`{"path":"/etc/motd","text":"` + id + `"}`),
	}
}

func loadDone(id string) string { return "done " + string(loadInvocation(id).Arguments) }

// alive requests the status of a call from a gateway.
func (p *process) alive(id string) bool {
	status, text := p.post("/tool_call_status", (&wire.Status{
		ThreadID:   loadInvocation(id).Thread,
		ToolCallID: id,
	}).Append(nil))
	if status != http.StatusOK {
		p.t.Errorf("%s: answered with %d %s", id, status, text)
	}
	return strings.Contains(text, "true")
}

func (p *process) loadCall(id string) runtime.Call { return p.call(loadInvocation(id).Thread, id) }

// runsOf counts the runs of each call.
func (p *process) runsOf() map[string]int {
	out := map[string]int{}
	for _, run := range p.runs() {
		out[run[1]]++
	}
	return out
}

// loadCosts checks the cost of pending choices against the limits.
func loadCosts(t *testing.T, side string, before, after cost) {
	t.Helper()
	grown := int64(after.Memory) - int64(before.Memory)
	t.Logf("RESULT %s: %d choices wait at %.1f MB more of heap and stacks (%.1f MB in all), %d goroutines",
		side, loadSizes().pending, float64(grown)/1e6, float64(after.Memory)/1e6, after.Goroutines)
	if grown > loadMemory {
		t.Errorf("%s: the choices cost %d bytes", side, grown)
	}
	if after.Goroutines > loadThreads {
		t.Errorf("%s: %d goroutines", side, after.Goroutines)
	}
}

// Ten thousand calls wait for their users, at the cost of rows. After the gateway is killed,
// the next one accepts every answer.
func TestLoadGateway(t *testing.T) {
	t.Parallel()
	u := newLoadUser(t)
	g := newProcess(t, life{Gateway: true, Load: true, Other: u.server.URL})
	g.start()
	ids := loadIDs(loadSizes().pending)
	before := g.cost()
	loadEach(ids, func(id string) {
		in := loadInvocation(id)
		body := (&wire.Invocation{
			Operation: in.Operation, Arguments: in.Arguments, ID: id, GroupID: in.Thread, UserID: in.User,
			CallbackURL: u.server.URL + "/callbacks/" + id,
		}).Append(nil)
		if status, text := g.post("/invoke", body); status != http.StatusOK {
			t.Errorf("%s: answered with %d %s", id, status, text)
		}
	})
	u.awaits("the questions", len(ids), 0)
	loadCosts(t, "gateway", before, g.cost())
	g.reborn(time.Minute)

	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	some, rest := ids[:len(ids)/loadShare], ids[len(ids)/loadShare:]
	loadEach(some, func(id string) {
		u.must(g, id, wire.Answer{ID: id, Selected: int(chance(id, 2))}.Append(nil))
	})
	u.awaits("the results", len(ids), len(some))
	loadEach(rest, func(id string) {
		if !g.alive(id) {
			t.Errorf("%s does not wait any more", id)
		}
	})
	runs := g.runsOf()
	for _, id := range some {
		want, times := loadDone(id), 1
		if chance(id, 2) == 1 {
			want, times = "Error: the user denied this call", 0
		}
		if got := u.ends[id]; len(got) != 1 || got[0] != want || runs[id] != times {
			t.Fatalf("%s ended with %q, after %d runs", id, got, runs[id])
		}
	}
}

// TestLoadRuntime is the same for a runtime. While it is dead, people answer some of its
// questions; the others stay open.
func TestLoadRuntime(t *testing.T) {
	t.Parallel()
	u := newLoadUser(t)
	r := newProcess(t, life{Load: true, Other: u.server.URL})
	r.start()
	ids := loadIDs(loadSizes().pending)
	before := r.cost()
	loadEach(ids, func(id string) {
		if status, text := r.invoke(loadInvocation(id)); status != http.StatusOK {
			t.Errorf("%s: answered with %d %s", id, status, text)
		}
	})
	u.awaits("the invocations", len(ids), 0)
	loadEach(ids, func(id string) {
		u.must(r, id, (&wire.Choice{
			GroupID: loadInvocation(id).Thread, ID: id, Prompt: "Write?", Choices: []string{"Yes", "No"}, Default: 1,
			ResponseURL: u.server.URL + "/answers/" + id,
		}).Append(nil))
	})
	asked := map[string]string{}
	var some, rest []string
	for _, id := range ids {
		asked[id] = testwait.Value(t, id+" to be asked about", func() (string, bool) {
			ref := r.loadCall(id).Question
			return ref, ref != ""
		})
		if loadAnswered(asked[id], loadShare) {
			some = append(some, id)
		} else {
			rest = append(rest, id)
		}
	}
	loadCosts(t, "runtime", before, r.cost())
	r.life.People = loadShare
	r.reborn(time.Minute)

	u.awaits("the answers", len(ids), len(some))
	text := "done"
	loadEach(some, func(id string) {
		u.must(r, id, (&wire.Result{GroupID: loadInvocation(id).Thread, ID: id, Text: &text}).Append(nil))
	})
	for _, id := range some {
		got := r.loadCall(id)
		if got.State != runtime.CallDone || got.Synthetic || got.Outcome.Text != text || len(u.ends[id]) != 1 ||
			!strings.HasPrefix(u.ends[id][0], id+" ") {
			t.Fatalf("%s is %+v, its tool was told %q", id, got, u.ends[id])
		}
	}
	for _, id := range rest {
		if got := r.loadCall(id); got.State != runtime.CallPending || got.Question != asked[id] ||
			len(u.ends[id]) != 0 {
			t.Fatalf("nobody answered %s, and it is %+v; its tool was told %q", id, got, u.ends[id])
		}
	}
}

// slaughter is a gateway and a runtime, in processes that are killed repeatedly while calls go
// through both.
type slaughter struct {
	t                *testing.T
	gateway, runtime *process
	ids              []string
}

// Both sides are killed with SIGKILL at random moments. No operation runs twice, every call has
// one end that does not change, and no call is stuck: a call that was lost in transit ends at
// its deadline and never ran.
func TestLoadKilled(t *testing.T) {
	t.Parallel()
	s := &slaughter{t: t, ids: loadIDs(loadSizes().calls)}
	s.runtime = newProcess(t, life{Load: true, People: 1})
	s.gateway = newProcess(t, life{Gateway: true, Load: true, Slow: true, Other: s.runtime.life.Own})
	s.runtime.life.Other = s.gateway.life.Own
	s.gateway.start()
	s.runtime.start()
	s.kills()
	s.settles(true)
	s.runtime.reborn(longestWait + time.Hour) // lost calls reach their deadline
	first := maps.Clone(s.settles(false))
	s.gateway.reborn(time.Minute)
	s.runtime.reborn(time.Minute)
	tally := map[string]int{}
	for id, end := range s.settles(false) {
		if end.Outcome.Text != first[id].Outcome.Text || end.Why != first[id].Why {
			t.Errorf("%s ended with %q, and then with %q", id, first[id].Outcome.Text, end.Outcome.Text)
		}
		tally[s.holds(id, end)]++
	}

	t.Logf("%v", tally)
	if tally["done"] == 0 || tally["denied"] == 0 {
		t.Errorf("calls ended: %v", tally)
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
			testwait.Value(s.t, "a runtime that takes "+id, func() (int, bool) {
				status, _ := s.runtime.invoke(loadInvocation(id))
				return status, status == http.StatusOK
			})
		}
	}()
	for n := range size.kills {
		for _, id := range s.ids[size.calls*n/size.kills : size.calls*(n+1)/size.kills] {
			made <- id
		}
		<-time.After(time.Duration(random.IntN(250)) * time.Millisecond)
		[]*process{s.gateway, s.runtime}[random.IntN(2)].reborn(time.Minute)
	}

	close(made)
	<-all
}

// settles waits until all calls have ended and returns their ends. If some may be lost, it does
// not wait for calls whose invocation was lost with a killed runtime: the protocol forbids
// sending them again.
func (s *slaughter) settles(some bool) map[string]runtime.Call {
	s.t.Helper()
	ends := map[string]runtime.Call{}
	testwait.Value(s.t, "the ends of all calls", func() (open []string, over bool) {
		lost := 0
		for _, id := range s.ids {
			if _, known := ends[id]; known {
				continue
			}
			c := s.runtime.loadCall(id)
			if c.State == runtime.CallDone {
				ends[id] = c
				continue
			}
			open = append(open, id)
			if some && c.State == runtime.CallPending && c.Question == "" && !s.gateway.alive(id) {
				lost++
			}
		}

		return open, lost == len(open)
	})
	return ends
}

// holds checks the end of a call against its runs, and returns the kind of end.
func (s *slaughter) holds(id string, end runtime.Call) string {
	s.t.Helper()
	runs, text := s.gateway.runsOf()[id], end.Outcome.Text
	kind := ""
	least := 0
	most := 0
	switch {
	case text == loadDone(id) && !end.Synthetic:
		kind = "done"
		least = 1
		most = 1
	case text == "Error: the user denied this call" && !end.Synthetic:
		kind = "denied"
	case strings.Contains(text, "outcome unknown") && !end.Synthetic:
		kind, most = "unknown", 1
	case end.Why == runtime.WhyTimeout:
		kind = "lost"
	case end.Why == runtime.WhyInvalid: // there was no gateway to discover the tools from
		kind = "refused"
	}

	alive := s.gateway.alive(id)
	if kind == "" || runs > most || runs < least || alive {
		s.t.Errorf("%s ran %d times and ended with %q (%s); the gateway still works on it: %t",
			id, runs, text, end.Why, alive)
	}
	return kind
}
