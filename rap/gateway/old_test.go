package gateway

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap/internal/names"
)

// oldRecord is a call as the version before wrote it, of which the
// phase and what belongs to it are filled in.
const oldRecord = `{"phase":%q,"asker":{"token":"gw/runtime"},"caller":"runtime","thread":"thread","id":"c1","user":"ann",
	"callback":%q,"operation":"write","args":"e30=","digest":"d","ground":{"binding":%q}%s}`

// TestCallsOfTheVersionBeforeGoOn: what ran is never run again, and
// each of them ends with what is true.
func TestCallsOfTheVersionBeforeGoOn(t *testing.T) {
	result := `,"verdict":"deny","result":"` + base64.StdEncoding.EncodeToString(
		[]byte(`{"type":"tool_result","group_id":"thread","id":"c1","text":"kept"}`),
	) + `"`
	const held = `,"held":"apr_old"`
	for name, c := range map[string]struct {
		phase, more string
		ask         Whom
		held        hold.State
		want        string // in the result; "" for none
		runs        int
	}{
		"received, people approve": {
			phase: "received",
			ask:   AskApprovers,
			held:  hold.Approved,
			want:  "did write",
			runs:  1,
		},
		"held, people approve": {
			phase: "held",
			more:  held,
			ask:   AskApprovers,
			held:  hold.Approved,
			want:  "did write",
			runs:  1,
		},
		"held, people deny": {
			phase: "held",
			more:  held,
			ask:   AskApprovers,
			held:  hold.Denied,
			want:  "denied",
		},
		"held, too late": {
			phase: "held",
			more:  held + `,"until":"2020-01-01T00:00:00Z"`,
			ask:   AskApprovers,
			held:  hold.Approved,
			want:  "in time",
		},
		"asked, and nobody answered": {
			phase: "awaiting",
			more:  `,"until":"2020-01-01T00:00:00Z","question":{"body":"e30=","choices":2,"session":-1,"posted":true}`,
			ask:   AskUser,
			want:  "in time",
		},
		"decided by the user": {
			phase: "decided",
			more:  `,"by":"user","verdict":"allow"`,
			ask:   AskUser,
			want:  "did write",
			runs:  1,
		},
		"decided, the rules changed": {
			phase: "decided",
			more:  `,"by":"user","verdict":"allow","ground":{"binding":"sha256:other"}`,
			ask:   AskUser,
			want:  "changed",
		},
		"executing": {
			phase: "executing",
			more:  `,"by":"user","verdict":"allow","owner":"gone","run":"r"`,
			ask:   AskUser,
			want:  "outcome unknown",
		},
		"done": {
			phase: "done",
			more:  result,
			ask:   AskUser,
			want:  "kept",
		},
		"delivered": {
			phase: "delivered",
			more:  result,
			ask:   AskUser,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, b := newDeskHarness(t, c.ask)
			h.stop()
			b.set(func() {
				b.at = c.held // of new requests, and of the one that there is
				b.asked["apr_old"] = &hold.Held{Ref: "apr_old", State: c.held}
			})
			text := fmt.Sprintf(oldRecord, c.phase, h.runtime.url(), h.binding(t), c.more)
			v, err := durable.NewVault[json.RawMessage](
				names.Sealing(h.cfg.Records, h.cfg.Namespace, h.cfg.Key),
				"calls",
			)
			if err != nil {
				t.Fatal(err)
			}
			d := &durable.Doc[json.RawMessage]{
				Key:  callKey("runtime", "thread", "c1"),
				Body: json.RawMessage(text),
			}
			d.Due = h.now().Add(-time.Second)
			if c.phase == "delivered" {
				d.Due = time.Time{}
				d.Expires = h.now().Add(time.Hour)
			}
			if err := v.Put(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			h.start()
			if c.want != "" {
				if got := h.runtime.result("c1"); !strings.Contains(got, c.want) {
					t.Errorf("result %q, want %q in it", got, c.want)
				}
			}
			if h.runs("c1") != c.runs {
				t.Errorf("%d runs", h.runs("c1"))
			}
		})
	}
}

// binding is that of the call by the rules of now.
func (h *harness) binding(t *testing.T) string {
	t.Helper()
	j, why := h.g.judge(t.Context(), &record{
		Asker:     h.g.callers[0].asker,
		Arguments: []byte("{}"),
		Part: call{
			Caller:    "runtime",
			Thread:    "thread",
			ID:        "c1",
			User:      "ann",
			Operation: "write",
		},
	})
	if j == nil {
		t.Fatal(why)
	}
	return j.binding
}
