package rap_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/gateway"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/wire"
	"github.com/assent-dev/assent/resolve"
)

// stuckDesk takes nothing before it is let; then it approves all.
type stuckDesk struct {
	hold.Requests
	let <-chan struct{}
}

func (d stuckDesk) As(approval.Asker) hold.Requests { return d }

func (d stuckDesk) Open(_ context.Context, key string, _ hold.Verdict) (hold.Held, error) {
	<-d.let
	return hold.Held{Ref: key, State: hold.Approved}, nil
}

func (d stuckDesk) Watch(ctx context.Context, _ func(string)) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestLoadAcknowledged: an acknowledgement waits for nothing but its
// record, however slow the rest is. Here the rest doesn't go on before
// every call is acknowledged, and there are more calls than a caller
// may have worked on at once. How fast that is, is measured by make -C
// bench rap.
func TestLoadAcknowledged(t *testing.T) {
	for name, tt := range map[string]struct {
		operation string
		change    func(*gateway.Config, <-chan struct{})
		callback  bool // the runtime doesn't answer its callbacks
		ends      bool // or else its users are asked
	}{
		"a plan that is not to be had": {
			operation: "write_file",
			change: func(cfg *gateway.Config, let <-chan struct{}) {
				plan := cfg.Plan
				cfg.Plan = func(ctx context.Context) (*resolve.Plan, error) {
					<-let
					return plan(ctx)
				}
			},
		},
		"an operation that takes its time": {
			operation: "read_file",
			ends:      true,
			change: func(cfg *gateway.Config, let <-chan struct{}) {
				cfg.Operations[1].Run = func(context.Context, rap.Job) (rap.Outcome, error) {
					<-let
					return rap.Outcome{Text: "done"}, nil
				}
			},
		},
		"a desk that is away": {
			operation: "write_file",
			change: func(cfg *gateway.Config, let <-chan struct{}) {
				cfg.Ask, cfg.People = gateway.AskBoth, stuckDesk{let: let}
			},
		},
		"a ledger that is slow": {
			operation: "write_file",
			change: func(cfg *gateway.Config, let <-chan struct{}) {
				cfg.Record = func(context.Context, string, string, string, map[string]any) error {
					<-let
					return nil
				}
			},
		},
		"a runtime that takes no callbacks": {operation: "write_file", callback: true},
	} {
		t.Run(name, func(t *testing.T) {
			let := make(chan struct{})
			u := newLoadUser(t)
			u.client.Timeout = 10 * time.Second
			if tt.callback {
				u.let = let
			}
			url := ackGateway(t, u, func(cfg *gateway.Config) {
				if tt.change != nil {
					tt.change(cfg, let)
				}
			})
			release := sync.OnceFunc(func() { close(let) })
			t.Cleanup(release) // the gateway ends after it
			ids := loadIDs(150)
			var mu sync.Mutex
			var took []time.Duration
			loadEach(ids, func(id string) {
				start := time.Now()
				u.must(url+"/invoke", u.invocationOf(id, tt.operation))
				mu.Lock()
				defer mu.Unlock()
				took = append(took, time.Since(start))
			})
			slices.Sort(took)
			t.Logf("%d at once: half within %v", loadWorkers, took[len(took)/2])
			if asked, ended := u.counts(); asked+ended > 0 {
				t.Errorf("%d questions and %d ends before it went on: nothing was held up", asked, ended)
			}
			release()
			if tt.ends {
				u.awaits("the results", 0, len(ids))
			} else {
				u.awaits("the questions", len(ids), 0)
			}
		})
	}
}

func ackGateway(t *testing.T, u *loadUser, change func(*gateway.Config)) string {
	t.Helper()
	plan, err := confPlan(confToolsFile, confToolsPolicy)
	confMust(t, err)
	front := httptest.NewUnstartedServer(nil)
	schema := json.RawMessage(`{"type":"object"}`)
	run := func(context.Context, rap.Job) (rap.Outcome, error) { return rap.Outcome{Text: "done"}, nil }
	cfg := gateway.Config{
		Common: rap.Common{
			Records:   openRecords(t),
			Namespace: "load",
			Key:       bytes.Repeat([]byte{7}, 32),
			Poll:      20 * time.Millisecond,
			Plan:      func(context.Context) (*resolve.Plan, error) { return plan, nil },
		},
		Name:      "toolkeeper",
		PublicURL: "http://" + front.Listener.Addr().String(),
		Rate:      1 << 20,
		Operations: []rap.Operation{
			{
				Name:        "write_file",
				Description: "Writes a file.",
				InputSchema: schema,
				Run:         run,
			},
			{
				Name:        "read_file",
				Description: "Reads a file.",
				InputSchema: schema,
				Run:         run,
			},
		},
		Callers: []gateway.Caller{
			{Name: "load", Callbacks: peer.Config{Allow: []string{u.server.URL}, Timeout: 30 * time.Second}},
		},
	}
	change(&cfg)
	g, err := gateway.New(cfg)
	confMust(t, err)
	front.Config.Handler = g
	front.Start()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-ended
		front.Close()
	})
	return cfg.PublicURL
}

func (u *loadUser) invocationOf(id, operation string) []byte {
	in := loadInvocation(id)
	return (&wire.Invocation{
		Operation:   operation,
		Arguments:   in.Arguments,
		ID:          id,
		GroupID:     in.Thread,
		UserID:      in.User,
		CallbackURL: u.server.URL + "/callbacks/" + id,
	}).Append(nil)
}
