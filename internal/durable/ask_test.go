package durable_test

import (
	"bytes"
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/store/sqlite"
)

// slowPeople run meanwhile before they accept a request.
type slowPeople struct {
	hold.Requests
	mu        sync.Mutex
	meanwhile func()
	asked     []string
	withdrawn []string
	news      chan string // references to notify about; nil: no notifications
	approved  bool
}

func (p *slowPeople) As(approval.Asker) hold.Requests { return p }

func (p *slowPeople) Watch(ctx context.Context, changed func(string)) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case ref := <-p.news:
			changed(ref)
		}
	}
}

func (p *slowPeople) Ask(_ context.Context, key string, _ hold.Question) (string, error) {
	return p.take(key), nil
}

func (p *slowPeople) Open(_ context.Context, key string, _ hold.Verdict) (hold.Held, error) {
	return hold.Held{State: hold.Pending, Ref: p.take(key)}, nil
}

func (p *slowPeople) Look(_ context.Context, ref string) (hold.Held, error) {
	p.mu.Lock()
	approved := p.approved
	p.mu.Unlock()
	if !approved {
		return hold.Held{State: hold.Pending, Ref: ref}, nil
	}
	p.happen()
	return hold.Held{State: hold.Approved, Ref: ref}, nil
}

// take records a request and returns its reference.
func (p *slowPeople) take(key string) string {
	p.mu.Lock()
	p.asked = append(p.asked, key)
	p.mu.Unlock()
	p.happen()
	return "ref of " + key
}

// happen calls meanwhile once.
func (p *slowPeople) happen() {
	p.mu.Lock()
	meanwhile := p.meanwhile
	p.meanwhile = nil
	p.mu.Unlock()
	if meanwhile != nil {
		meanwhile()
	}
}

func (p *slowPeople) Answer(context.Context, string) (hold.Answer, error) {
	return hold.Answer{State: hold.Pending}, nil
}

func (p *slowPeople) Cancel(_ context.Context, ref, _ string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.withdrawn = append(p.withdrawn, ref)
	return nil
}

// If a question is replaced while it is being asked, it is withdrawn, and the new one is asked
// instead.
func TestAQuestionThatIsReplacedWhileItIsPutIsWithdrawn(t *testing.T) {
	t.Parallel()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "records.db"), sqlite.Options{})
	must.Do(t, err)
	people := &slowPeople{}
	engine := must.Get(durable.New(durable.Config{
		Sealing: durable.Sealing{Records: db, Namespace: "test", Key: bytes.Repeat([]byte{7}, 32)},
		People:  people,
		Poll:    5 * time.Millisecond,
	}, durable.Transport[struct{}]{
		Decide: func(context.Context, *durable.Call[struct{}]) (durable.Ruling, error) {
			return durable.Ruling{}, nil
		},
		Run:      func(context.Context, *durable.Call[struct{}]) durable.Result[struct{}] { panic("nothing runs") },
		Question: func(*durable.Call[struct{}]) hold.Question { return hold.Question{} },
	}))(t)
	replace := func(c *durable.Call[struct{}]) error {
		c.AskQuestion(time.Now().Add(time.Hour))
		return nil
	}
	people.meanwhile = func() {
		if _, err := engine.Change(t.Context(), "call", replace); err != nil {
			t.Error(err)
		}
	}

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- engine.Run(ctx) }()
	call := &durable.Call[struct{}]{Key: "call", Asker: approval.Asker{Token: "test"}, State: durable.Away}
	must.Do(t, engine.Add(ctx, call))
	must.Get(engine.Change(ctx, "call", replace))(t)
	_, err = engine.Watch(ctx, "call", func(c *durable.Call[struct{}]) bool {
		people.mu.Lock()
		defer people.mu.Unlock()
		return c.Ask.Ref != "" && len(people.withdrawn) == 1
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err != nil || len(people.asked) != 2 || people.withdrawn[0] != "ref of "+people.asked[0] {
		t.Errorf("asked %q, withdrawn %q, %v", people.asked, people.withdrawn, err)
	}
}

// counted returns an engine whose calls need approval and whose part is a counter.
func counted(t *testing.T, people *slowPeople) *durable.Engine[int] {
	t.Helper()
	db := must.Get(sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "records.db"), sqlite.Options{}))(t)
	engine := must.Get(durable.New(durable.Config{
		Sealing:   durable.Sealing{Records: db, Namespace: "test", Key: bytes.Repeat([]byte{7}, 32)},
		People:    people,
		Poll:      5 * time.Millisecond,
		FirstLook: time.Hour,
		LastLook:  time.Hour,
	}, durable.Transport[int]{
		Decide: func(_ context.Context, c *durable.Call[int]) (durable.Ruling, error) {
			if c.Approval != nil {
				return durable.Ruling{Do: durable.Wait}, nil
			}
			return durable.Ruling{Do: durable.Approve}, nil
		},
		Run: func(context.Context, *durable.Call[int]) durable.Result[int] { panic("nothing runs") },
	}))(t)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- engine.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return engine
}

// count increments the part of a call.
func count(t *testing.T, engine *durable.Engine[int]) func() {
	return func() {
		_, err := engine.Change(t.Context(), "call", func(c *durable.Call[int]) error {
			c.Part++
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// If a call changes while its approval is being requested, it is decided on again and asks
// under the same key, so the request stays open.
func TestARequestStaysWhoseCallIsChangedWhileItIsPut(t *testing.T) {
	t.Parallel()
	people := &slowPeople{}
	engine := counted(t, people)
	people.meanwhile = count(t, engine)
	call := &durable.Call[int]{Key: "call", Asker: approval.Asker{Token: "test"}}
	must.Do(t, engine.Add(t.Context(), call))
	c, err := engine.Watch(t.Context(), "call", func(c *durable.Call[int]) bool {
		return c.Ask != nil && c.Ask.Ref != ""
	})
	if err != nil || c.Part != 1 {
		t.Fatalf("counted %d, %v", c.Part, err)
	}
	if len(people.asked) != 2 || people.asked[0] != people.asked[1] || len(people.withdrawn) != 0 {
		t.Errorf("asked %q, withdrawn %q", people.asked, people.withdrawn)
	}
}

// A notification is handled even if a concurrent change was stored first: the call doesn't wait
// for the next check.
func TestNewsIsNotLostWhenTheCallIsChangedMeanwhile(t *testing.T) {
	t.Parallel()
	people := &slowPeople{news: make(chan string)}
	engine := counted(t, people)
	call := &durable.Call[int]{Key: "call", Asker: approval.Asker{Token: "test"}}
	must.Do(t, engine.Add(t.Context(), call))
	c := must.Get(engine.Watch(t.Context(), "call", func(c *durable.Call[int]) bool {
		return c.Ask != nil && c.Ask.Next.After(time.Now()) && engine.Idle()
	}))(t)

	people.mu.Lock()
	people.approved = true
	people.meanwhile = count(t, engine)
	people.mu.Unlock()
	people.news <- c.Ask.Ref
	c = testwait.Value(t, "the call is approved", func() (*durable.Call[int], bool) {
		c, err := engine.Get(t.Context(), "call")
		return c, err == nil && c.State == durable.Waiting
	})
	if c.Part != 1 {
		t.Errorf("counted %d", c.Part)
	}
}
