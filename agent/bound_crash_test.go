package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

// deeds is what tools did: it outlives each process.
type deeds struct {
	mu   sync.Mutex
	done []string
}

func (w *deeds) add(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = append(w.done, what)
}

func (w *deeds) tool(name string) Function {
	return NewFunction(name, "", nil, func(_ context.Context, args json.RawMessage) (any, error) {
		w.add(name + string(args))
		return name, nil
	})
}

func (w *deeds) count(what string) int {
	n := 0
	for _, d := range w.done {
		if d == what {
			n++
		}
	}
	return n
}

// crashScene is an agent with two calls to approve, one of which waits
// once more.
func crashScene(t testing.TB, w *deeds, store ThreadStore, concurrent bool) Agent {
	wait := &asking{
		name: "wait",
		ask: func() *Suspend {
			w.add("wait begun")
			return &Suspend{State: json.RawMessage(`7`),
				Requests: []content.InputRequest{&content.TextApprovalRequest{RequestID: "x", Text: "sure?"}}}
		},
	}
	wait.resumed = func(json.RawMessage, []content.InputResponse) (any, error) {
		w.add("wait ended")
		return "waited", nil
	}
	return chat(memory{t}, LoopConfig{Concurrent: concurrent}, store, RequireApproval(w.tool("pay")),
		RequireApproval(wait), w.tool("look"))
}

// memory is a model that goes by what it is given, as models do, so
// that it can be asked in any process.
type memory struct{ t testing.TB }

func (m memory) reply(messages []*content.Message) []*content.Message {
	said := tell(messages)
	if strings.Contains(said, "1=pay") {
		return []*content.Message{content.AssistantText("done")}
	}
	return []*content.Message{
		content.NewMessage(content.Assistant, call("1", "pay", ""), call("2", "wait", ""), call("3", "look", "")),
	}
}

func (m memory) Respond(ctx context.Context, messages []*content.Message, opt *Options) (*Response, error) {
	return talk(m.t, saidAll(m.reply(messages)...)).Respond(ctx, messages, opt)
}

func (m memory) Stream(ctx context.Context, messages []*content.Message, opt *Options) streamOf {
	return talk(m.t, saidAll(m.reply(messages)...)).Stream(ctx, messages, opt)
}

// finishScene answers whatever is open until nothing is.
func finishScene(t runner, a Agent, th *Thread) {
	t.Helper()
	for range 5 {
		reply := approvals(th)

		if len(reply.Contents) == 0 {
			break
		}
		t.run(a, th, reply)
	}

	if len(th.Pending()) > 0 {
		t.Fatal("never ends")
	}
	t.say(a, th, "and?")
	if err := strictHistory(th.Messages); err != nil {
		t.Error(err, tell(th.Messages))
	}
}

// TestCrashAtEachSave takes every form that a thread was ever saved in
// as what a dead process left, and goes on from it.
func TestCrashAtEachSave(t *testing.T) {
	for _, concurrent := range []bool{false, true} {
		bothWays(t, func(t runner) {
			w, store := &deeds{}, &keeper{}
			a := crashScene(t, w, store, concurrent)
			th := t.begin(a, "go")
			finishScene(t, a, th)
			if w.count("pay") != 1 || w.count("wait begun") != 1 || w.count("wait ended") != 1 ||
				len(store.saved) < 6 {
				t.Fatal(w.done, len(store.saved))
			}
			lost := 0
			for i, raw := range store.saved {
				// What the dead process did before or after this save
				// is told by its deeds at that time; here only what is
				// begun after the save counts, and none of it may be
				// what the save says was begun before.
				after := &deeds{}
				again := &keeper{saved: [][]byte{raw}}
				left := sure(loaded(raw, "t"))
				begun := map[string]bool{}
				for _, b := range left.batches {
					for _, it := range b.Items {
						begun[it.Call.ToolName()] = it.Stage == running || it.Stage == done
					}
				}
				finishScene(t, crashScene(t, after, again, concurrent), left)
				if begun["pay"] && after.count("pay") > 0 || after.count("pay") > 1 ||
					after.count("wait begun") > 1 ||
					after.count("wait ended") > 1 {
					t.Errorf("save %d: runs again: %v", i, after.done)
				}
				if strings.Contains(tell(left.Messages), textLost) {
					lost++
				}
			}

			if lost == 0 {
				t.Error("no save shows a call that was begun")
			}
		})
	}
}

// TestSaveFails fails each save in turn: whatever failed, no approved
// call runs twice and none is lost without a word.
func TestSaveFails(t *testing.T) {
	broken := errors.New("the disk is full")
	for _, cause := range []error{broken, ErrConflict} {
		for n := 1; n < 9; n++ {
			for _, again := range []string{"goes on", "loads"} {
				bothWaysOf(t, fmt.Sprint(cause, n, again), func(t runner) {
					w, store := &deeds{}, &keeper{failAt: n, err: cause}
					a := crashScene(t, w, store, false)
					th := NewThread("t")
					failed := 0
					for range 12 {
						reply := approvals(th)

						in := []*content.Message{reply}
						switch {
						case len(th.Messages) == 0 && len(th.batches) == 0:
							in[0] = content.UserText("go")
						case len(reply.Contents) == 0:
							in = nil
						}

						if _, err := t.try(a, th, in...); err != nil {
							if failed++; !errors.Is(err, cause) || failed > 1 {
								t.Fatal(err)
							}
							if again == "loads" {
								loaded, err := store.Load(t.Context(), "t")
								if errors.Is(err, ErrNoThread) {
									loaded, err = NewThread("t"), nil
								}
								must.Do(t, err)
								th = loaded
							}
						}

						if strings.Contains(tell(th.Messages), "done") {
							break
						}
					}

					// A process that fails and loads what it had
					// saved may repeat a call only if it never was
					// saved as begun.
					if w.count("pay") > 1 || w.count("wait ended") > 1 || w.count("wait begun") > 1 {
						t.Errorf("twice: %v", w.done)
					}
					if got := tell(th.Messages); w.count("pay") == 1 && !strings.Contains(got, `1→"pay"`) &&
						!strings.Contains(got, `1→"`+textLost) {
						t.Errorf("no word of a call that ran:\n%s", got)
					}
				})
			}
		}
	}
}

func TestCancelledAfterTheCall(t *testing.T) {
	store := &ctxKeeper{}
	ctx, cancel := context.WithCancel(t.Context())
	pay := NewFunction("pay", "", nil, func(context.Context, json.RawMessage) (any, error) {
		cancel()
		return "paid", nil
	})
	k := talk(t, said(call("1", "pay", "")), said(text("ok")), said(text("ok")))
	a := chat(k, LoopConfig{}, store, RequireApproval(pay))
	th, q := runner{T: t}.asks(a, "go")
	a.Run(ctx, th, answers(q.CreateApproval("")))
	th = must.Get(store.Load(t.Context(), "t"))(t)
	mustRun(t, a, th, content.UserText("and?"))
	if !strings.Contains(k.last(), `1→"paid"`) {
		t.Errorf("the result of a call that ended is lost:\n%s", k.last())
	}
}

// ctxKeeper does nothing for a context that is over, as databases do.
type ctxKeeper struct{ keeper }

func (k *ctxKeeper) Save(ctx context.Context, t *Thread) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return k.keeper.Save(ctx, t)
}
