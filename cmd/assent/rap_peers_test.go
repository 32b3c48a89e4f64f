package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
)

// behindGateway returns a gateway by itself in front of the machines, for a
// program of this machine that listens wherever the system lets it.
func behindGateway(t *testing.T, m *machines, callbacks string, more ...string) (url string, log *testwait.Buffer) {
	t.Helper()
	return gatewayOf(t, map[string]string{"desk.agf.yaml": opsAgent}, `
name: front
description: Machines.
agent: desk
agents: desk.agf.yaml
callers: {name: here, callbacks: "`+callbacks+`"}
upstream: {name: machines, url: "`+m.URL+`"}
`+strings.Join(more, "\n"))
}

// invocation returns an invocation of look.
func (p *runtimePeer) invocation(id, more string) string {
	return fmt.Sprintf(
		`{"operation":"look","arguments":{},"id":%q,"callback_url":"%s/cb/%s","group_id":"g"%s}`,
		id,
		p.URL,
		id,
		more,
	)
}

// TestCallbacksOfThisMachineMayComeAtAnyPort: the reference runtime
// listens at another port each time it starts, and has no token.
func TestCallbacksOfThisMachineMayComeAtAnyPort(t *testing.T) {
	m := newMachines(t)
	for _, callbacks := range []string{"http://127.0.0.1:*", "http://127.0.0.1"} {
		gateway, _ := behindGateway(t, m, callbacks)
		for _, id := range []string{"c1", "c2"} {
			runtime := newRuntimePeer(t)
			runtime.invoke(t, gateway, "", runtime.invocation(id, ""))
			if got := runtime.next(t); !strings.Contains(got, "did look") {
				t.Errorf("%s: got %s", callbacks, got)
			}
			for _, elsewhere := range []string{
				"http://127.0.0.2:80/cb",
				"http://localhost:7717/cb",
				"https://127.0.0.1:7717/cb",
				"http://127.0.0.1.example:7717/cb",
				"http://[::1]:7717/cb",
			} {
				body := strings.Replace(runtime.invocation("c3", ""), runtime.URL+"/cb/c3", elsewhere, 1)
				if status := runtime.post(t, gateway+"/invoke", "", body); status != http.StatusForbidden {
					t.Errorf("%s: %s is answered with %d", callbacks, elsewhere, status)
				}
			}
		}
	}
}

// TestAnyPortIsForProgramsOfThisMachine: the port must be given unless both the caller and the
// address are on this machine.
func TestAnyPortIsForProgramsOfThisMachine(t *testing.T) {
	for name, c := range map[string]struct{ caller, want string }{
		"a caller with a token": {
			`{name: here, token_file: t, callbacks: "http://127.0.0.1:*"}`,
			"any port of this machine, for a caller with a token",
		},
		"another machine": {
			`{name: here, callbacks: "https://tools.example:*"}`,
			"any port is for addresses of this machine alone",
		},
		"a private address": {
			`{name: here, callbacks: "http://10.0.0.1:*"}`,
			"any port is for addresses of this machine alone",
		},
		"a port and any": {
			`{name: here, callbacks: "http://127.0.0.1:80:*"}`,
			"any port is for addresses of this machine alone",
		},
	} {
		file := filepath.Join(t.TempDir(), "gateway.yaml")
		text := "name: q\nagent: a\nagents: a.yaml\noperations: {name: o, description: d, schema: s, url: " +
			"\"http://127.0.0.1/x\"}\ncallers: " + c.caller + "\n"
		testfiles.Write(t, file, text)
		out, errOut, code := ran("", "rap", "gateway", "--config", file)
		if code != term.ExitFailure || !strings.Contains(out+errOut, c.want) {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, errOut)
		}
	}
}

// TestSubThreadsOfCallersWithoutATokenAreCalledAsRoots: they are not
// believed, and not refused either.
func TestSubThreadsOfCallersWithoutATokenAreCalledAsRoots(t *testing.T) {
	m, runtime := newMachines(t), newRuntimePeer(t)
	gateway, _ := behindGateway(t, m, runtime.URL)
	runtime.invoke(t, gateway, "", runtime.invocation("c1", `,"thread_ancestors":["root","parent"]`))
	if got := runtime.next(t); !strings.Contains(got, "did look") {
		t.Errorf("got %s", got)
	}
	if sent := m.calls("look"); len(sent) != 1 || len(sent[0].Ancestors) != 0 {
		t.Errorf("sent on as %+v", sent)
	}
}

// streams has the machines answer look with a subscription.
func (m *machines) streams() {
	m.says(func(c machineCall) string { return c.result("still running", `,"subscription":true`) })
}

// event posts an event of a call, as soon as the result before it was taken.
func (m *machines) event(t *testing.T, c machineCall, text string, final bool) {
	t.Helper()
	message := string(mustJSON(t, map[string]any{
		"type":         "subscription_event",
		"group_id":     c.GroupID,
		"tool_call_id": c.ID,
		"text":         text,
		"final":        final,
	}))
	testwait.Until(t, "the event is taken", func() bool {
		status := m.post(c.URL, message)
		if status != http.StatusOK && status != http.StatusConflict { // a conflict while the result is on its way
			t.Fatalf("%s: %d", message, status)
		}
		return status == http.StatusOK
	})
}

// view posts what a call's tool shows.
func (m *machines) view(t *testing.T, c machineCall, kind, text string) {
	t.Helper()
	content, err := jsonmsg.Marshal(map[string]string{"text": text})
	must.Do(t, err)
	message := string(mustJSON(t, map[string]any{
		"type":      "view_update",
		"group_id":  c.GroupID,
		"view_type": kind,
		"content":   json.RawMessage(content),
	}))
	if status := m.post(c.URL, message); status != http.StatusOK {
		t.Fatalf("%s: %d", message, status)
	}
}

// sent waits for the nth call of an operation, counted from 0.
func (m *machines) sent(t *testing.T, operation string, nth int) machineCall {
	t.Helper()
	return testwait.Value(t, fmt.Sprintf("call %d of %s", nth, operation), func() (machineCall, bool) {
		all := m.calls(operation)
		if len(all) <= nth {
			return machineCall{}, false
		}
		return all[nth], true
	})
}

// heard waits until a request for a path has arrived.
func (m *machines) heard(t *testing.T, path string) {
	t.Helper()
	testwait.Until(t, "something comes to "+path, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()

		return slices.ContainsFunc(m.got, func(c machineCall) bool { return c.path == path })
	})
}

// TestEventsOfASubscriptionGoThroughAGateway: a runtime in front of
// assent rap gateway gets what the tool behind says after its result.
func TestEventsOfASubscriptionGoThroughAGateway(t *testing.T) {
	m, runtime := newMachines(t), newRuntimePeer(t)
	m.streams()
	gateway, _ := behindGateway(t, m, runtime.URL)
	runtime.invoke(t, gateway, "", runtime.invocation("c1", ""))
	if got := runtime.next(t); !strings.Contains(got, `"subscription":true`) ||
		!strings.Contains(got, "still running") {
		t.Fatalf("the result is %s", got)
	}
	sent := m.sent(t, "look", 0)
	m.event(t, sent, "line 1", false)
	m.event(t, sent, "exit 0", true)
	for _, want := range []string{
		`{"type":"subscription_event","group_id":"g","tool_call_id":"c1","text":"line 1"}`,
		`{"type":"subscription_event","group_id":"g","tool_call_id":"c1","text":"exit 0","final":true}`,
	} {
		if got := runtime.next(t); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// rapCall runs assent rap call against the machines, at a gateway or not.
func rapCall(t *testing.T, out, errOut *testwait.Buffer, args ...string) (ended chan int) {
	t.Helper()
	ended = make(chan int, 1)
	go func() {
		ended <- program{Streams: term.Streams{
			In:  strings.NewReader(""),
			Out: out,
			Err: errOut,
		}}.Run(append([]string{"rap", "call"}, args...))
	}()
	return ended
}

// TestCallFollowsASubscription: events are printed as they arrive, up to the last one. An end with
// an error, Ctrl-C and --within exit with 1, and the tool server is notified.
func TestCallFollowsASubscription(t *testing.T) {
	m := newMachines(t)
	m.streams()
	var out, errOut testwait.Buffer
	ended := rapCall(t, &out, &errOut, "--url", m.URL, "look")
	sent := m.sent(t, "look", 0)
	m.event(t, sent, "line 1", false)
	testwait.Until(t, "the first event", func() bool { return out.String() == "still running\nline 1\n" })
	m.view(t, sent, "diff\x1b[2J", "on\u202e")
	testwait.Until(t, "the view, spelt out", func() bool {
		return strings.Contains(errOut.String(), `the tool shows diff\u{1b}[2J: {"text":"on\u{202e}"}`)
	})
	m.event(t, sent, "exit \x1b[2J0", true)
	if code := <-ended; code != term.ExitOK || out.String() != "still running\nline 1\nexit \\u{1b}[2J0\n" {
		t.Errorf("exit %d\n%q\n%s", code, out.String(), errOut.String())
	}

	var text testwait.Buffer
	ended = rapCall(t, &text, &errOut, "--url", m.URL, "look", "--json")
	sent = m.sent(t, "look", 1)
	m.event(t, sent, "line 1", false)
	m.event(t, sent, "Error: exit 1", true)
	code := <-ended
	var end struct {
		State  string
		Events []struct {
			Text  string
			Final bool
		}
		Ended string
	}
	if err := json.Unmarshal([]byte(text.String()), &end); err != nil || code != term.ExitNo || end.Ended != "final" ||
		len(end.Events) != 2 ||
		!end.Events[1].Final {
		t.Errorf("exit %d, %v\n%s", code, err, text.String())
	}

	for name, c := range map[string]struct {
		within string
		stop   bool
		want   string
	}{
		"--within": {"700ms", false, "longer than --within 700ms"},
		"Ctrl-C":   {"1m", true, "stopped listening"},
	} {
		m.mu.Lock()
		m.got = nil
		m.mu.Unlock()
		var out, errOut testwait.Buffer
		ended := rapCall(t, &out, &errOut, "--url", m.URL, "look", "--within", c.within)
		m.event(t, m.sent(t, "look", 0), "line 1", false)
		testwait.Until(t, "the first event", func() bool { return strings.HasSuffix(out.String(), "line 1\n") })
		if c.stop {
			must.Do(t, syscall.Kill(syscall.Getpid(), syscall.SIGINT))
		}
		if code := <-ended; code != term.ExitNo || !strings.Contains(errOut.String(), c.want) {
			t.Errorf("%s: exit %d\n%s%s", name, code, out.String(), errOut.String())
		}
		m.heard(t, "/cancel_tool_call")
	}
}

// TestApproversSeeTheDeadlineOfTheGateway: the request ends when the gateway gives up, and people
// see that time, whether the approvers are those of this service or of another one.
func TestApproversSeeTheDeadlineOfTheGateway(t *testing.T) {
	t.Parallel()
	runtime, h := newRuntimePeer(t), opsFiles(t)
	m := newMachines(t)
	startWith(t, h, func(c *config.Serve) {
		c.Tenants[0].Policies = []string{h.dir}
		c.Tenants[0].RAP = &config.RAP{Gateways: []config.RAPGateway{{
			Name:     "front",
			Agent:    "desk",
			Within:   9 * time.Minute,
			Upstream: []config.RAPServer{{Name: "machines", URL: m.URL}},
			Callers:  []config.RAPCaller{{Name: "here", Callbacks: []string{runtime.URL}}},
		}}}
	})
	writeFiles(t, h.dir, map[string]string{"rt2.token": h.token["rt2"]})
	elsewhere, _ := gatewayOf(t, map[string]string{"desk.agf.yaml": opsAgent, "ops.policy.yaml": opsPolicy}, `
name: front
description: Machines.
agent: desk
agents: desk.agf.yaml
policies: .
within: 9m
server: `+h.ready.API+`
server_token_file: `+filepath.Join(h.dir, "rt2.token")+`
callers: {name: here, callbacks: "`+runtime.URL+`"}
upstream: {name: machines, url: "`+m.URL+`"}
`)
	for name, gateway := range map[string]string{
		"this service's":    h.ready.API + "/rap/default/gateway/front",
		"another service's": elsewhere,
	} {
		runtime.invoke(t, gateway, "", strings.Replace(runtime.invocation("c1", ""), "look", "restart", 1))
		r := h.awaitRequest(t)
		if within := r.Deadline.Sub(r.Created); within <= 8*time.Minute || within > 9*time.Minute {
			t.Errorf("%s: open for %s", name, within)
		}
		if got := h.votes(t, "ben-cli", r, nil); got != approval.VoteApproved {
			t.Fatalf("%s: %s", name, got)
		}
		if got := runtime.next(t); !strings.Contains(got, "did restart") {
			t.Errorf("%s: %s", name, got)
		}
	}

	// Over the API a runtime sets the time itself. If the rules allow less time, theirs applies.
	for within, want := range map[time.Duration]time.Duration{
		90 * time.Second: 90 * time.Second,
		48 * time.Hour:   24 * time.Hour,
	} {
		call := fmt.Sprintf(`{"kind":"tool","tool":"restart","args":{"within":%q}}`, within)
		opened, err := h.client(t, "rt2").Open(t.Context(), "desk", []byte(call), client.OpenOptions{Within: within})
		if err != nil || opened.Request.Deadline.Sub(opened.Request.Created) != want {
			t.Errorf("%s: %+v, %v", within, opened, err)
		}
	}
}

// TestTheStartSaysThatACallAsksOnce, and TestL10 that a runtime
// answers for itself where its user is asked.
func TestTheStartSaysThatACallAsksOnce(t *testing.T) {
	m, runtime := newMachines(t), newRuntimePeer(t)
	const once, itself = "a call asks its user once", "a calling runtime answers the questions about its own calls"
	_, log := behindGateway(t, m, runtime.URL, "ask: user")
	if got := log.String(); !strings.Contains(got, once) || !strings.Contains(got, itself) {
		t.Errorf("the start says %s", got)
	}
}

// TestApproversAreAskedWhereThereAreSome: if there are approvers, the calling runtime is asked only
// if the configuration says so, and a warning is logged.
func TestApproversAreAskedWhereThereAreSome(t *testing.T) {
	for name, c := range map[string]struct {
		ask      string
		approver bool
	}{
		"by itself": {"", true},
		"approvers": {"approvers", true},
		"user":      {"user", false},
	} {
		runtime := newRuntimePeer(t)
		h := opsFiles(t)
		m := newMachines(t)
		startWith(t, h, func(cfg *config.Serve) {
			cfg.Tenants[0].RAP = &config.RAP{Gateways: []config.RAPGateway{{
				Name:     "front",
				Agent:    "asks",
				Ask:      c.ask,
				Upstream: []config.RAPServer{{Name: "machines", URL: m.URL}},
				Callers:  []config.RAPCaller{{Name: "here", Callbacks: []string{runtime.URL}}},
			}}}
			text := strings.NewReplacer("id: desk", "id: asks", "{alias: look}", "{alias: look, approval: true}").
				Replace(opsAgent)
			testfiles.Write(t, filepath.Join(h.dir, "asks.agf.yaml"), text)
		})
		runtime.invoke(t, h.ready.API+"/rap/default/gateway/front", "", runtime.invocation("c1", ""))
		if !c.approver {
			if got := runtime.next(t); !strings.Contains(got, "user_choice") {
				t.Errorf("%s: the runtime got %s", name, got)
			}
			continue
		}

		if got := h.votes(t, "zoe-cli", h.awaitRequest(t), nil); got != approval.VoteApproved {
			t.Errorf("%s: %s", name, got)
		}
		if got := runtime.next(t); !strings.Contains(got, "did look") {
			t.Errorf("%s: the runtime got %s", name, got)
		}
	}
}
