package runtime

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/durable"
)

// older stores a call as a version before the engine kept it, and
// returns its key.
func (w *rtWorld) older(key, id string, members map[string]any) {
	w.t.Helper()
	body := map[string]any{
		"wire":      map[string]any{"group": "t", "id": id},
		"thread":    "t",
		"id":        id,
		"operation": "read",
		"user":      "ann",
		"server":    "files",
		"endpoint":  w.tool.URL + "/run",
		"arguments": []byte(`{}`),
		"token":     "old-" + id,
		"state":     "sending",
		"deadline":  w.now().Add(time.Hour),
		"send":      map[string]any{"next": w.now()},
	}
	maps.Copy(body, members)
	calls, err := durable.NewVault[map[string]any](w.sealing(), "calls")
	if err != nil {
		w.t.Fatal(err)
	}

	d := &durable.Doc[map[string]any]{Key: key, Alias: durable.Hash("old-" + id), Body: body}
	if body["state"] != "done" {
		d.Due = w.now()
	}
	if err := calls.Put(context.Background(), d); err != nil {
		w.t.Fatal(err)
	}
}

// TestOldRecords: calls of a version before the engine go on from where
// they were.
func TestOldRecords(t *testing.T) {
	w := newRTWorld(t)
	approval, err := w.desk.Open(t.Context(), "an old approval", hold.Verdict{})
	if err != nil {
		t.Fatal(err)
	}
	question, err := w.desk.Ask(t.Context(), "an old question", hold.Question{Choices: []string{"Yes", "No"}})
	if err != nil {
		t.Fatal(err)
	}
	w.stop()
	asker := map[string]any{"token": rtAsker().Token}
	old := func(id string, members map[string]any) {
		members["asker"] = asker
		w.older(w.key(id), id, members)
	}
	choice := func(state, ref string) map[string]any {
		return map[string]any{
			"number":   1,
			"labels":   []string{"Yes", "No"},
			"url":      w.tool.URL + "/answers/" + state,
			"state":    state,
			"key":      "k",
			"ref":      ref,
			"deadline": w.now().Add(time.Hour),
		}
	}
	sent := map[string]any{"attempts": 1}
	old("sending", map[string]any{})
	old("asking", map[string]any{
		"state":     "asking",
		"operation": "send",
		"consents":  1,
		"consent":   map[string]any{"key": "k", "ref": approval.Ref},
	})
	old("asked", map[string]any{
		"state":   "pending",
		"send":    sent,
		"choices": 1,
		"choice":  choice("open", question),
	})
	old("answered", map[string]any{
		"state":   "pending",
		"send":    sent,
		"choices": 1,
		"choice":  choice("answered", "gone"),
	})
	old("lost", map[string]any{"send": map[string]any{"attempts": 1, "lease": w.now()}})
	old("done", map[string]any{
		"state": "done",
		"ended": w.now(),
		"told":  map[string]any{"outcome": map[string]any{"text": "it ran"}},
	})
	w.start()

	w.is("sending", CallPending)
	w.desk.holds(hold.Held{Ref: approval.Ref, State: hold.Approved, By: "ann"})
	w.is("asking", CallPending)
	w.desk.says(question, hold.Answer{State: hold.Chosen, Selected: 1, By: "ann"})
	if got := w.tool.waits("/answers/open", 1)[0]; got != `{"id":"asked","selected":1}` {
		t.Errorf("answered %s", got)
	}
	if got := w.tool.waits("/answers/answered", 1)[0]; got != `{"id":"answered","selected":0}` {
		t.Errorf("answered %s", got)
	}
	w.is("lost", CallPending)
	if c := w.is("done", CallDone); c.Outcome == nil || c.Outcome.Text != "it ran" {
		t.Errorf("%+v", c)
	}
	w.settles()
	if n := len(w.tool.bodies("/run")); n != 2 {
		t.Errorf("%d were sent, want the two that had not left", n)
	}
}
