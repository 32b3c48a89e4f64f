package gateway

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/store"
)

// oldCall is what an earlier version kept of a call beside what is
// still kept in the same way. Its calls go on: what ran is not run
// again.
type oldCall struct {
	call
	Phase    string         `json:"phase"`
	Asker    approval.Asker `json:"asker"`
	Args     []byte         `json:"args"`
	Until    time.Time      `json:"until"` // when the question that is open ends, or the subscription
	Held     string         `json:"held"`  // what our approvers were asked
	Stop     string         `json:"stop"`
	Withdraw bool           `json:"withdraw"`
}

// readOld reads a record of the form that an earlier version wrote.
func readOld(r store.Record, text []byte) (*record, error) {
	var old oldCall
	if err := json.Unmarshal(text, &old); err != nil {
		return nil, err
	}
	now := &record{
		Asker:     old.Asker,
		Arguments: old.Args,
		Stop:      old.Stop,
		Part:      old.call,
	}
	now.Part.Heard = old.Phase != "received"
	now.Part.Until = time.Time{}
	word := &durable.Approval{
		Ref:     old.Held,
		Key:     "rap-" + durable.Hash(r.Key),
		Binding: old.Ground.Binding,
	}
	if old.Held != "" {
		now.Asked = 1
		now.Approval = word
	}
	switch old.Phase {
	case "received", "decided":
		now.State = durable.Ready
	case "held":
		now.State = durable.Asking
		now.Approval = nil
		now.Ask = &durable.Ask{
			Key:     word.Key,
			Ref:     word.Ref,
			Binding: word.Binding,
			Until:   old.Until,
		}
	case "awaiting":
		now.State = durable.Waiting
		now.Deadline = old.Until
		now.Part.Question.Until = old.Until
		if !now.Part.Question.Posted {
			now.Message = &durable.Attempt{}
		}
	case "executing":
		now.State = durable.Running
		now.Run = durable.Attempt{Name: "earlier", Tries: 1, Lease: r.Due}
		word.Taken = true
	case "done", "following":
		now.State = durable.Ended
		now.Message = &durable.Attempt{}
		now.Part.Posted = old.Phase == "following"
		now.Part.Until = old.Until
	case "delivered":
		now.State = durable.Closed
	default:
		return nil, fmt.Errorf("the call has no phase that is known: %q", old.Phase)
	}

	if old.Withdraw {
		now.Withdraw = []string{old.Held}
	}
	return now, nil
}
