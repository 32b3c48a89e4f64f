package a2a

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/filestore"
	"github.com/assent-dev/assent/internal/must"
)

// peer is a remote agent with scripted responses. In these texts, ID is replaced by the id of
// the call and CTX by the context of the first message.
type peer struct {
	t   *testing.T
	url string

	mu      sync.Mutex
	script  map[string][]string // by method; the last one is repeated
	calls   []string            // methods
	context string
	sent    []string // message ids
}

func newPeer(t *testing.T, script map[string][]string) *peer {
	p := &peer{t: t, script: script}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

// ServeHTTP returns the next response for a method. An empty one closes the connection.
func (p *peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		ID     string
		Method string
		Params struct{ Message Message }
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &in) != nil || r.Header.Get("A2A-Version") != Version {
		http.Error(w, "no call", http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, in.Method)
	if in.Method == "SendMessage" {
		p.sent = append(p.sent, in.Params.Message.MessageID)
		if in.Params.Message.TaskID == "" {
			p.context = in.Params.Message.ContextID
		}
	}

	all := p.script[in.Method]
	if len(all) == 0 {
		all = []string{`{"jsonrpc":"2.0","id":"ID","error":{"code":-32601,"message":"no"}}`}
	}
	if len(all) > 1 {
		p.script[in.Method] = all[1:]
	}
	if all[0] == "" {
		panic(http.ErrAbortHandler)
	}
	text := strings.NewReplacer("ID", in.ID, "CTX", p.context).Replace(all[0])
	_, _ = io.WriteString(w, text)
}

func (p *peer) count(method string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, m := range p.calls {
		if m == method {
			n++
		}
	}
	return n
}

// remote returns a tool of this peer.
func (p *peer) remote(cfg RemoteConfig) *Remote {
	p.t.Helper()
	c := must.Get(NewClient(ClientConfig{
		URL:      p.url,
		Loopback: true,
		MaxBytes: 64 << 10,
		Timeout:  5 * time.Second,
	}))(p.t)
	cfg.Name = "ask_peer"
	if cfg.Wait == 0 {
		cfg.Wait = 300 * time.Millisecond
	}
	return NewRemote(c, cfg)
}

// ok returns a response with a task in a state. more contains further members of its status.
func ok(wrap string, state State, more string) string {
	task := fmt.Sprintf(`{"id":"remote-1","contextId":"CTX","status":{"state":"%s"%s}}`, state, more)
	if wrap != "" {
		task = `{"` + wrap + `":` + task + `}`
	}
	return `{"jsonrpc":"2.0","id":"ID","result":` + task + `}`
}

func at(second int) string { return fmt.Sprintf(`,"timestamp":"2026-11-22T20:00:%02dZ"`, second) }

func asks(messageID, text string) string {
	return fmt.Sprintf(`,"message":{"messageId":%q,"role":"ROLE_AGENT","parts":[{"text":%q}]}`, messageID, text)
}

func invoking() *content.FunctionCall {
	return &content.FunctionCall{CallID: "call_1", Name: "ask_peer", Arguments: json.RawMessage(`{"input":"Go."}`)}
}

// TestAPeerThatContradictsItself checks that the call fails with a message, the task is
// canceled, and nothing is sent twice.
func TestAPeerThatContradictsItself(t *testing.T) {
	working := ok("task", Working, at(5))
	otherTask := strings.Replace(ok("", Working, ""), "remote-1", "remote-2", 1)
	otherContext := strings.Replace(ok("", Working, ""), "CTX", "x", 1)
	noQuestion := `,"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"data":{},"mediaType":"` +
		RequestMediaType + `"}]}`
	for name, c := range map[string]struct {
		send, get []string
		words     string
	}{
		"another task":             {[]string{working}, []string{otherTask}, "another task"},
		"another context":          {[]string{working}, []string{otherContext}, "another context"},
		"back to submitted":        {[]string{working}, []string{ok("", Submitted, at(6))}, "only submitted now"},
		"an older status":          {[]string{working}, []string{ok("", Working, at(4))}, "older status"},
		"no state":                 {[]string{working}, []string{ok("", "", "")}, "state"},
		"a state that is none":     {[]string{working}, []string{ok("", "TASK_STATE_RESTING", "")}, "no state of A2A"},
		"asks what is no question": {[]string{ok("task", InputRequired, noQuestion)}, nil, "a2a"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, map[string][]string{"SendMessage": c.send, "GetTask": c.get})
			_, err := p.remote(RemoteConfig{}).Invoke(t.Context(), invoking())
			var s *agent.Suspend
			if err == nil || errors.As(err, &s) || !strings.Contains(err.Error(), c.words) {
				t.Errorf("error %v, want one with %q", err, c.words)
			}
			if p.count("SendMessage") != 1 || p.count("CancelTask") != 1 {
				t.Errorf("called %v", p.calls)
			}
		})
	}
}

// TestAPeerWhoseAnswersAreNone checks that an invalid response is reported as unsure, and that
// the message is not sent again.
func TestAPeerWhoseAnswersAreNone(t *testing.T) {
	task := `{"id":"remote-1","status":{"state":"TASK_STATE_WORKING"}}`
	for name, answer := range map[string]string{
		"no JSON":          `{`,
		"a key twice":      `{"jsonrpc":"2.0","id":"ID","result":{"task":` + task + `,"task":` + task + `}}`,
		"another call":     `{"jsonrpc":"2.0","id":"x","result":{"task":` + task + `}}`,
		"both":             `{"jsonrpc":"2.0","id":"ID","result":{},"error":{"code":1,"message":"x"}}`,
		"neither":          `{"jsonrpc":"2.0","id":"ID"}`,
		"another version":  `{"jsonrpc":"1.0","id":"ID","result":{"task":` + task + `}}`,
		"more than it may": `{"jsonrpc":"2.0","id":"ID","result":{"x":"` + strings.Repeat("x", 64<<10) + `"}}`,
		"no task":          `{"jsonrpc":"2.0","id":"ID","result":{}}`,
		"cut off":          ``,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, map[string][]string{"SendMessage": {answer}})
			_, err := p.remote(RemoteConfig{}).Invoke(t.Context(), invoking())
			var unsure *UnsureError
			if !errors.As(err, &unsure) || p.count("SendMessage") != 1 {
				t.Errorf("error %v after %v", err, p.calls)
			}
		})
	}
}

func TestAPeerThatRefuses(t *testing.T) {
	p := newPeer(t, nil)
	_, err := p.remote(RemoteConfig{}).Invoke(t.Context(), invoking())
	var refused *PeerError
	if !errors.As(err, &refused) || refused.Code != -32601 || strings.Contains(err.Error(), "no method") {
		t.Errorf("error %v", err)
	}
}

func TestAnAnswerWithoutATask(t *testing.T) {
	p := newPeer(t, map[string][]string{"SendMessage": {
		`{"jsonrpc":"2.0","id":"ID","result":{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"Hi."}]}}}`,
	}})
	got := must.Get(p.remote(RemoteConfig{}).Invoke(t.Context(), invoking()))(t)
	if end, ok := got.(*Ending); !ok || *end != (Ending{"completed", "Hi."}) {
		t.Errorf("got %+v", got)
	}
}

// TestAPeerThatFails checks that the task's failure is reported.
func TestAPeerThatFails(t *testing.T) {
	p := newPeer(t, map[string][]string{
		"SendMessage": {ok("task", Submitted, "")},
		"GetTask":     {ok("", Working, ""), ok("", Rejected, asks("m", "not for you"))},
	})
	got := must.Get(p.remote(RemoteConfig{Wait: time.Minute}).Invoke(t.Context(), invoking()))(t)
	if end, ok := got.(*Ending); !ok || *end != (Ending{"rejected", "not for you"}) {
		t.Errorf("got %+v", got)
	}
}

// suspended returns the Suspend of a call that waits.
func suspended(t *testing.T, err error) *agent.Suspend {
	t.Helper()
	var s *agent.Suspend
	if !errors.As(err, &s) || s.Err != nil || len(s.Requests) != 1 || !s.Poll {
		t.Fatalf("error %v, suspends %+v", err, s)
	}
	return s
}

// TestAPeerThatNeverEnds checks that the user is asked whether to keep waiting. A no cancels
// the task, and the maximum age ends the call.
func TestAPeerThatNeverEnds(t *testing.T) {
	script := func() map[string][]string {
		return map[string][]string{
			"SendMessage": {ok("task", Working, "")},
			"GetTask":     {ok("", Working, asks("m", "almost"))},
			"CancelTask":  {ok("", Canceled, "")},
		}
	}
	p := newPeer(t, script())
	now := time.Now()
	r := p.remote(RemoteConfig{Now: func() time.Time { return now }})
	r.cfg.Wait = 0 // the clock doesn't move, so only this ends the waiting
	_, err := r.Invoke(t.Context(), invoking())
	s := suspended(t, err)
	q := s.Requests[0].(*content.TextApprovalRequest)
	if !strings.Contains(q.Text, "Wait on?") || !strings.Contains(q.Text, "remote-1") {
		t.Errorf("the user is asked %q", q.Text)
	}
	no := []content.InputResponse{q.CreateRejection("")}
	got := must.Get(r.Resume(t.Context(), invoking(), s.State, no))(t)
	if end, ok := got.(*Ending); !ok || end.State != "canceled" {
		t.Errorf("got %+v", got)
	}
	now = now.Add(25 * time.Hour)
	yes := []content.InputResponse{q.CreateApproval("")}
	_, err = r.Resume(t.Context(), invoking(), s.State, yes)
	wantCode(t, err, Endless)
	if p.count("CancelTask") != 2 || p.count("SendMessage") != 1 {
		t.Errorf("called %v", p.calls)
	}
}

// TestAPeerThatAsksWithoutEnd checks that the call ends after the maximum number of rounds.
func TestAPeerThatAsksWithoutEnd(t *testing.T) {
	var replies []string
	for i := range 9 {
		replies = append(replies, ok("task", InputRequired, asks(fmt.Sprint("m", i), fmt.Sprint("and ", i, "?"))))
	}
	p := newPeer(t, map[string][]string{"SendMessage": replies})
	r := p.remote(RemoteConfig{Rounds: 3})
	_, err := r.Invoke(t.Context(), invoking())
	var before string
	for range 3 {
		s := suspended(t, err)
		q := s.Requests[0].(*content.StructuredInputRequest)
		if q.RequestID == before {
			t.Fatal("two questions have one id: an answer to one would answer the other")
		}
		before = q.RequestID
		answer := must.Get(q.CreateResponse(json.RawMessage(`"yes"`)))(t)
		_, err = r.Resume(t.Context(), invoking(), s.State, []content.InputResponse{answer})
	}

	wantCode(t, err, Endless)
	if p.count("SendMessage") != 4 || p.count("CancelTask") != 1 {
		t.Errorf("called %v", p.calls)
	}
}

// TestAPeerThatRepeatsItsQuestion checks that the call fails if the peer keeps asking an
// answered question.
func TestAPeerThatRepeatsItsQuestion(t *testing.T) {
	p := newPeer(t, map[string][]string{
		"SendMessage": {ok("task", InputRequired, asks("m", "Where?"))},
		"GetTask":     {ok("", InputRequired, asks("m", "Where?"))},
	})
	r := p.remote(RemoteConfig{})
	_, err := r.Invoke(t.Context(), invoking())
	s := suspended(t, err)
	answer := must.Get(s.Requests[0].(*content.StructuredInputRequest).CreateResponse(json.RawMessage(`"here"`)))(t)
	_, err = r.Resume(t.Context(), invoking(), s.State, []content.InputResponse{answer})
	wantCode(t, err, Contradiction)
	if p.count("SendMessage") != 2 {
		t.Errorf("called %v", p.calls)
	}
}

// TestAnAnswerThatMayBeLost checks that the answer is sent again under its id if the task still
// asks. Either the same process continues, or another one that only knows from the thread that
// the user has answered.
func TestAnAnswerThatMayBeLost(t *testing.T) {
	for _, killed := range []bool{false, true} {
		p := newPeer(t, map[string][]string{
			"SendMessage": {ok("task", InputRequired, asks("m", "Where?")), "",
				ok("task", Completed, asks("m2", "There."))},
			"GetTask": {ok("", InputRequired, asks("m", "Where?"))},
		})
		cfg := RemoteConfig{Journal: must.Get(filestore.New(t.TempDir()))(t)}
		_, err := p.remote(cfg).Invoke(t.Context(), invoking())
		s := suspended(t, err)
		q := s.Requests[0].(*content.StructuredInputRequest)
		answers := []content.InputResponse{must.Get(q.CreateResponse(json.RawMessage(`"here"`)))(t)}
		_, err = p.remote(cfg).Resume(t.Context(), invoking(), s.State, answers)
		var again *agent.Suspend
		if !errors.As(err, &again) || again.Err == nil {
			t.Fatalf("error %v", err)
		}
		state := again.State
		if killed {
			state = s.State
		} else {
			answers = nil
		}

		got := must.Get(p.remote(cfg).Resume(t.Context(), invoking(), state, answers))(t)
		if end, ok := got.(*Ending); !ok || *end != (Ending{"completed", "There."}) {
			t.Errorf("got %+v", got)
		}
		if len(p.sent) != 3 || p.sent[1] != p.sent[2] {
			t.Errorf("sent %v", p.sent)
		}
	}
}

// TestTheJournal lets a process die after it has sent a message. The next one continues with
// its task, or reports that it can't know whether the message arrived.
func TestTheJournal(t *testing.T) {
	store := must.Get(filestore.New(t.TempDir()))(t)
	p := newPeer(t, map[string][]string{"SendMessage": {ok("task", Working, "")}, "GetTask": {ok("", Working, "")}})
	r := p.remote(RemoteConfig{Journal: store})
	_, err := r.Invoke(t.Context(), invoking())
	suspended(t, err) // the thread that would have kept it is lost
	p.script["GetTask"] = []string{ok("", Completed, asks("m", "Done."))}
	got := must.Get(p.remote(RemoteConfig{Journal: store}).Invoke(t.Context(), invoking()))(t)
	if end, ok := got.(*Ending); !ok || end.Text != "Done." || p.count("SendMessage") != 1 {
		t.Errorf("got %+v after %v", got, p.calls)
	}

	j := must.Get(r.open(t.Context(), "Go."))(t) // the process dies before it has received a task
	if j.found {
		t.Fatal("the journal has a task that has ended")
	}
	later := RemoteConfig{Journal: store, Wait: time.Minute}
	_, err = p.remote(later).Invoke(t.Context(), invoking())
	if !errors.Is(err, errSending) || p.count("SendMessage") != 1 {
		t.Errorf("error %v after %v", err, p.calls)
	}
	later.Now = func() time.Time { return time.Now().Add(time.Hour) }
	_, err = p.remote(later).Invoke(t.Context(), invoking())
	if !errors.Is(err, errLost) || p.count("SendMessage") != 1 {
		t.Errorf("error %v after %v", err, p.calls)
	}
	first := must.Get(r.open(t.Context(), "Go."))(t)
	later.Repeats = true
	must.Get(p.remote(later).Invoke(t.Context(), invoking()))(t)
	if p.count("SendMessage") != 2 || p.sent[1] != first.MessageID {
		t.Errorf("a peer that takes repeated ids got %v", p.sent)
	}
}

// TestManyProcessesBeginOneMessage lets several processes use the same thread at the same time.
// The message must be sent once.
func TestManyProcessesBeginOneMessage(t *testing.T) {
	store := must.Get(filestore.New(t.TempDir()))(t)
	p := newPeer(t, map[string][]string{"SendMessage": {ok("task", Working, "")}, "GetTask": {ok("", Working, "")}})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := p.remote(RemoteConfig{Journal: store}).Invoke(t.Context(), invoking())
			var s *agent.Suspend
			if !errors.As(err, &s) && !errors.Is(err, agent.ErrConflict) && !errors.Is(err, errSending) {
				t.Error(err)
			}
		})
	}

	all.Wait()
	if p.count("SendMessage") != 1 {
		t.Errorf("sent %v", p.sent)
	}
}

func TestAddressesThatAreNotReached(t *testing.T) {
	for _, url := range []string{
		"",
		"http://example.com/",
		"http://127.0.0.1:1/",
		"https://u:p@example.com/",
		"https://10.0.0.1/",
	} {
		if _, err := NewClient(ClientConfig{URL: url}); err == nil {
			t.Errorf("%q is taken", url)
		}
	}

	c := must.Get(NewClient(ClientConfig{URL: "http://127.0.0.1:1/", Loopback: true}))(t)
	_, err := c.Send(t.Context(), &Message{MessageID: "m", Role: RoleUser, Parts: []Part{textPart("x")}})
	var unsure *UnsureError
	if err == nil || errors.As(err, &unsure) {
		t.Errorf("error %v: nothing was sent", err)
	}
}

// TestWhatIsSentAgain counts the requests that reach a peer. A message that the peer did not
// accept is sent again. A message that it may have accepted is not.
func TestWhatIsSentAgain(t *testing.T) {
	elsewhere := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	for status, want := range map[int]int{
		http.StatusTooManyRequests:     tries,
		http.StatusForbidden:           1,
		http.StatusBadGateway:          1,
		http.StatusServiceUnavailable:  1,
		http.StatusTemporaryRedirect:   1,
		http.StatusInternalServerError: 1,
	} {
		got := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			got++
			w.Header().Set("Location", other.URL)
			w.WriteHeader(status)
		}))
		c := must.Get(NewClient(ClientConfig{URL: server.URL, Loopback: true}))(t)
		_, err := c.Send(t.Context(), &Message{MessageID: "m", Role: RoleUser, Parts: []Part{textPart("x")}})
		server.Close()
		var unsure *UnsureError
		if err == nil || got != want || errors.As(err, &unsure) == (status >= 400 && status < 500) {
			t.Errorf("status %d: sent %d times, want %d: %v", status, got, want, err)
		}
	}

	if elsewhere > 0 {
		t.Error("a redirect was followed")
	}
}

// A remote task asks for data with a small schema whose evaluation would take forever. It must
// be refused instead of evaluated.
func TestCostlySchemaOfAPeer(t *testing.T) {
	var schema strings.Builder
	schema.WriteString(`{"$ref":"#/$defs/a0","$defs":{`)
	for i := range 40 {
		fmt.Fprintf(&schema, `"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	schema.WriteString(`"a40":{}}}`)
	data := `{"$type":"structuredInputRequest","requestId":"r","text":"?","schema":` + schema.String() + `}`
	task, err := DecodeTask(
		[]byte(
			`{"id":"t","status":{"state":"TASK_STATE_INPUT_REQUIRED","message":{"messageId":"m","role":"ROLE_AGENT",` +
				`"parts":[{"data":` + data +
				`,"mediaType":"` + RequestMediaType + `"}]}}}`,
		),
	)
	must.Do(t, err)
	_, err = task.Questions() // without a limit this would not return
	if bad, ok := errors.AsType[*Error](err); !ok || bad.Code != BadRequest {
		t.Error(err)
	}
}
