package rap_test

import (
	"encoding/json"
	"fmt"
	"io"
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

	"github.com/assent-dev/assent/rap/runtime"
	"github.com/assent-dev/assent/rap/wire"
)

const (
	loadWorkers = 32        // send at once
	loadMemory  = 100 << 20 // bytes that the choices that wait may cost
	loadThreads = 400       // goroutines that a side may have, however many calls it has
	loadShare   = 5         // one choice of so many is answered; that the others wait is counted
)

// loadSize says how much a load test makes wait, and how many processes
// it kills.
type loadSize struct {
	pending int // choices that wait
	calls   int // that go through while processes are killed
	kills   int
}

// loadSizes are small by default. ASSENT_LOAD=full measures what
// docs/design/006-rap.md and bench/README.md claim.
func loadSizes() loadSize {
	if os.Getenv("ASSENT_LOAD") == "full" {
		return loadSize{pending: 10_000, calls: 200, kills: 32}
	}

	return loadSize{pending: 500, calls: 60, kills: 8}
}

// loadUser is the other side of many calls: of a gateway the runtime
// with its user, of a runtime the tool.
type loadUser struct {
	t      *testing.T
	server *httptest.Server
	client *http.Client
	mu     sync.Mutex
	urls   map[string]string   // where choices are answered, by id; of a runtime where its calls are
	ends   map[string][]string // results, or answers
	news   atomic.Int64
	let    chan struct{} // callbacks wait for it; nil: they don't
}

func newLoadUser(t *testing.T) *loadUser {
	u := &loadUser{
		t:      t,
		client: loadClient(t),
		urls:   map[string]string{},
		ends:   map[string][]string{},
	}
	u.server = httptest.NewServer(u)
	t.Cleanup(u.server.Close)
	return u
}

// ServeHTTP hears a gateway's callbacks; and, as a tool, what a runtime
// sends.
func (u *loadUser) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // its sender was killed
	}
	switch where, id := path.Split(req.URL.Path); where {
	case "/.well-known/":
		set := wire.Toolset{Name: "files", Endpoint: u.server.URL + "/tool/invoke"}
		set.Tools = []wire.Tool{{
			Name:        "write_file",
			Description: "Writes a file.",
			InputSchema: []byte(`{"type":"object"}`),
		}}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(set.Append(nil))
	case "/tool/":
		in, err := wire.ParseInvocation(body)
		u.hear(err, in.ID, in.CallbackURL, "")
	case "/answers/":
		in, err := wire.ParseAnswer(body)
		u.hear(err, id, "", fmt.Sprint(in.ID, " ", in.Selected))
	default:
		if u.let != nil {
			<-u.let
		}
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

func (u *loadUser) urlOf(id string) string {
	u.mu.Lock()
	defer u.mu.Unlock()

	return u.urls[id]
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
	if end != "" && !slices.Contains(u.ends[id], end) { // what a killed sender had sent may come again
		u.ends[id] = append(u.ends[id], end)
	}
	u.news.Add(1)
}

func (u *loadUser) counts() (asked, ended int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.urls), len(u.ends)
}

// awaits waits for so many questions and ends, for as long as there is news.
func (u *loadUser) awaits(what string, asked, ended int) {
	u.t.Helper()
	loadUntil(u.t, what, func() string {
		a, e := u.counts()
		return fmt.Sprint(a, " questions, ", e, " ends, ", u.news.Load(), " messages")
	}, func() bool {
		a, e := u.counts()
		return a >= asked && e >= ended
	})
}

// loadUntil waits for something, for as long as it comes nearer.
func loadUntil(t *testing.T, what string, stands func() string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for last, since := "", time.Now(); !holds(); <-tick.C {
		if now := stands(); now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) > 20*time.Second {
			t.Fatalf("in vain: %s; stands at %s", what, last)
		}
	}
}

// each does something for every id, some at once.
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

// posts sends a document and returns the status; 0 when there is none.
func (u *loadUser) posts(url string, body []byte) int {
	res, err := u.client.Post(url, "application/json", strings.NewReader(string(body)))
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

func (u *loadUser) must(url string, body []byte) {
	if status := u.posts(url, body); status != http.StatusOK {
		u.t.Errorf("answered with %d", status)
	}
}

// invokes makes calls of a gateway.
func (u *loadUser) invokes(gateway string, ids []string) {
	loadEach(ids, func(id string) { u.must(gateway+"/invoke", u.invocation(id)) })
}

func (u *loadUser) invocation(id string) []byte {
	in := loadInvocation(id)
	return (&wire.Invocation{
		Operation:   in.Operation,
		Arguments:   in.Arguments,
		ID:          id,
		GroupID:     in.Thread,
		UserID:      in.User,
		CallbackURL: u.server.URL + "/callbacks/" + id,
	}).Append(nil)
}

// choice is a question of the tool that a runtime called.
func (u *loadUser) choice(id string) []byte {
	return (&wire.Choice{
		GroupID:     loadInvocation(id).Thread,
		ID:          id,
		Prompt:      "Write?",
		Choices:     []string{"Yes", "No"},
		Default:     1,
		ResponseURL: u.server.URL + "/answers/" + id,
	}).Append(nil)
}

// loadSample picks some, at random, and returns the others too.
func loadSample(ids []string) (some, rest []string) {
	ids = slices.Clone(ids)
	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	n := len(ids) / loadShare
	return ids[:n], ids[n:]
}

// alive asks a gateway about a call.
func (p *loaded) alive(id string) bool {
	body := (&wire.Status{ThreadID: loadInvocation(id).Thread, ToolCallID: id}).Append(nil)
	res, err := p.client.Post(p.life.Own+"/tool_call_status", "application/json", strings.NewReader(string(body)))
	if err != nil {
		p.t.Error(err)
		return false
	}
	defer res.Body.Close()
	var got struct{ Alive bool }
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
		p.t.Error(err)
	}
	return got.Alive
}

// loadCosts holds what the choices cost to the bars.
func loadCosts(t *testing.T, side string, before, after loadCost) {
	t.Helper()
	grown := int64(after.Memory) - int64(before.Memory)
	t.Logf(
		"RESULT %s: %d choices wait at %.1f MB more of heap and stacks (%.1f MB in all), %d goroutines, %.1f MB "+
			"resident (%.1f MB before)",
		side,
		loadSizes().pending,
		float64(grown)/1e6,
		float64(after.Memory)/1e6,
		after.Goroutines,
		float64(after.Resident)/1e6,
		float64(before.Resident)/1e6,
	)
	if grown > loadMemory {
		t.Errorf("%s: the choices cost %d bytes", side, grown)
	}
	if after.Goroutines > loadThreads {
		t.Errorf("%s: %d goroutines", side, after.Goroutines)
	}
}

// TestLoadGateway: ten thousand calls wait for their users, at the cost
// of rows; the gateway is killed; the next one takes every answer.
func TestLoadGateway(t *testing.T) {
	pending := loadSizes().pending
	u := newLoadUser(t)
	g := newLoaded(t, func(l *loadLife) { l.Gateway, l.Other = true, u.server.URL })
	g.start()
	ids := loadIDs(pending)
	before := g.cost()
	start := time.Now()
	lap := func(what string) {
		t.Logf("%s after %v", what, time.Since(start).Round(time.Millisecond))
	}
	u.invokes(g.life.Own, ids)
	lap("acknowledged")
	u.awaits("the questions", pending, 0)
	lap("asked")
	loadCosts(t, "gateway", before, g.cost())
	g.reborn(time.Minute)
	lap("killed, and back")
	some, rest := loadSample(ids)
	loadEach(some, func(id string) {
		u.must(u.urlOf(id), wire.Answer{ID: id, Selected: int(loadChance(id, 2))}.Append(nil))
	})
	lap("answered")
	u.awaits("the results", pending, len(some))
	lap("ended")
	loadEach(rest, func(id string) {
		if !g.alive(id) {
			t.Errorf("%s does not wait any more", id)
		}
	})
	lap("counted")
	runs := g.runs()
	for _, id := range some {
		want, times := "done "+id, 1
		if loadChance(id, 2) == 1 {
			want, times = "Error: the user denied this call", 0
		}
		if got := u.ends[id]; len(got) != 1 || got[0] != want || runs[id] != times {
			t.Fatalf("%s ended with %q, after %d runs", id, got, runs[id])
		}
	}
}

// TestLoadRuntime: the same of a runtime. While it is dead people
// answer some of what it asked them; the rest stays as it was.
func TestLoadRuntime(t *testing.T) {
	pending := loadSizes().pending
	u := newLoadUser(t)
	r := newLoaded(t, func(l *loadLife) { l.Other = u.server.URL })
	r.start()
	ids := loadIDs(pending)
	before := r.cost()
	start := time.Now()
	lap := func(what string) {
		t.Logf("%s after %v", what, time.Since(start).Round(time.Millisecond))
	}
	loadEach(ids, func(id string) { u.must(r.life.Own+"/test/invoke?id="+id, nil) })
	u.awaits("the invocations", pending, 0)
	lap("sent")
	loadEach(ids, func(id string) { u.must(u.urlOf(id), u.choice(id)) })
	asked := r.asks(ids)
	lap("asked")
	loadCosts(t, "runtime", before, r.cost())
	some, rest := loadSplit(asked)
	r.life.People = loadShare
	r.reborn(time.Minute)
	lap("killed, and back")
	u.awaits("the answers", pending, len(some))
	lap("answered")
	text := "done"
	loadEach(some, func(id string) {
		u.must(u.urlOf(id), (&wire.Result{
			GroupID: loadInvocation(id).Thread,
			ID:      id,
			Text:    &text,
		}).Append(nil))
	})
	lap("ended")
	for _, id := range some {
		got := r.call(id)
		if got.State != runtime.CallDone || got.Synthetic || got.Outcome.Text != text || len(u.ends[id]) != 1 ||
			!strings.HasPrefix(u.ends[id][0], id+" ") {
			t.Fatalf("%s stands at %+v, its tool was told %q", id, got, u.ends[id])
		}
	}

	for _, id := range rest {
		if got := r.call(id); got.State != runtime.CallPending || got.Question != asked[id] ||
			len(u.ends[id]) != 0 {
			t.Fatalf("nobody answered %s, and it stands at %+v; its tool was told %q", id, got, u.ends[id])
		}
	}

	lap("counted")
}

// asks waits until a runtime has put every question to its people, and
// returns their refs.
func (p *loaded) asks(ids []string) map[string]string {
	p.t.Helper()
	out := map[string]string{}
	for _, id := range ids {
		loadUntil(p.t, id+" is asked", func() string { return out[id] }, func() bool {
			out[id] = p.call(id).Question
			return out[id] != ""
		})
	}

	return out
}

// loadSplit tells whom people answer.
func loadSplit(refs map[string]string) (some, rest []string) {
	for id, ref := range refs {
		if loadAnswered(ref, loadShare) {
			some = append(some, id)
		} else {
			rest = append(rest, id)
		}
	}

	return some, rest
}

func (p *loaded) call(id string) (c runtime.Call) {
	p.t.Helper()
	p.get("/test/call?id="+id, &c)
	return c
}
