//go:build bars

package asking

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/store"
)

const agentFile = `
schema_version: "1.0.0"
metadata: {id: clerk, name: Clerk, version: "1.0.0", description: Moves money.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Be careful., model: any}}
action_space:
  local_tools:
    - alias: transfer
      approval:
        message_template: "Transfer {{tool_args.amount}} to {{tool_args.iban}}?"
        condition: {args_match: {amount: {gt: 10}}}
`

const policyFile = `
schema_version: "1.0.0"
policy_ref: bench.two
description: Somebody of risk.
applies: implicit
rules:
  - id: large
    match: {targets: [transfer]}
    approval: true
    require: {stages: [{group: risk, people: 1}], within: 30m, on_timeout: deny}
`

// world is a service over one store. As in assent serve, a goroutine seals in the background.
type world struct {
	service *approval.Service
	store   store.Store
}

type plans struct {
	compiled *approval.Compiled
	past     *approval.PastRules
}

func (p plans) Plan(context.Context, string, string) (*approval.Compiled, error) {
	return p.compiled, nil
}

func (p plans) Past(string) *approval.PastRules { return p.past }

type directory struct{}

func (directory) Person(_ context.Context, _, name string) (approval.Person, bool, error) {
	return approval.Person{ID: name, Groups: []string{"risk"}}, name == "alice" || name == "bob", nil
}
func (directory) Members(context.Context, string, string) ([]approval.Person, error) { return nil, nil }
func (directory) Owners(context.Context, string, string) ([]string, error)           { return nil, nil }
func (directory) Reading(context.Context, string, approval.Person) (people.Reading, error) {
	return people.Reading{All: true}, nil
}

func newWorld(t *testing.T, s store.Store) world { return newWorldOf(t, s, policyFile) }

func newWorldOf(t *testing.T, s store.Store, policies string) world {
	agent, findings := schema.Parse("clerk.agf.yaml", []byte(agentFile))
	if agent == nil {
		t.Fatal(findings)
	}
	doc, findings := policy.Parse("two.policy.yaml", []byte(policies))
	if doc == nil {
		t.Fatal(findings)
	}
	registry, findings := policy.NewSet(doc)
	if registry.Err() != nil {
		t.Fatal(findings)
	}
	plan, err := resolve.Compile(agent, registry, resolve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &approval.Compiled{Agent: approval.Agent{ID: "clerk", Version: "1.0.0"}, Plan: plan}
	past := approval.NewPastRules(map[string]*approval.Compiled{"clerk": c})
	w := world{approval.New(s, plans{c, past}, directory{}, time.Now, rand.Reader, approval.Config{}), s}
	w.seal(t)
	return w
}

// seal keeps the tree of the ledger up to date until the test ends.
func (w world) seal(t *testing.T) {
	signer, _, err := ledger.GenerateKey("bench.example", rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			changed := w.store.Changed("default")
			if n, err := w.store.Seal(ctx, 4096, signer.Sign); err != nil && ctx.Err() == nil {
				t.Error(err)
			} else if n == 4096 {
				continue
			}
			select {
			case <-changed:
				<-time.After(20 * time.Millisecond) // the server also waits between two sealings
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
}

var serial atomic.Int64 // makes each call different

func (w world) open(ctx context.Context) (*approval.Request, error) {
	args := fmt.Sprintf(
		`{"amount":%d,"iban":"DE02120300000000202051","reason":"invoice 4711 of the second quarter"}`,
		100+serial.Add(1),
	)
	call := &resolve.Call{
		Kind:      resolve.Tool,
		Tool:      "transfer",
		Args:      []byte(args),
		Principal: "bob",
		Session:   "s-1",
	}
	o, err := w.service.Open(ctx, approval.OpenInput{
		Tenant: "default",
		Asker:  approval.Asker{Token: "bench"},
		Agent:  "clerk",
		Call:   call,
	})
	if err != nil {
		return nil, err
	}
	if o.Outcome != resolve.Ask {
		return nil, fmt.Errorf("opened as %s", o.Outcome)
	}
	return o.Request, nil
}

// round runs three transactions: open, vote, consume.
func (w world) round(ctx context.Context) error {
	r, err := w.open(ctx)
	if err != nil {
		return err
	}
	v, err := w.service.Vote(ctx, approval.VoteInput{
		Tenant:    "default",
		ID:        r.ID,
		IfVersion: r.Version,
		Binding:   r.Binding(),
		Person:    "alice",
		Verdict:   approval.Approve,
		Channel:   "bench",
		Full:      true,
	})
	if err != nil {
		return err
	}
	if v.Outcome != approval.VoteApproved {
		return fmt.Errorf("voted: %s", v.Outcome)
	}
	_, err = w.service.Consume(ctx, approval.ConsumeInput{
		Tenant:  "default",
		ID:      r.ID,
		Asker:   approval.Asker{Token: "bench"},
		Binding: r.Binding(),
		Key:     approval.NewKey(),
	})
	return err
}

// burst runs fn on the workers until the time is over, and returns the number of completed
// calls per second.
func burst(t *testing.T, workers int, long time.Duration, fn func(context.Context) error) float64 {
	t.Helper()
	var done atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for range workers {
		wg.Go(func() {
			for time.Since(start) < long {
				if err := fn(context.Background()); err != nil {
					t.Error(err)
					return
				}
				done.Add(1)
			}
		})
	}

	wg.Wait()
	return float64(done.Load()) / time.Since(start).Seconds()
}

// ratio returns the median ratio of bursts. The two functions alternate, so other processes on
// the machine slow both.
func ratio(t *testing.T, what string, floor, ours func() float64) float64 {
	t.Helper()
	var ratios []float64
	for i := range 9 {
		f, o := floor(), ours()
		if i > 0 { // the first round warms up
			ratios = append(ratios, o/f)
		}
		t.Logf("%s: floor %.0f/s, open+vote+consume %.0f transactions/s: %.2f", what, f, o, o/f)
	}

	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

// TestThroughput compares transactions with inserts of a single row, each in its own commit, on
// the same store. The bar: 64 workers reach at least half of the rate of one client that
// inserts rows.
func TestThroughput(t *testing.T) {
	for _, e := range engines() {
		t.Run(e.name, func(t *testing.T) {
			s, floor := e.open(t)
			w := newWorld(t, s)
			for _, workers := range []int{1, 16, 64} {
				r := ratio(t, fmt.Sprintf("%d workers", workers), func() float64 {
					return burst(t, workers, time.Second, floor)
				},
					func() float64 { return 3 * burst(t, workers, time.Second, w.round) })
				t.Logf("RESULT %s, %d workers on both sides: %.2f of the floor", e.name, workers, r)
			}

			r := ratio(t, "one client against 64", func() float64 {
				return burst(t, 1, time.Second, floor)
			}, func() float64 {
				return 3 * burst(t, 64, time.Second, w.round)
			})
			t.Logf("RESULT %s, 64 workers, floor of one client: %.2f (bar 0.50)", e.name, r)
			if r < 0.5 {
				t.Errorf("%s reaches %.2f of its floor", e.name, r)
			}
		})
	}
}

// TestListing has the bar that a list of 10,000 open requests takes less than 50 ms.
func TestListing(t *testing.T) {
	for _, e := range engines() {
		t.Run(e.name, func(t *testing.T) {
			s, _ := e.open(t)
			w := newWorld(t, s)
			fill(t, w, 10_000)
			for name, f := range map[string]approval.Filter{
				"newest 50": {States: []approval.State{approval.Pending}},
				"soonest 50 of my group": {
					States: []approval.State{approval.Pending},
					Groups: []string{"risk"},
					ByDue:  true,
				},
				"newest 500": {States: []approval.State{approval.Pending}, Limit: 500},
				"newest 50 of a reader of none": {
					States:  []approval.State{approval.Pending},
					Readers: []string{"agent:other", "group:", "group:traders", "name:carol"},
				},
				"soonest 50 of a reader of all": {
					States:  []approval.State{approval.Pending},
					Readers: []string{"agent:clerk", "group:", "group:risk", "name:bob"},
					ByDue:   true,
				},
			} {
				took := median(t, 15, func() {
					page, err := s.Requests(context.Background(), "default", f)
					if want := countedOf(f); err != nil || page.Total != want {
						t.Fatalf("%d of %d: %v", page.Total, want, err)
					}
				})
				t.Logf("RESULT %s, %s: %v (bar 50ms)", e.name, name, took)
				if took > 50*time.Millisecond {
					t.Errorf("%s: %s takes %v", e.name, name, took)
				}
			}

			took := median(t, 5, func() { pages(t, s) })
			t.Logf("RESULT %s, all 10,000 in pages of 500: %v", e.name, took)
		})
	}
}

// countedOf is how many of 10,000 requests a list counts.
func countedOf(f approval.Filter) int {
	switch {
	case slices.Contains(f.Readers, "name:carol"):
		return 0
	case f.Readers != nil || f.Groups != nil:
		return 1_001
	}
	return 10_000
}

func fill(t *testing.T, w world, n int) {
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range n / 16 {
				if _, err := w.open(context.Background()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}

	wg.Wait()
}

func pages(t *testing.T, s store.Store) {
	f := approval.Filter{States: []approval.State{approval.Pending}, Limit: 500}
	n := 0
	for {
		page, err := s.Requests(context.Background(), "default", f)
		if err != nil {
			t.Fatal(err)
		}
		n += len(page.Requests)
		if f.Cursor = page.Next; f.Cursor == "" {
			break
		}
	}

	if n != 10_000 {
		t.Fatalf("%d of 10,000", n)
	}
}

func median(t *testing.T, times int, fn func()) time.Duration {
	t.Helper()
	all := make([]time.Duration, times)
	for i := range all {
		start := time.Now()
		fn()
		all[i] = time.Since(start)
	}
	slices.Sort(all)
	return all[times/2]
}

// TestSoak has the bar that memory stays flat: from 20,000 to 100,000 requests, the heap may
// grow by 10 % and 2 MB.
func TestSoak(t *testing.T) {
	for _, e := range engines() {
		t.Run(e.name, func(t *testing.T) {
			s, _ := e.open(t)
			w := newWorld(t, s)
			var early, late uint64
			for i := range 10 {
				soak(t, w, 10_000)
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				t.Logf("%d requests: %.1f MB of heap", (i+1)*10_000, float64(m.HeapAlloc)/1e6)
				if i == 1 {
					early = m.HeapAlloc
				}
				late = m.HeapAlloc
			}

			t.Logf(
				"RESULT %s: heap %.1f MB after 20,000 requests, %.1f MB after 100,000",
				e.name,
				float64(early)/1e6,
				float64(late)/1e6,
			)
			if late > early+early/10+2_000_000 {
				t.Errorf("%s: the heap grows from %d to %d bytes", e.name, early, late)
			}
		})
	}
}

func soak(t *testing.T, w world, n int) {
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range n / 16 {
				if err := w.round(context.Background()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}

	wg.Wait()
}

// TestSealedFirst compares acts that are sealed before they are answered (the store has
// Key.Sign) with acts that are sealed later. The bar: 64 clients reach 0.9 of the rate.
func TestSealedFirst(t *testing.T) {
	for _, e := range engines() {
		t.Run(e.name, func(t *testing.T) {
			rate := func(sign bool) func() float64 {
				signs = sign
				s, _ := e.open(t)
				w := newWorld(t, s)
				return func() float64 { return burst(t, 64, 300*time.Millisecond, w.round) }
			}
			later, first := rate(false), rate(true)
			var ratios []float64
			var all [2]float64
			for i := range 41 {
				l, f := later(), first()
				if i > 0 { // the first round warms up
					ratios, all[0], all[1] = append(ratios, f/l), all[0]+l, all[1]+f
				}
			}
			slices.Sort(ratios)
			r := ratios[len(ratios)/2]
			t.Logf("RESULT %s, 64 workers: sealed later %.0f rounds/s, sealed first %.0f/s, "+
				"median of the ratios %.2f (quartiles %.2f and %.2f; bar 0.90)",
				e.name, all[0]/40, all[1]/40, r, ratios[len(ratios)/4], ratios[3*len(ratios)/4])
			if r < 0.9 {
				t.Errorf("%s reaches %.2f of the rate without", e.name, r)
			}
		})
	}
}
