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

// deeds records the calls that tools ran. It outlives the simulated processes.
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

// crashScene returns an agent with two calls to approve. One of the functions suspends once
// more.
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

// memory is a model that decides from the messages alone, as real models do, so that any
// process can call it.
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

// finishScene answers all open requests until none is left.
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

// TestCrashAtEachSave treats every saved form of a thread as the last save of a process that
// died, and continues from it.
func TestCrashAtEachSave(t *testing.T) {
	for _, concurrent := range []bool{false, true} {
		bothWays(t, func(t runner) {
			w, store := &deeds{}, &keeper{}
			a := crashScene(t, w, store, concurrent)
			th := t.begin(a, "go")
			finishScene(t, a, th)
			if w.count("pay") != 1 || w.count("wait begun") != 1 || w.count("wait ended") != 1 || len(store.saved) < 6 {
				t.Fatal(w.done, len(store.saved))
			}
			lost := 0
			for i, raw := range store.saved {
				// Calls that the dead process ran are already recorded in w. Only calls that
				// begin after the save count here, and none of them may be one that the save
				// marks as begun.
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
				if begun["pay"] && after.count("pay") > 0 || after.count("pay") > 1 || after.count("wait begun") > 1 ||
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

// TestSaveFails makes each save fail in turn. No approved call may run twice, and none may get
// lost without a message.
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

					// A process that fails and loads its last save may repeat a call only if
					// the call was never saved as begun.
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

// ctxKeeper fails if the context has been cancelled, as databases do.
type ctxKeeper struct{ keeper }

func (k *ctxKeeper) Save(ctx context.Context, t *Thread) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return k.keeper.Save(ctx, t)
}
