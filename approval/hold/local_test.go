package hold_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/resolve"
)

// TestLocalAsks: each key is asked once, and an invalid answer never counts as one.
func TestLocalAsks(t *testing.T) {
	none := hold.Answer{State: hold.Cancelled, Reason: "no answer was given"}
	for name, test := range map[string]struct{ given, want hold.Answer }{
		"chosen":       {hold.Answer{State: hold.Chosen, Selected: 1}, hold.Answer{State: hold.Chosen, Selected: 1}},
		"dismissed":    {hold.Answer{State: hold.Dismissed}, hold.Answer{State: hold.Dismissed}},
		"out of range": {hold.Answer{State: hold.Chosen, Selected: 2}, none},
		"negative":     {hold.Answer{State: hold.Dismissed, Selected: -1}, none},
		"nothing":      {hold.Answer{}, none},
		"still open":   {hold.Answer{State: hold.Pending}, none},
	} {
		synctest.Test(t, func(t *testing.T) {
			times, release := 0, make(chan struct{})
			l := hold.NewLocal(func(context.Context, hold.Question) hold.Answer {
				times++
				<-release
				return test.given
			}, nil)
			for range 2 {
				if ref, err := l.Ask(t.Context(), "k", hold.Question{Choices: []string{"a", "b"}}); ref != "k" ||
					err != nil {
					t.Fatal(ref, err)
				}
			}

			synctest.Wait()
			if got, err := l.Answer(t.Context(), "k"); err != nil || got.State != hold.Pending {
				t.Errorf("%s: before: %+v, %v", name, got, err)
			}
			close(release)
			synctest.Wait()
			if got, err := l.Answer(t.Context(), "k"); err != nil || got != test.want || times != 1 {
				t.Errorf("%s: %+v, %v after %d times", name, got, err, times)
			}
		})
	}
}

// TestLocalWithdraws: withdrawing a question ends the function's context, and a later answer is
// ignored.
func TestLocalWithdraws(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := hold.NewLocal(func(ctx context.Context, _ hold.Question) hold.Answer {
			<-ctx.Done()
			return hold.Answer{State: hold.Chosen}
		}, nil)
		request, end := context.WithCancel(t.Context())
		if _, err := l.Ask(request, "k", hold.Question{Choices: []string{"a"}}); err != nil {
			t.Fatal(err)
		}
		end() // the call that brought the question has ended, the question has not
		synctest.Wait()
		if got, _ := l.Answer(t.Context(), "k"); got.State != hold.Pending {
			t.Errorf("got %+v", got)
		}
		must(t, l.Cancel(t.Context(), "k", "the call ended"))
		synctest.Wait()
		if got, _ := l.Answer(t.Context(), "k"); got != (hold.Answer{State: hold.Cancelled, Reason: "the call ended"}) {
			t.Errorf("got %+v", got)
		}
		if _, err := l.Answer(t.Context(), "other"); !errors.Is(err, hold.ErrNoRequest) {
			t.Errorf("got %v", err)
		}
	})
}

// TestLocalApproves: exactly the approved call may run.
func TestLocalApproves(t *testing.T) {
	verdict := func(binding string) hold.Verdict {
		return hold.Verdict{
			Decision: resolve.Decision{Outcome: resolve.Ask, Binding: binding},
			Call:     &resolve.Call{},
		}
	}
	synctest.Test(t, func(t *testing.T) {
		states := map[string]hold.State{"a": hold.Approved, "b": hold.Denied, "c": ""}
		l := hold.NewLocal(nil, func(_ context.Context, v hold.Verdict) hold.Held {
			return hold.Held{State: states[v.Binding], Arguments: []byte(`{"other":1}`)}
		})
		for binding := range states {
			if held, err := l.Open(t.Context(), binding, verdict(binding)); err != nil ||
				held.State != hold.Pending && held.State != states[binding] {
				t.Errorf("%s: %+v, %v", binding, held, err)
			}
		}

		synctest.Wait()
		for binding, may := range map[string]bool{"a": true, "b": false, "c": false, "d": false} {
			if err := l.Claim(t.Context(), binding, "run", verdict(binding)); (err == nil) != may ||
				err != nil && !errors.Is(err, hold.ErrNotClaimed) {
				t.Errorf("%s: %v", binding, err)
			}
		}

		if err := l.Claim(t.Context(), "a", "run", verdict("b")); !errors.Is(err, hold.ErrNotClaimed) {
			t.Errorf("another call: %v", err)
		}
		if held, err := l.Look(t.Context(), "a"); err != nil || held.Arguments != nil {
			t.Errorf("an edit: %+v, %v", held, err)
		}
	})
	if held, err := hold.NewLocal(nil, nil).Open(t.Context(), "k", verdict("a")); err != nil ||
		held.State != hold.Denied {
		t.Errorf("without anybody: %+v, %v", held, err)
	}
}

// TestLocalWatches: Watch reports everything as possibly changed at the start, and then each
// answer.
func TestLocalWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := hold.NewLocal(func(context.Context, hold.Question) hold.Answer {
			return hold.Answer{State: hold.Dismissed}
		}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var heard []string
		ended := make(chan error)
		go func() {
			ended <- l.Watch(ctx, func(ref string) { heard = append(heard, ref) })
		}()
		if _, err := l.Ask(t.Context(), "k", hold.Question{Choices: []string{"a"}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) || len(heard) != 2 || heard[0] != "" || heard[1] != "k" {
			t.Errorf("heard %q, %v", heard, err)
		}
	})
}
