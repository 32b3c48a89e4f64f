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
	"github.com/assent-dev/assent/store/sqlite"
)

// slowPeople take a question only after something else has happened.
type slowPeople struct {
	hold.Requests
	mu        sync.Mutex
	meanwhile func()
	asked     []string
	withdrawn []string
}

func (p *slowPeople) As(approval.Asker) hold.Requests { return p }

func (p *slowPeople) Watch(ctx context.Context, _ func(string)) error {
	<-ctx.Done()
	return ctx.Err()
}

func (p *slowPeople) Ask(_ context.Context, key string, _ hold.Question) (string, error) {
	p.mu.Lock()
	meanwhile := p.meanwhile
	p.meanwhile = nil
	p.asked = append(p.asked, key)
	p.mu.Unlock()
	if meanwhile != nil {
		meanwhile()
	}
	return "ref of " + key, nil
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

// TestAQuestionThatIsReplacedWhileItIsPutIsWithdrawn, and the other one
// takes its place.
func TestAQuestionThatIsReplacedWhileItIsPutIsWithdrawn(t *testing.T) {
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "records.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	people := &slowPeople{}
	engine, err := durable.New(durable.Config{
		Sealing: durable.Sealing{
			Records:   db,
			Namespace: "test",
			Key:       bytes.Repeat([]byte{7}, 32),
		},
		People: people,
		Poll:   5 * time.Millisecond,
	}, durable.Transport[struct{}]{
		Decide: func(context.Context, *durable.Call[struct{}]) (durable.Ruling, error) {
			return durable.Ruling{}, nil
		},
		Run:      func(context.Context, *durable.Call[struct{}]) durable.Result[struct{}] { panic("nothing runs") },
		Question: func(*durable.Call[struct{}]) hold.Question { return hold.Question{} },
	})
	if err != nil {
		t.Fatal(err)
	}
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
	call := &durable.Call[struct{}]{
		Key:   "call",
		Asker: approval.Asker{Token: "test"},
		State: durable.Away,
	}
	if err := engine.Add(ctx, call); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Change(ctx, "call", replace); err != nil {
		t.Fatal(err)
	}
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
