package rap_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap/gateway"
	"github.com/assent-dev/assent/rap/internal/names"
)

// oldCall is a call as the version before wrote it, of which the phase
// and what belongs to it are filled in.
const oldCall = `{"phase":%q,"asker":{"token":"harness/alpha"},"caller":"alpha","thread":"thread-1","id":%q,
	"callback":%q,"operation":"pay","args":%q,"digest":"d","ground":{"binding":%q}%s}`

// TestGatewayCallsOfTheVersionBeforeGoOn: what ran is never run again,
// and each of them ends with what is true.
func TestGatewayCallsOfTheVersionBeforeGoOn(t *testing.T) {
	const held, allowed, args = `,"held":"ref-1"`, `,"by":"user","verdict":"allow"`, `{"amount":200}`
	for name, c := range map[string]struct {
		phase, more string
		held        hold.State // of the one request; "": the runtime's user is asked
		want        string     // in the result; "" for none
		runs        int
	}{
		"received, people approve": {
			phase: "received",
			held:  hold.Approved,
			want:  "done",
			runs:  1,
		},
		"held, people approve": {
			phase: "held",
			more:  held,
			held:  hold.Approved,
			want:  "done",
			runs:  1,
		},
		"held, people deny": {
			phase: "held",
			more:  held,
			held:  hold.Denied,
			want:  "denied",
		},
		"held, too late": {
			phase: "held",
			more:  held + `,"until":"2020-01-01T00:00:00Z"`,
			held:  hold.Approved,
			want:  "in time",
		},
		"held, and nobody knows who made it": {
			phase: "held",
			more:  held + `,"asker":{"token":""}`,
			held:  hold.Approved,
			want:  "earlier version, which did not keep who made it; nothing was run",
		},
		"asked, and nobody answered": {
			phase: "awaiting",
			more:  `,"until":"2020-01-01T00:00:00Z","question":{"body":"e30=","choices":2,"session":-1,"posted":true}`,
			want:  "in time",
		},
		"decided by the user": {
			phase: "decided",
			more:  allowed,
			want:  "done",
			runs:  1,
		},
		"decided, the rules changed": {
			phase: "decided",
			more:  allowed + `,"ground":{"binding":"sha256:other"}`,
			want:  "changed",
		},
		"executing": {
			phase: "executing",
			more:  allowed + `,"owner":"gone","run":"r"`,
			want:  "outcome unknown",
		},
		"done": {
			phase: "done",
			more:  `,"verdict":"deny","result":%q`,
			want:  "kept",
		},
		"delivered": {
			phase: "delivered",
			more:  `,"verdict":"deny","result":%q`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			desk := newScriptedDesk(t)
			h, r := confGateway(t, confAsk(gateway.AskApprovers, desk))
			like := r.call("pay", args).invoke()
			binding := desk.request(1).Verdict.Binding
			r.cancel(like.in.GroupID, like.in.ID)
			desk.dropped(1)
			h.through(r)
			h.stop()
			if desk.set(func() { desk.shown[0].Held.State, desk.shown[0].Key = c.held, "" }); c.held == "" {
				h.cfg.Ask, h.cfg.People = gateway.AskUser, nil
			}

			old := r.call("pay", args)
			if strings.Contains(c.more, "%q") {
				result := fmt.Sprintf(`{"type":"tool_result","group_id":"thread-1","id":%q,"text":"kept"}`, old.in.ID)
				c.more = fmt.Sprintf(c.more, base64.StdEncoding.EncodeToString([]byte(result)))
			}
			text := fmt.Sprintf(oldCall, c.phase, old.in.ID, old.in.CallbackURL,
				base64.StdEncoding.EncodeToString([]byte(args)), binding, c.more)
			v, err := durable.NewVault[json.RawMessage](
				names.Sealing(h.cfg.Records, h.cfg.Namespace, h.cfg.Key),
				"calls",
			)
			confMust(t, err)
			d := &durable.Doc[json.RawMessage]{
				Key:  durable.Hash("alpha") + "/" + durable.Hash("thread-1") + "/" + durable.Hash(old.in.ID),
				Due:  h.clock.Now().Add(-time.Second),
				Body: json.RawMessage(text),
			}
			if c.phase == "delivered" {
				d.Due, d.Expires = time.Time{}, h.clock.Now().Add(time.Hour)
			}
			confMust(t, v.Put(t.Context(), d))
			h.restart()
			if c.phase == "received" {
				desk.decide(2, c.held, "")
			}
			if c.want != "" {
				if got := old.result(); !strings.Contains(got, c.want) {
					t.Errorf("result %q, want %q in it", got, c.want)
				}
			}
			h.ran("pay", c.runs)
		})
	}
}
