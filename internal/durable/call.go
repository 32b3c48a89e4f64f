package durable

import (
	"crypto/rand"
	"slices"
	"strconv"
	"time"

	"github.com/assent-dev/assent/approval"
)

// State is how far a call has come. It goes forward, but for a run that
// provably did not begin.
type State string

// The states of a call.
const (
	Ready   State = "ready"   // to be decided on, and run where nobody has to be asked (any more)
	Asking  State = "asking"  // people are asked whether it may run
	Waiting State = "waiting" // the transport waits for a word from outside before it may run
	Running State = "running" // begun: when its process is gone, nobody knows what came of it
	Away    State = "away"    // handed to a peer, which brings its ending later
	Ended   State = "ended"   // has its ending, of which somebody is to be told
	Closed  State = "closed"  // nothing is left to do; kept so that repetitions are recognised
)

// currentFormat is the form of the records that this code writes.
// Records of a higher one are left to newer processes.
const currentFormat = 2

// Call is the record of a call: what the engine has to know of it after
// a crash, and the part of its transport. Whatever is done in the world
// because of it is written down in it first.
type Call[P any] struct {
	Key     string    `json:"-"` // of the record
	Alias   string    `json:"-"` // a second key, such as the hash of a secret URL; "" for none
	Expires time.Time `json:"-"` // when the record may be forgotten; zero: not before it is closed

	Format    int            `json:"format"`
	Seed      string         `json:"seed"` // random; names that nobody can guess are made of it
	Asker     approval.Asker `json:"asker"`
	State     State          `json:"state"`
	Arguments []byte         `json:"arguments,omitempty"` // as the call came, byte for byte
	Edited    []byte         `json:"edited,omitempty"`    // as people approved them, when they changed them
	// the call ends when nothing has ended it by then; zero: never
	Deadline time.Time `json:"deadline,omitzero"`

	Asked    int       `json:"asked,omitempty"` // how often people were asked
	Ask      *Ask      `json:"ask,omitempty"`   // what they are asked now
	Approval *Approval `json:"approval,omitempty"`
	Run      Attempt   `json:"run"`
	Message  *Attempt  `json:"errand,omitempty"` // something is to be sent to a peer; the part says what
	Stop     string    `json:"stop,omitempty"`   // why it should not go on while it runs

	Withdraw []string  `json:"withdraw,omitempty"` // references of what people need not answer any more
	Later    Attempt   `json:"later,omitzero"`     // of withdrawing
	Ending   *Ending   `json:"ending,omitempty"`
	EndedAt  time.Time `json:"ended_at,omitzero"`

	Part P `json:"part"`

	version int64
	claimed bool // this process has just taken the message, in the write that made it
}

// Ask is what people are asked about a call.
type Ask struct {
	Question bool          `json:"question,omitempty"` // choices; otherwise the approval of the call
	Key      string        `json:"key"`
	Ref      string        `json:"ref,omitempty"`     // "" until they were asked
	Binding  string        `json:"binding,omitempty"` // of the call and the rules, when they were asked
	Until    time.Time     `json:"until,omitzero"`    // no answer counts from then on; zero: as people's side says
	Next     time.Time     `json:"next,omitzero"`     // when to look again
	Pause    time.Duration `json:"pause,omitempty"`   // between this look and the next
	Tries    int           `json:"tries,omitempty"`   // that failed in a row
}

// Approval is the word of people that a run rests on.
type Approval struct {
	Ref     string `json:"ref"`
	Key     string `json:"key"`
	By      string `json:"by,omitempty"`
	Binding string `json:"binding,omitempty"` // of the call and the rules when they were asked; Decide may renew it
	Edited  bool   `json:"edited,omitempty"`  // they changed the arguments
	Taken   bool   `json:"taken,omitempty"`   // its one run was claimed
}

// Attempt is something to be done that may have to be tried again, also
// by another process.
type Attempt struct {
	Name  string    `json:"name,omitempty"`  // of the try that is under way; no other has it
	Tries int       `json:"tries,omitempty"` // that were begun
	Fails int       `json:"fails,omitempty"` // times in a row that none could be begun
	Next  time.Time `json:"next,omitzero"`   // no try before; zero: at once
	Lease time.Time `json:"lease,omitzero"`  // a try is under way until then; after it whoever made it is gone
}

// Under reports whether a try is under way, or was when its process died.
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

// again notes that a try is over, and when the next one may begin.
func (a *Attempt) again(next time.Time) {
	a.Lease = time.Time{}
	a.Next = next
}

// Args are the arguments that would run, or did.
func (c *Call[P]) Args() []byte {
	if c.Edited != nil {
		return c.Edited
	}
	return c.Arguments
}

// Over reports whether the call has its ending.
func (c *Call[P]) Over() bool { return c.State == Ended || c.State == Closed }

// atOnce is a time that has come by every clock, also by one that was
// set back since the record was written.
func atOnce() time.Time { return time.Unix(0, 0).UTC() }

// due is when somebody has to look at the call; zero: never.
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

// dueBefore tells when somebody has to look at a call that has not ended.
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

// WithdrawAsk notes that nobody needs the answer of people any more:
// their side is told so.
func (c *Call[P]) WithdrawAsk() {
	if c.Ask != nil && c.Ask.Ref != "" {
		c.Withdraw = append(c.Withdraw, c.Ask.Ref)
		c.Later = Attempt{}
	}
	c.Ask = nil
}

// AskQuestion has people asked a question of the transport's
// (Transport.Question), in the place of what they are asked now. Until
// is when no answer counts any more.
func (c *Call[P]) AskQuestion(until time.Time) {
	c.WithdrawAsk()
	c.Asked++
	c.Ask = &Ask{Question: true, Key: c.askKey(), Until: until}
}

// askApproval has people asked for the approval of the call as it was
// decided on.
func (c *Call[P]) askApproval(binding string) {
	c.Asked++
	c.Ask = &Ask{Key: c.askKey(), Binding: binding}
}

// askKey names what is asked. No two questions share a name, whatever
// ids the transport gives its calls, and nobody can guess it.
func (c *Call[P]) askKey() string { return c.keyOf(c.Asked) }

// nextKey is the askKey of what is asked next.
func (c *Call[P]) nextKey() string { return c.keyOf(c.Asked + 1) }

func (c *Call[P]) keyOf(asked int) string { return "call-" + Hash(c.Seed+"/"+strconv.Itoa(asked)) }
