package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/assent-dev/assent/agent/agui"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
)

// runUI posts a RunAgentInput and returns its events.
func (w *world) runUI(token, thread, messages, resume string) []agui.Event {
	w.t.Helper()
	body := fmt.Sprintf(`{"threadId":%q,"runId":"r","messages":[%s]`, thread, messages)
	if resume != "" {
		body += `,"resume":` + resume
	}
	status, got := post(w.t, w.agui, token, body+"}")
	if status != http.StatusOK {
		w.t.Fatalf("status %d: %s", status, got)
	}
	var out []agui.Event
	for line := range strings.Lines(got) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
			var e agui.Event
			must.Do(w.t, json.Unmarshal([]byte(data), &e))
			out = append(out, e)
		}
	}

	return out
}

func user(id, text string) string {
	return fmt.Sprintf(`{"id":%q,"role":"user","content":%q}`, id, text)
}

// end returns the outcome or the error of a run, and its interrupts.
func end(t *testing.T, events []agui.Event) (string, []agui.Interrupt) {
	t.Helper()
	last := events[len(events)-1]
	if last.Type == agui.RunError {
		return last.Code, nil
	}
	if last.Outcome == nil {
		t.Fatalf("the run ends with %+v", last)
	}
	return last.Outcome.Type, last.Outcome.Interrupts
}

func told(events []agui.Event) string {
	out := ""
	for _, e := range events {
		out += e.Delta
	}
	return out
}

func resolved(id, payload string) string {
	return fmt.Sprintf(`[{"interruptId":%q,"status":"resolved","payload":%s}]`, id, payload)
}

// TestAGUI_AsksAndResumes answers in another process of the host.
func TestAGUI_AsksAndResumes(t *testing.T) {
	w := newWorld(t, true)
	how, interrupts := end(t, w.runUI(hers, "t1", user("m1", "Sell."), ""))
	if how != "interrupt" || len(interrupts) != 1 {
		t.Fatalf("the run ends with %s, %v", how, interrupts)
	}
	id := interrupts[0].ID
	w.serve(config(w.agent, w.store))
	for resume, code := range map[string]agui.Code{
		"":                                 agui.CodeRequired,
		resolved("x", `{"approved":true}`): agui.CodeNotFound,
		resolved(id, `{"approved":"yes"}`): agui.CodeInvalid,
		resolved(id, `{"approved":true,"iban":"x"}`): agui.CodeInvalidResponse,
	} {
		if how, _ := end(t, w.runUI(hers, "t1", user("m1", "Sell."), resume)); how != string(code) {
			t.Errorf("%s: %s, want %s", resume, how, code)
		}
	}

	if how, _ := end(t, w.runUI(other, "t1", "", resolved(id, `{"approved":true}`))); how != string(agui.CodeNotFound) {
		t.Errorf("another caller's answer: %s", how)
	}
	if w.tool.runs() != 0 {
		t.Fatal("the tool ran without an approval")
	}
	events := w.runUI(hers, "t1", user("m1", "Sell."), resolved(id, `{"approved":true}`))
	if how, _ := end(t, events); how != "success" || w.tool.runs() != 1 || !strings.Contains(told(events), "sold") {
		t.Errorf("%s after %d runs: %s", how, w.tool.runs(), told(events))
	}
	w.runUI(hers, "t1", user("m1", "Sell."), "") // nothing new
	if w.tool.runs() != 1 {
		t.Error("what was answered has run again")
	}
	if how, _ := end(t, w.runUI(hers, "t1", user("m1", "Sell.")+","+user("m2", "Again."), "")); how != "interrupt" {
		t.Errorf("a new message: %s", how)
	}
}

func TestAGUI_OneRunAtATime(t *testing.T) {
	w := newWorld(t, false)
	w.tool.wait = make(chan struct{})
	var first sync.WaitGroup
	first.Go(func() {
		if how, _ := end(t, w.runUI(hers, "t1", user("m1", "Sell."), "")); how != "success" {
			t.Errorf("the first run: %s", how)
		}
	})
	testwait.Until(t, "the tool runs", func() bool { return w.tool.runs() == 1 })
	if how, _ := end(t, w.runUI(hers, "t1", user("m1", "Sell."), "")); how != string(CodeBusy) {
		t.Errorf("the second run: %s", how)
	}
	close(w.tool.wait)
	first.Wait()
}

func TestAGUI_BadInput(t *testing.T) {
	w := newWorld(t, false)
	for body, want := range map[string]int{
		`{`:                           http.StatusBadRequest,
		`{}`:                          http.StatusBadRequest,
		`{"threadId":"t","runId":""}`: http.StatusBadRequest,
		`{"threadId":"t","threadId":"t","runId":"r"}`:                                                      http.StatusBadRequest,
		`{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":5}]}`:                   http.StatusBadRequest,
		`{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":[{"type":"binary"}]}]}`: http.StatusBadRequest,
		`{"threadId":"t","runId":"r","messages":[{"role":"user","content":"x"}]}`:                          http.StatusBadRequest,
		strings.Repeat(" ", 1<<20+1): http.StatusRequestEntityTooLarge,
	} {
		if code, text := post(t, w.agui, hers, body); code != want || text == "" {
			t.Errorf("%.80s: %d %s, want %d", body, code, text, want)
		}
	}

	if code, _ := post(t, w.agui, "x", "{}"); code != http.StatusUnauthorized {
		t.Errorf("status %d for a token of nobody", code)
	}
	if w.tool.runs() != 0 {
		t.Error("a bad input ran something")
	}
}
