package slack_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/server/notify"
	"github.com/assent-dev/assent/server/notify/slack"
	"github.com/assent-dev/assent/store"
)

// job returns the delivery for a new request, as the worker passes it.
func (w *world) job(r *approval.Request, attempt int) store.Job {
	return store.Job{
		ID:       1,
		Tenant:   tenant,
		Attempt:  attempt,
		Delivery: approval.Delivery{Target: "slack", Event: approval.EventOpened, Subject: r.ID},
	}
}

func TestFailuresOfSlack(t *testing.T) {
	for name, test := range map[string]struct {
		fail      failure
		permanent bool
		wait      time.Duration
	}{
		"rate limit":             {fail: failure{status: 429, after: "30"}, wait: 30 * time.Second},
		"rate limit without":     {fail: failure{status: 429}},
		"rate limit by name":     {fail: failure{code: "ratelimited"}},
		"server error":           {fail: failure{status: 500}},
		"server error by name":   {fail: failure{code: "internal_error"}},
		"token revoked":          {fail: failure{code: "token_revoked"}, permanent: true},
		"not in the channel":     {fail: failure{code: "not_in_channel"}, permanent: true},
		"redirect is not obeyed": {fail: failure{status: 307}, permanent: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := w.ask("trade", `{"amount":5}`)
			w.slack.order("chat.postMessage", test.fail)
			err := w.app.Send(t.Context(), w.job(r, 1))
			got, ok := errors.AsType[*notify.Failure](err)
			if !ok || got.Permanent != test.permanent || got.After != test.wait {
				t.Fatalf("got %#v", err)
			}
			if strings.Contains(err.Error(), botToken) {
				t.Errorf("the error shows the token: %v", err)
			}
			if err := w.app.Send(t.Context(), w.job(r, 2)); err != nil || len(w.slack.now()) != 1 {
				t.Errorf("the next attempt: %v", err)
			}
		})
	}
}

func TestHangingSlackEndsWithTheContext(t *testing.T) {
	w := newWorld(t)
	r := w.ask("trade", `{"amount":5}`)
	release := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	w.slack.hook = func(string) {
		cancel()
		<-release
	}
	defer close(release)
	err := w.app.Send(ctx, w.job(r, 1))
	if got, ok := errors.AsType[*notify.Failure](err); !ok || got.Permanent || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestWrongTokenIsBuried(t *testing.T) {
	w, _ := asked(t, "trade", `{"amount":5}`, func(c *slack.Config) { c.Token = "xoxb-other" })
	jobs, err := w.store.Jobs(t.Context(), tenant, store.DeadEnd, 10)
	if err != nil || len(jobs) != 1 || !strings.Contains(jobs[0].Problem, "invalid_auth") ||
		strings.Contains(jobs[0].Problem, "xoxb") {
		t.Errorf("got %+v, %v", jobs, err)
	}
}

func TestUnknownRequestIsBuried(t *testing.T) {
	w := newWorld(t)
	err := w.app.Send(t.Context(), w.job(&approval.Request{ID: "apr_gone"}, 1))
	if got, ok := errors.AsType[*notify.Failure](err); !ok || !got.Permanent || !errors.Is(err, approval.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// A failing channel must not keep the message from the other channel, and only the failing one
// is tried again.
func TestOneChannelFails(t *testing.T) {
	w, _ := asked(t, "stuck", `{}`)
	w.slack.order("chat.update", failure{status: 500}) // in the first channel
	w.pass(11 * time.Minute)
	w.worker.Once(t.Context())
	if got := w.slack.now(); len(got) != 2 {
		t.Fatalf("%d messages", len(got))
	}
	w.pass(time.Minute)
	w.deliver()
	for _, p := range w.slack.now() {
		p.shows(t, "leads is called in and may approve in place of risk")
	}
	if got := w.slack.now(); len(got) != 2 {
		t.Errorf("%d messages", len(got))
	}
}

// forgetful loses values that it should store, like a crash after posting.
type forgetful struct {
	slack.Values
	lose *atomic.Int32
}

func (f forgetful) SetValue(ctx context.Context, bucket, key string, value []byte, expires time.Time) error {
	if f.lose.Add(-1) >= 0 {
		return errors.New("killed")
	}
	return f.Values.SetValue(ctx, bucket, key, value, expires)
}

// A message whose place was not stored must still show the current state after a click on it.
func TestCrashBetweenPostingAndRemembering(t *testing.T) {
	var lose atomic.Int32
	w := newWorld(t, func(c *slack.Config) { c.Values = forgetful{c.Values, &lose} })
	lose.Store(1)
	r := w.ask("trade", `{"amount":5}`)
	w.worker.Once(t.Context())
	w.pass(time.Minute)
	w.deliver()
	all := w.slack.now()
	if len(all) != 2 {
		t.Fatalf("%d messages", len(all))
	}
	w.click(all[1], approve, "U0ALICE")
	w.deliver()
	w.click(all[0], approve, "U0BOB") // the forgotten one, which still has buttons
	if got := w.request(r.ID); got.State != approval.Approved || len(got.Votes) != 2 || !got.Votes[1].Late {
		t.Fatalf("got %s with %+v", got.State, got.Votes)
	}
	for _, p := range w.slack.now() {
		p.shows(t, "Approved by alice@acme.example")
		if _, ok := p.button(approve); ok {
			t.Error("a button is left")
		}
	}
}

// A decision while the message is being posted must not leave buttons behind, even though the
// delivery of the decision finds no message yet.
func TestDecisionWhilePosting(t *testing.T) {
	w := newWorld(t)
	r := w.ask("trade", `{"amount":5}`)
	var once atomic.Bool
	w.slack.hook = func(method string) {
		if method != "chat.postMessage" || once.Swap(true) {
			return
		}
		if err := w.byBob(r); err != nil {
			t.Error(err)
		}
	}
	must.Do(t, w.app.Send(t.Context(), w.job(r, 1)))
	w.closedMessage("Approved by bob@acme.example")
}

// Two workers of two replicas deliver the same request. There must be one message.
func TestTwoDeliveriesAtOnce(t *testing.T) {
	w := newWorld(t)
	r := w.ask("trade", `{"amount":5}`)
	done := make(chan error, 8)
	for range cap(done) {
		go func() { done <- w.app.Send(t.Context(), w.job(r, 1)) }()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	w.only()
}

func TestTriggerThatExpired(t *testing.T) {
	w, _ := asked(t, "trade", `{"amount":5}`)
	p, b := w.button(deny)
	payload := w.payload(p, deny, b.Value, "U0ALICE")
	w.slack.mu.Lock()
	w.slack.triggers[payload["trigger_id"].(string)] = expiredTrigger
	w.slack.mu.Unlock()
	w.send(payload)
	w.hears("the form did not open")
	holds(t, strings.Join(w.report, "\n"), "expired_trigger_id")
}

func TestResponseURLMustBeSlacks(t *testing.T) {
	w, r := asked(t, "trade", `{"amount":5}`)
	p, b := w.button(approve)
	for _, to := range []string{
		"https://evil.example/x",
		"http://hooks.slack.com/x",
		"https://slack.com.evil.example/",
		"https://evilslack.com/",
		"https://user@hooks.slack.com/",
		"",
		"::",
		strings.Replace(w.slack.URL, "https", "http", 1) + "/response/1",
	} {
		w.report = nil
		payload := w.payload(p, approve, b.Value, "U0EVE")
		payload["response_url"] = to
		w.send(payload)
		if len(w.report) == 0 || !strings.Contains(w.report[0], "response URL is not Slack's") {
			t.Errorf("%q: got %q", to, w.report)
		}
	}

	if got := w.request(r.ID); got.State != approval.Pending {
		t.Errorf("got %s", got.State)
	}
}

// lost is a directory or a service that can't be read.
type lost struct{ approval.Directory }

func (lost) Person(context.Context, string, string) (approval.Person, bool, error) {
	return approval.Person{}, false, errors.New("disk on fire at /var/secret")
}

func TestDirectoryIsDown(t *testing.T) {
	w, r := asked(t, "trade", `{"amount":5}`, func(c *slack.Config) { c.People = lost{} })
	w.click(w.only(), approve, "U0ALICE")
	answer := w.slack.heard()
	holds(t, answer, "Nothing was counted")
	lacks(t, answer, "/var/secret")
	w.unanswered(r.ID, "nobody knows whose click")
}

type brokenVoter struct{ slack.Voter }

func (brokenVoter) Vote(context.Context, approval.VoteInput) (*approval.Voted, error) {
	return nil, errors.New("database at 10.0.0.1 refused")
}

func TestServiceIsDown(t *testing.T) {
	w, _ := asked(t, "trade", `{"amount":5}`, func(c *slack.Config) { c.Voter = brokenVoter{c.Voter} })
	w.click(w.only(), approve, "U0ALICE")
	answer := w.slack.heard()
	holds(t, answer, "Nothing was counted: something failed")
	lacks(t, answer, "10.0.0.1")
}

// slowVoter blocks while it handles interactions.
type slowVoter struct {
	slack.Voter
	release chan struct{}
}

func (s slowVoter) Vote(context.Context, approval.VoteInput) (*approval.Voted, error) {
	<-s.release
	return nil, errors.New("late")
}

func TestAcknowledgementDoesNotWaitAndWorkIsBounded(t *testing.T) {
	slow := slowVoter{release: make(chan struct{})}
	w := newWorld(t, func(c *slack.Config) {
		slow.Voter = c.Voter
		c.Voter = slow
	})
	w.ask("trade", `{"amount":5}`)
	w.deliver()
	p, b := w.button(approve)
	statuses := map[int]int{}
	for range 70 {
		request := w.signed(encode(t, w.payload(p, approve, b.Value, "U0ALICE")))
		statuses[w.post(request)]++ // no vote has ended
	}

	if statuses[http.StatusOK] != 64 || statuses[http.StatusServiceUnavailable] != 6 {
		t.Errorf("got %v", statuses)
	}
	close(slow.release)
	w.app.Wait()
}
