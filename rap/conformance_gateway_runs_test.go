package rap_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/gateway"
	"github.com/assent-dev/assent/rap/internal/raptest"
	"github.com/assent-dev/assent/resolve"
)

func confT32(t *testing.T) {
	h, r := confGateway(t, func(cfg *gateway.Config) { cfg.RunWithin = 300 * time.Millisecond })
	op := h.ops["read_file"]
	deaf := make(chan struct{})
	defer close(deaf)
	inner := "dial tcp 10.1.2.3:5432: password=hunter2"
	for name, do := range map[string]func(context.Context, rap.Job) (rap.Outcome, error){
		"error": func(context.Context, rap.Job) (rap.Outcome, error) { return rap.Outcome{}, errors.New(inner) },
		"both": func(context.Context, rap.Job) (rap.Outcome, error) {
			return rap.Outcome{Text: inner}, errors.New(inner)
		},
		"panic": func(context.Context, rap.Job) (rap.Outcome, error) { panic(inner) },
		"index": func(_ context.Context, job rap.Job) (rap.Outcome, error) {
			return rap.Outcome{Text: job.Ancestors[len(inner)]}, nil
		},
		"goexit": func(context.Context, rap.Job) (rap.Outcome, error) {
			runtime.Goexit()
			return rap.Outcome{}, nil
		},
		"nil panic, wrapped": func(context.Context, rap.Job) (rap.Outcome, error) {
			panic(fmt.Errorf("wrapped: %w", errors.New(inner)))
		},
		"too long, and deaf": func(context.Context, rap.Job) (rap.Outcome, error) {
			<-deaf
			return rap.Outcome{}, nil
		},
		"too long": func(ctx context.Context, _ rap.Job) (rap.Outcome, error) {
			<-ctx.Done()
			return rap.Outcome{}, fmt.Errorf("%s: %w", inner, ctx.Err())
		},
	} {
		op.does(do)
		c := r.call("read_file", `{"path":"/a"}`).invoke()
		text := c.fails()
		for _, word := range []string{
			"10.1.2.3",
			"hunter2",
			"goroutine",
			".go:",
			"runtime",
			"index out",
			"deadline exceeded",
		} {
			if strings.Contains(text, word) {
				t.Errorf("%s: the result tells %q: %q", name, word, text)
			}
		}
	}

	op.does(func(context.Context, rap.Job) (rap.Outcome, error) {
		return rap.Outcome{}, fmt.Errorf("%s: %w", inner, &rap.PublicError{Text: "no such file: /a"})
	})
	if text := r.call("read_file", `{"path":"/a"}`).invoke().fails(); !strings.Contains(text, "no such file: /a") ||
		strings.Contains(text, "hunter2") {
		t.Errorf("a public error came as %q", text)
	}

	op.does(func(context.Context, rap.Job) (rap.Outcome, error) { return rap.Outcome{}, nil })
	r.call("read_file", `{"path":"/a"}`).invoke().result() // a result has a text, even if it is empty
	op.does(nil)
	h.through(r)
	if strings.Contains(h.said.String(), "ledger") && strings.Contains(ledgerOf(h), "hunter2") {
		t.Error("the ledger tells internals")
	}
}

// ledgerOf returns the recorded events.
func ledgerOf(h *confHarness) string {
	return strings.Join(regexp.MustCompile(`(?m)^ledger .*$`).FindAllString(h.said.String(), -1), "\n")
}

// T33: an acknowledgement waits only for the record, whatever else is slow. Here nothing else
// proceeds until all calls are acknowledged, and there are more of them than may be worked on
// at once.
func confT33(t *testing.T) {
	parts := map[string]func(*testing.T){}
	for name, slow := range map[string]func(*gateway.Config, *confRuntime, *raptest.Desk, chan struct{}){
		"an operation": func(cfg *gateway.Config, _ *confRuntime, _ *raptest.Desk, let chan struct{}) {
			cfg.Operations[2].Run = func(context.Context, rap.Job) (rap.Outcome, error) {
				<-let
				return rap.Outcome{Text: "done"}, nil
			}
		},
		"a plan": func(cfg *gateway.Config, _ *confRuntime, _ *raptest.Desk, let chan struct{}) {
			plan := cfg.Plan
			cfg.Plan = func(ctx context.Context) (*resolve.Plan, error) {
				<-let
				return plan(ctx)
			}
		},
		"a desk": func(cfg *gateway.Config, _ *confRuntime, desk *raptest.Desk, let chan struct{}) {
			cfg.Ask = gateway.AskBoth
			cfg.People = desk
			desk.Stuck = let
		},
		"a ledger": func(cfg *gateway.Config, _ *confRuntime, _ *raptest.Desk, let chan struct{}) {
			cfg.Record = func(context.Context, string, string, string, map[string]any) error {
				<-let
				return nil
			}
		},
		"a runtime": func(_ *gateway.Config, r *confRuntime, _ *raptest.Desk, let chan struct{}) {
			r.answers(func(*confCallback, int) int {
				<-let
				return 200
			})
		},
	} {
		parts[name] = func(t *testing.T) {
			r := newConfRuntime(t, "alpha")
			desk := raptest.NewDesk(t)
			let := make(chan struct{})
			h := confGatewayOf(t, []*confRuntime{r}, func(cfg *gateway.Config) {
				cfg.Records = openRecords(t)
				cfg.Rate = 1 << 20
				cfg.MaxThread = 1 << 20
				slow(cfg, r, desk, let)
			})
			release := sync.OnceFunc(func() { close(let) })
			t.Cleanup(release) // registered later, so it runs before the gateway ends
			calls := map[string]*confCall{}
			for _, id := range loadIDs(150) {
				operation := map[bool]string{true: "read_file", false: "write_file"}[name == "an operation"]
				calls[id] = r.call(operation, confMotd)
			}
			loadEach(loadIDs(150), func(id string) {
				if status := calls[id].post(); status != http.StatusOK {
					t.Errorf("%s: %d", id, status)
				}
			})
			if all, _ := r.found(func(*confCallback) bool { return true }); len(all) > 0 {
				t.Errorf("nothing was held up:\n%s", r.heard())
			}
			release()
			if h.cfg.People != nil {
				for n := range len(calls) {
					desk.Decide(n+1, hold.Approved, "")
				}
			}
			for _, c := range calls {
				c.await("what becomes of the call", 1, c.of(""))
			}
		}
	}
	confSoon(t, parts)
}

func confT34(t *testing.T) {
	runtimes := []*confRuntime{newConfRuntime(t, "alpha"), newConfRuntime(t, "beta"), newConfRuntime(t, "gamma")}
	h := confGatewayOf(t, runtimes)
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			r := runtimes[i%len(runtimes)]
			operation := "write_file"
			if i%5 == 4 {
				operation = "read_file"
			}
			arguments := fmt.Sprintf(`{"path":"/%d"}`, i)
			c := r.call(operation, arguments).with(func(in *confInvocation) {
				in.GroupID, in.ID = fmt.Sprint("thread-", i%7), fmt.Sprint("call_", i/3)
			})
			if status := c.post(); status != http.StatusOK {
				t.Errorf("%d: %d", i, status)
				return
			}
			want := "done " + arguments
			if operation == "write_file" {
				late := c.await("a question", 1, c.of("user_choice"))
				switch i % 5 {
				case 0, 3:
					c.answer(late, 0)
				case 1:
					c.answer(late, *late.Default)
					want = "denied"
				case 2:
					c.answer(late, 17)
					want = "error"
				}
			}

			confEnds(t, c, want)
		})
	}

	wg.Wait()
	h.through(runtimes[0])
	h.ran("write_file", 40)
	for i, r := range runtimes {
		all, _ := r.found(func(cb *confCallback) bool { return cb.Type == "tool_result" })
		if want := []int{35, 33, 33}[i]; len(all) != want { // a third of a hundred, and the barrier
			t.Errorf("%s got %d results, want %d", r.name, len(all), want)
		}
	}
}

// confEnds checks how a call ends. It may be called from any goroutine.
func confEnds(t *testing.T, c *confCall, want string) {
	cb := c.await("a result", 1, c.of("tool_result"))
	text := *cb.Text
	ok := text == want
	switch want {
	case "denied":
		ok = strings.HasPrefix(text, "Error: ") && confDenies(text)
	case "error":
		ok = strings.HasPrefix(text, "Error: ")
	}

	if !ok || cb.ID != c.in.ID || cb.GroupID != c.in.GroupID || c.count("tool_result") != 1 {
		t.Errorf("%s in %s ended as %s in %s with %q, want %q", c.in.ID, c.in.GroupID, cb.ID, cb.GroupID, text, want)
	}
}

func confT35(t *testing.T) {
	h, r := confGateway(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.cfg.PublicURL+"/.well-known/rap-toolset", nil)
	must.Do(t, err)
	req.Header.Set("Authorization", "Bearer "+r.token)
	answer := must.Get(r.client.Do(req))(t)
	defer answer.Body.Close()
	kind := answer.Header.Get("Content-Type")
	var m struct {
		Name           *string `json:"name"`
		Endpoint       string  `json:"endpoint"`
		NeedsMigration bool    `json:"needsMigration"`
		Tools          []struct {
			Name        string                     `json:"name"`
			Description *string                    `json:"description"`
			InputSchema map[string]json.RawMessage `json:"inputSchema"`
			Annotations map[string]any             `json:"annotations"`
		} `json:"tools"`
	}
	must.Do(t, json.NewDecoder(answer.Body).Decode(&m))
	endpoint, err := url.Parse(m.Endpoint)
	if answer.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "application/json") || err != nil ||
		!endpoint.IsAbs() ||
		endpoint.Host != h.address {
		t.Errorf("%d %s, endpoint %q", answer.StatusCode, kind, m.Endpoint)
	}
	if m.Name == nil || *m.Name != "toolkeeper" || m.NeedsMigration || len(m.Tools) != len(h.cfg.Operations) {
		t.Errorf("%+v", m)
	}
	seen := map[string]bool{}
	for i, tool := range m.Tools {
		op := h.cfg.Operations[i]
		if tool.Name != op.Name || seen[tool.Name] ||
			!regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`).MatchString(tool.Name) {
			t.Errorf("tool %d is %q", i, tool.Name)
		}
		seen[tool.Name] = true
		if tool.Description == nil || *tool.Description != op.Description ||
			string(tool.InputSchema["type"]) != `"object"` {
			t.Errorf("%s: %v %s", tool.Name, tool.Description, tool.InputSchema)
		}
		if destructive, _ := tool.Annotations["destructive"].(bool); destructive != op.Destructive {
			t.Errorf("%s: annotations %v", tool.Name, tool.Annotations)
		}
		if readOnly, _ := tool.Annotations["readOnly"].(bool); readOnly != op.ReadOnly {
			t.Errorf("%s: annotations %v", tool.Name, tool.Annotations)
		}
	}

	if status, _ := r.send(
		http.MethodPost,
		h.cfg.PublicURL+"/.well-known/rap-toolset",
		[]byte(`{}`),
	); status != http.StatusMethodNotAllowed {
		t.Errorf("POST to discovery: %d", status)
	}

	h.through(r) // the endpoint works
}
