package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval/hold"
)

// A model that gets no reason makes the same call again immediately (agent-framework 8503). The
// user must not be asked about it a second time.
func TestRejectedCallIsNotAskedAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		reason, again string
		asked         bool
	}{
		"without a reason": {"", `{"to":"bob","n":5}`, false},
		"with a reason":    {"no", `{"to":"bob","n":5}`, false},
		"spelled anew":     {"", `{ "n": 5.0, "to": "bob" }`, false},
		"another call":     {"", `{"to":"bob","n":4}`, true},
	} {
		bothWaysOf(t, name, func(t runner) {
			var c counted
			j := &journal{}
			k := talk(t,
				said(call("1", "pay", `{"to":"bob","n":5}`)), said(call("2", "pay", tt.again)),
				said(text("ok")), said(text("ok")),
			)
			a := c.asked(k, LoopConfig{Audit: j.take})
			th, q := t.asks(a, "pay")
			th = reload(t, th)
			t.run(a, th, answers(q.CreateRejection(tt.reason)))
			if asked := len(th.Pending()) > 0; asked != tt.asked {
				t.Fatalf("asked again: %v, want %v", asked, tt.asked)
			}
			if tt.asked {
				return
			}
			told := strings.Contains(k.last(), "rejected before, and it is not asked about again")
			if !told || !strings.Contains(j.tell(), "denied 2\n") || len(c.runs) > 0 {
				t.Errorf("the model sees\n%s\nthe journal\n%sran %v", k.last(), j.tell(), c.runs)
			}
		})
	}
}

// The debug records of answers have the same text as in .NET, one for each answer that was
// applied.
func TestAnswersAreToldToTheLog(t *testing.T) {
	bothWays(t, func(t runner) {
		var c counted
		var log bytes.Buffer
		k := talk(t, said(call("1", "pay", `{"n":1}`), call("2", "pay", `{"n":2}`)), said(text("ok")))
		a := c.asked(k,
			LoopConfig{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		th := NewThread("t")
		resp := t.say(a, th, "pay")
		other := approvalOf(t, resp, 0).CreateApproval("")
		other.RequestID = "ficc_other"
		t.run(a, th, answers(approvalOf(t, resp, 0).CreateApproval(""),
			approvalOf(t, resp, 1).CreateRejection("no"), other))

		var got []string
		for _, line := range strings.Split(log.String(), "\n") {
			if _, rest, ok := strings.Cut(line, `level=DEBUG msg="Processing`); ok {
				got = append(got, strings.TrimSuffix(rest, `"`))
			}
		}
		expect(t, "the log", strings.Join(got, ";"),
			" approval response for 'pay'. Approved: True; approval response for 'pay'. Approved: False")
	})
}

// People at a desk are not asked again about a call that they rejected.
func TestRejectedAtTheDeskIsNotAskedAgain(t *testing.T) {
	bothWays(t, func(t runner) {
		h, j := pendingStub(), &journal{}
		k := talk(t, said(call("1", "pay", "")), said(call("2", "pay", "")), said(text("ok")))
		a := chat(k, LoopConfig{
			Holder:  h,
			Decider: asks(),
			Audit:   j.take,
		}, nil, NewFunction("pay", "", nil, func(context.Context, json.RawMessage) (any, error) {
			t.Error("ran")
			return nil, nil
		}))
		th, _ := t.asks(a, "x")
		h.later = hold.Held{Ref: "h1", State: hold.Denied, By: "ann"}
		t.run(a, reload(t, th))
		opened := 0
		for _, line := range h.log {
			if strings.HasPrefix(line, "open ") {
				opened++
			}
		}

		if opened != 1 || !strings.Contains(j.tell(), "denied 2\n") {
			t.Errorf("opened %d requests, the journal\n%s", opened, j.tell())
		}
	})
}
