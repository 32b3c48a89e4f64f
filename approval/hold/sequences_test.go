package hold_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/assenttest"
)

// trial is a random sequence of actions on one session's calls.
type trial struct {
	t      *rapid.T
	h      *assenttest.Assent
	holder hold.Holder
	name   string              // makes the calls of this trial unique
	refs   []string            // references of requests
	won    map[string][]string // keys of claims that succeeded, by request
}

func (x *trial) verdict() hold.Verdict {
	v := asks(
		rapid.SampledFrom([]string{"trade", "wire"}).Draw(x.t, "tool"),
		fmt.Sprintf(`{"amount":%d}`, rapid.IntRange(1, 2).Draw(x.t, "amount")),
	)
	v.Call.Session = x.name
	return v
}

// asked runs an action that needs a request. If there is none, it opens one instead.
func (x *trial) asked(act func(*rapid.T)) func(*rapid.T) {
	return func(t *rapid.T) {
		if len(x.refs) == 0 {
			x.open(t)
			return
		}
		act(t)
	}
}

func (x *trial) ref() string {
	return rapid.SampledFrom(x.refs).Draw(x.t, "ref")
}

func (x *trial) key() string {
	return x.name + rapid.SampledFrom([]string{"-a", "-b", "-c"}).Draw(x.t, "key")
}

func (x *trial) open(*rapid.T) {
	got, err := x.holder.Open(context.Background(), x.key(), x.verdict())
	switch {
	case errors.Is(err, approval.ErrKeyReuse):
	case err != nil:
		x.t.Fatal(err)
	case got.Ref != "" && !slices.Contains(x.refs, got.Ref):
		x.refs = append(x.refs, got.Ref)
	}
}

func (x *trial) vote(*rapid.T) {
	verdict := rapid.SampledFrom([]approval.Verdict{
		approval.Approve,
		approval.Approve,
		approval.Approve,
		approval.Deny,
		approval.Respond,
	}).
		Draw(x.t, "verdict")
	_, err := x.h.Vote(
		x.ref(),
		rapid.SampledFrom([]string{"mara", "ben", "rt"}).Draw(x.t, "person"),
		verdict,
		func(in *approval.VoteInput) {
			if verdict == approval.Respond {
				in.Response = "instead"
			}
		},
	)
	must(x.t, err)
}

func (x *trial) edit(*rapid.T) {
	err := x.h.Edit(
		x.ref(),
		rapid.SampledFrom([]string{"mara", "ben"}).Draw(x.t, "person"),
		fmt.Sprintf(`{"amount":%d}`, rapid.IntRange(1, 3).Draw(x.t, "amount")),
	)
	if err != nil && !errors.Is(err, approval.ErrClosed) && !errors.As(err, new(*approval.InputError)) {
		x.t.Fatal(err)
	}
}

func (x *trial) cancel(*rapid.T) {
	must(x.t, x.holder.Cancel(context.Background(), x.ref(), ""))
}

func (x *trial) pass(*rapid.T) {
	x.h.Clock.Add(
		rapid.SampledFrom([]time.Duration{time.Second, 6 * time.Minute, 16 * time.Minute, 61 * time.Minute}).
			Draw(x.t, "time"),
	)
	if rapid.Bool().Draw(x.t, "tick") {
		if _, err := x.h.Service.Tick(context.Background()); err != nil {
			x.t.Fatal(err)
		}
	}
}

// claim presents the approved call or another one, and checks the answer against the request's
// previous state.
func (x *trial) claim(*rapid.T) {
	ref := x.ref()
	key := x.key()
	v := x.verdict()
	before, err := x.h.Service.Request(context.Background(), "acme", ref)
	must(x.t, err)
	if rapid.Bool().Draw(x.t, "what is approved") {
		v.Call.Tool, v.Call.Args = before.Current().Call.Tool, []byte(before.Current().Call.Args)
	}
	now := x.h.Clock.Now()
	switch err := x.holder.Claim(context.Background(), ref, key, v); {
	case err == nil:
		x.succeeded(before, key, v, now)
	case !errors.As(err, new(*hold.ClaimError)):
		x.t.Fatalf("a claim that nobody could answer: %v", err)
	case before.State == approval.Consumed && slices.Equal(x.won[ref], []string{key}) && same(before, v):
		x.t.Fatalf("the same claim is told otherwise: %v", err)
	}
}

func same(r *approval.Request, v hold.Verdict) bool {
	return r.Current().Call.Tool == v.Call.Tool && string(r.Current().Call.Args) == string(v.Call.Args)
}

func (x *trial) succeeded(before *approval.Request, key string, v hold.Verdict, now time.Time) {
	if !slices.Contains(x.won[before.ID], key) {
		x.won[before.ID] = append(x.won[before.ID], key)
		if before.State != approval.Approved || !now.Before(before.Permit.Expires) {
			x.t.Fatalf("claimed while %s", before.State)
		}
	}

	if len(x.won[before.ID]) > 1 {
		x.t.Fatalf("claimed under %q", x.won[before.ID])
	}
	if !same(before, v) {
		x.t.Fatalf("claimed %s %s, approved is %+v", v.Call.Tool, v.Call.Args, before.Current().Call)
	}
	if have := approvals(before); len(have) < map[string]int{"trade": 1, "wire": 2}[v.Call.Tool] {
		x.t.Fatalf("claimed with the word of %v", have)
	}
}

// approvals counts the people who approved the current revision, independently of the state
// machine.
func approvals(r *approval.Request) map[string]bool {
	out := map[string]bool{}
	for _, v := range r.Votes {
		if v.Verdict == approval.Approve && !v.Late && v.Binding == r.Binding() {
			out[v.Person] = v.Person == "mara" || v.Person == "ben"
		}
	}
	for person, counts := range out {
		if !counts {
			delete(out, person)
		}
	}
	return out
}

// TestSequences: after any sequence of actions, only one key gets the run of an approval, and
// nothing runs without an approval.
func TestSequences(t *testing.T) {
	for name, one := range sides() {
		if name == "client, events" {
			continue // differs only in the way it watches
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newAssent(t, assenttest.Config{})
			holder := one(h, "rt", "desk")
			var trials, claims atomic.Int64
			rapid.Check(t, func(t *rapid.T) {
				x := &trial{
					t:      t,
					h:      h,
					holder: holder,
					name:   fmt.Sprintf("s-%d", trials.Add(1)),
					won:    map[string][]string{},
				}
				t.Repeat(map[string]func(*rapid.T){
					"open":        x.open,
					"vote":        x.asked(x.vote),
					"vote again":  x.asked(x.vote),
					"edit":        x.asked(x.edit),
					"claim":       x.asked(x.claim),
					"claim again": x.asked(x.claim),
					"cancel":      x.asked(x.cancel),
					"pass":        x.pass,
				})
				claims.Add(int64(len(x.won)))
			})
			if claims.Load() == 0 {
				t.Error("no claim ever succeeded: nothing was tried")
			}
		})
	}
}
