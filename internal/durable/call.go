package durable

import (
	"crypto/rand"
	"slices"
	"strconv"
	"time"

	"github.com/assent-dev/assent/approval"
)

// State is the progress of a call. It only moves forward, except after a run that provably did
// not begin.
type State string

// The states of a call.
const (
	Ready   State = "ready"   // to be decided on, and run if no approval is missing
	Asking  State = "asking"  // waiting for people to approve it or to answer a question
	Waiting State = "waiting" // the transport waits for an external event before it may run
	Running State = "running" // the run has begun; if its process dies, the outcome is unknown
	Away    State = "away"    // handed to a peer, which reports its ending later
	Ended   State = "ended"   // has its ending, which still has to be reported
	Closed  State = "closed"  // nothing is left to do; kept to recognize repetitions
)

// currentFormat is the format of the records that this code writes. Records with a higher
// format are left to newer processes.
const currentFormat = 2

// Call is the record of a call: what the engine needs after a crash, and the transport's part.
// Every effect is written to the record before it happens.
type Call[P any] struct {
	Key     string    `json:"-"` // of the record
	Alias   string    `json:"-"` // a second key, such as the hash of a secret URL; empty if there is none
	Expires time.Time `json:"-"` // when the record may be deleted; zero until the call is closed

	Format    int            `json:"format"`
	Seed      string         `json:"seed"` // random; keys derived from it can't be guessed
	Asker     approval.Asker `json:"asker"`
	State     State          `json:"state"`
	Arguments []byte         `json:"arguments,omitempty"` // as they were received, byte for byte
	Edited    []byte         `json:"edited,omitempty"`    // as people approved them, if they edited them
	// Deadline ends the call unless it has already ended. Zero means no deadline.
	Deadline time.Time `json:"deadline,omitzero"`

	Asked    int       `json:"asked,omitempty"` // how many requests were made
	Ask      *Ask      `json:"ask,omitempty"`   // the current request
	Approval *Approval `json:"approval,omitempty"`
	Run      Attempt   `json:"run"`
	Message  *Attempt  `json:"errand,omitempty"` // to be sent to a peer; the part describes its content
	Stop     string    `json:"stop,omitempty"`   // why the run should stop

	Withdraw []string  `json:"withdraw,omitempty"` // references of requests that are no longer needed
	Later    Attempt   `json:"later,omitzero"`     // the attempt to withdraw the first of them
	Ending   *Ending   `json:"ending,omitempty"`
	EndedAt  time.Time `json:"ended_at,omitzero"`

	Part P `json:"part"`

	version int64
	claimed bool // this process claimed the message in the write that is about to be, or was just, made
}

// Ask is a request to people about a call.
type Ask struct {
	Question bool          `json:"question,omitempty"` // a question with choices; otherwise an approval of the call
	Key      string        `json:"key"`
	Ref      string        `json:"ref,omitempty"`     // empty until the request was made
	Binding  string        `json:"binding,omitempty"` // of the call and the rules, when the request was made
	Until    time.Time     `json:"until,omitzero"`    // of the call and the rules, as of the request
	Next     time.Time     `json:"next,omitzero"`     // when to check again
	Pause    time.Duration `json:"pause,omitempty"`   // between this check and the next
	Tries    int           `json:"tries,omitempty"`   // failures in a row
}

// Approval is the approval that a run relies on.
type Approval struct {
	Ref     string `json:"ref"`
	Key     string `json:"key"`
	By      string `json:"by,omitempty"`
	Binding string `json:"binding,omitempty"` // of the call and the rules as of the request; Decide may renew it
	Edited  bool   `json:"edited,omitempty"`  // people edited the arguments
	Taken   bool   `json:"taken,omitempty"`   // its one run was claimed
}

// Attempt is work that may have to be retried, possibly by another process.
type Attempt struct {
	Name  string    `json:"name,omitempty"`  // random name of the current try
	Tries int       `json:"tries,omitempty"` // tries begun
	Fails int       `json:"fails,omitempty"` // failures in a row to begin a try
	Next  time.Time `json:"next,omitzero"`   // no try before then; zero: at once
	Lease time.Time `json:"lease,omitzero"`  // a try is under way until then; after it, its process is considered dead
}

// Under reports whether a try is under way or was interrupted when its process died.
func (a *Attempt) Under() bool { return !a.Lease.IsZero() }

func (a *Attempt) at() time.Time {
	if a.Under() {
		return a.Lease
	}
	return a.Next
}

func (a *Attempt) ready(now time.Time) bool { return !now.Before(a.at()) }

// begin begins the next try.
func (a *Attempt) begin(now time.Time, lease time.Duration) {
	a.Name = rand.Text()
	a.Tries++
	a.Fails = 0
	a.Lease = now.Add(lease)
	a.Next = time.Time{}
}

// again records that a try is over and when the next one may begin.
func (a *Attempt) again(next time.Time) {
	a.Lease = time.Time{}
	a.Next = next
}

// Args returns the arguments that would run, or did.
func (c *Call[P]) Args() []byte {
	if c.Edited != nil {
		return c.Edited
	}
	return c.Arguments
}

// Over reports whether the call has its ending.
func (c *Call[P]) Over() bool { return c.State == Ended || c.State == Closed }

// atOnce returns a time that has passed on every clock, even on one that was set back since the
// record was written.
func atOnce() time.Time { return time.Unix(0, 0).UTC() }

// due returns when the call has to be worked on next. It is zero for never.
func (c *Call[P]) due() time.Time {
	var times []time.Time
	when := func(t time.Time) {
		if t.IsZero() {
			t = atOnce()
		}
		times = append(times, t)
	}
	if len(c.Withdraw) > 0 {
		when(c.Later.at())
	}
	if c.Message != nil {
		when(c.Message.at())
	}
	if !c.Over() {
		c.dueBefore(when)
	}
	if len(times) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(times, time.Time.Compare)
}

// dueBefore calls when with each time at which a call that has not ended is due.
func (c *Call[P]) dueBefore(when func(time.Time)) {
	if !c.Deadline.IsZero() {
		when(c.Deadline)
	}
	if c.State == Ready || c.State == Running {
		when(c.Run.at())
	}
	if c.Ask != nil {
		when(c.Ask.Next)
		if !c.Ask.Until.IsZero() {
			when(c.Ask.Until)
		}
	}
}

// WithdrawAsk drops the current request and marks it to be withdrawn, if it was made.
func (c *Call[P]) WithdrawAsk() {
	if c.Ask != nil && c.Ask.Ref != "" {
		c.Withdraw = append(c.Withdraw, c.Ask.Ref)
		c.Later = Attempt{}
	}
	c.Ask = nil
}

// AskQuestion replaces the current request by a question of the transport (Transport.Question).
// Answers from until on don't count.
func (c *Call[P]) AskQuestion(until time.Time) {
	c.WithdrawAsk()
	c.Asked++
	c.Ask = &Ask{Question: true, Key: c.askKey(), Until: until}
}

// askApproval requests approval of the call with the given binding.
func (c *Call[P]) askApproval(binding string) {
	c.Asked++
	c.Ask = &Ask{Key: c.askKey(), Binding: binding}
}

// askKey returns the key of the current request. Keys are unique, whatever ids the transport
// gives its calls, and can't be guessed.
func (c *Call[P]) askKey() string { return c.keyOf(c.Asked) }

// nextKey returns the askKey of the next request.
func (c *Call[P]) nextKey() string { return c.keyOf(c.Asked + 1) }

func (c *Call[P]) keyOf(asked int) string { return "call-" + Hash(c.Seed+"/"+strconv.Itoa(asked)) }
