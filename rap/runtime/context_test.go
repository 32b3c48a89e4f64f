package runtime

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/internal/must"
)

// TestPeopleSeeWhatTheAgentSays: what the agent says about a call
// stands in its approval and in the questions about it, and never goes
// to the tool server.
func TestPeopleSeeWhatTheAgentSays(t *testing.T) {
	w := newRTWorld(t)
	says := []info.Item{{Label: "Why", Text: "the ticket wants it"}}
	in := Invocation{Thread: "t", ID: "a", Operation: "send", Arguments: json.RawMessage(`{"to":"bob"}`), Context: says}
	must.Get(w.mine.Invoke(t.Context(), in))(t)
	ref := w.asked(1)
	if got := w.desk.Of(ref).Verdict.Context; !slices.Equal(got, says) {
		t.Errorf("the approval says %v", got)
	}
	in.ID, in.Operation = "b", "wipe"
	must.Get(w.mine.Invoke(t.Context(), in))(t)
	ref = w.asked(2)
	if got := w.desk.Of(ref).Question.Context; !slices.Equal(got, says) {
		t.Errorf("the question says %v", got)
	}

	in.ID, in.Operation = "c", "read"
	in.Arguments = json.RawMessage(`{"path":"x"}`)
	must.Get(w.mine.Invoke(t.Context(), in))(t)
	if got := w.tool.waits("/run", 1)[0]; strings.Contains(got, "ticket") {
		t.Errorf("the tool server was told %s", got)
	}
}

func TestRefusesWhatAnAgentMayNotSay(t *testing.T) {
	w := newRTWorld(t)
	_, err := w.mine.Invoke(t.Context(), Invocation{
		Thread:    "t",
		ID:        "a",
		Operation: "read",
		Context:   []info.Item{{Label: "Ticket", Link: "http://tickets.example/7"}},
	})
	var wrong *info.Error
	if !errors.As(err, &wrong) || wrong.Path != "context.0.link" {
		t.Errorf("error %v", err)
	}
}
