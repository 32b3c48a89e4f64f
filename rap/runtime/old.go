package runtime

import (
	"encoding/json"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap/internal/names"
	"github.com/assent-dev/assent/store"
)

// oldCall is what a record of an earlier version holds beside our part,
// whose members had the same names.
type oldCall struct {
	Asker     approval.Asker `json:"asker"`
	Arguments []byte         `json:"arguments"`
	Approved  []byte         `json:"approved"`
	State     CallState      `json:"state"`
	Deadline  time.Time      `json:"deadline"`
	Ended     time.Time      `json:"ended"`
	Consents  int            `json:"consents"`
	Consent   *oldConsent    `json:"consent"`
	Send      oldAttempt     `json:"send"`
	Choice    *oldChoice     `json:"choice"`
	Withdraw  []string       `json:"withdraw"`
}

type oldConsent struct {
	Own     bool   `json:"own"`
	Key     string `json:"key"`
	Ref     string `json:"ref"`
	Granted bool   `json:"granted"`
	Binding string `json:"binding"`
	By      string `json:"by"`
}

type oldChoice struct {
	State    choiceState `json:"state"`
	Key      string      `json:"key"`
	Ref      string      `json:"ref"`
	Deadline time.Time   `json:"deadline"`
	Post     oldAttempt  `json:"post"`
}

type oldAttempt struct {
	Attempts int       `json:"attempts"`
	Lease    time.Time `json:"lease"`
	Next     time.Time `json:"next"`
}

func (e oldAttempt) attempt() durable.Attempt {
	return durable.Attempt{Tries: e.Attempts, Lease: e.Lease, Next: e.Next}
}

// readOld reads the record of a call that a version before the engine
// kept. The call goes on from where it was.
func readOld(_ store.Record, text []byte) (*call, error) {
	var old oldCall
	c := &call{}
	if err := json.Unmarshal(text, &c.Part); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &old); err != nil {
		return nil, err
	}

	c.Seed = c.Part.Token
	c.Asker = old.Asker
	c.Arguments = old.Arguments
	c.Edited = old.Approved
	c.Deadline = old.Deadline
	c.Asked = old.Consents + c.Part.Choices
	c.Run = old.Send.attempt()
	c.Withdraw = old.Withdraw
	c.State = old.state()
	c.Ask = old.ask()
	if !owned(c) { // the version before that knew no names but the agent's
		c.Part.Wire = names.Sent{Group: c.Part.Thread, ID: c.Part.ID}
	}
	if c.State == durable.Closed {
		c.Ending = &durable.Ending{Why: durable.Returned}
		c.EndedAt = old.Ended
		c.Deadline = time.Time{}
	}
	old.resume(c)
	return c, nil
}

func (old *oldCall) state() durable.State {
	switch old.State {
	case CallAsking:
		return durable.Asking
	case CallPending:
		return durable.Away
	case CallDone:
		return durable.Closed
	}

	if old.Send.Lease.IsZero() {
		return durable.Ready
	}

	return durable.Running
}

// ask is what people were asked.
func (old *oldCall) ask() *durable.Ask {
	switch q := old.Choice; {
	case old.State == CallAsking && old.Consent != nil:
		return &durable.Ask{
			Question: old.Consent.Own,
			Key:      old.Consent.Key,
			Ref:      old.Consent.Ref,
		}
	case old.State != CallDone && q != nil && q.State == choiceOpen:
		return &durable.Ask{Question: true, Key: q.Key, Ref: q.Ref, Until: q.Deadline}
	}

	return nil
}

// resume takes over what people said before, and an answer that is on
// its way.
func (old *oldCall) resume(c *call) {
	if said := old.Consent; said != nil && said.Granted && old.State != CallAsking {
		c.Part.Agreed = said.Own
		if !said.Own {
			c.Approval = &durable.Approval{
				Ref:     said.Ref,
				Key:     said.Key,
				By:      said.By,
				Binding: said.Binding,
				Taken:   true,
			}
		}
	}

	if q := old.Choice; q != nil && q.State == choiceAnswered && old.State != CallDone {
		post := q.Post.attempt()
		c.Message = &post
	}
}
