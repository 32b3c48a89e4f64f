package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/a2a"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/filestore"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
)

func copyTo(w io.Writer, resp *http.Response) (int64, error) { return io.Copy(w, resp.Body) }

// asked returns the only question of a response.
func asked(t *testing.T, resp *agent.Response) *content.TextApprovalRequest {
	t.Helper()
	all := resp.UserInputRequests()
	if len(all) != 1 {
		t.Fatalf("%d questions, said %q", len(all), resp.Text())
	}
	q, ok := all[0].(*content.TextApprovalRequest)
	if !ok {
		t.Fatalf("the question is a %T", all[0])
	}
	return q
}

// TestRemoteAsks lets a remote agent ask over HTTP. Another process of the local agent answers,
// with only the thread and the task id.
func TestRemoteAsks(t *testing.T) {
	for _, yes := range []bool{true, false} {
		t.Run(fmt.Sprint(yes), func(t *testing.T) {
			w := newWorld(t, true)
			store := must.Get(filestore.New(t.TempDir()))(t)
			thread := agent.NewThread("t1")
			thread.Keep(store)
			resp := must.Get(w.planner(a2a.RemoteConfig{}).Run(t.Context(), thread, content.UserText("Go.")))(t)
			q := asked(t, resp)
			if !strings.Contains(q.Text, `sell?`) || !strings.Contains(q.Text, `{"amount":5}`) || w.tool.runs() != 0 {
				t.Fatalf("the user is asked %q after %d runs", q.Text, w.tool.runs())
			}

			loaded := must.Get(store.Load(t.Context(), "t1"))(t)
			answer, want := content.Content(q.CreateApproval("")), `\"sold\"`
			runs := 1
			if !yes {
				answer, want = q.CreateRejection("too dear"), "rejected. too dear"
				runs = 0
			}

			next := w.planner(a2a.RemoteConfig{})
			resp = must.Get(next.Run(t.Context(), loaded, content.NewMessage(content.User, answer)))(t)
			told := strings.ReplaceAll(resp.Text(), `\`, "")
			if !strings.Contains(told, `"state":"completed"`) || !strings.Contains(resp.Text(), want) {
				t.Errorf("the planner says %s", told)
			}
			if w.tool.runs() != runs {
				t.Errorf("the tool ran %d times", w.tool.runs())
			}
		})
	}
}

func TestAMessageIdStandsForOneMessage(t *testing.T) {
	w := newWorld(t, false)
	c := w.client(hers)
	var all sync.WaitGroup
	ids := make([]string, 16)
	for i := range ids {
		all.Go(func() {
			task, err := c.Send(t.Context(), text("m1", "Sell."))
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = task.ID
		})
	}

	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("tasks %q", ids)
		}
	}
	done := w.reach(c, ids[0], a2a.Completed)
	if w.tool.runs() != 1 || done.Text() != `it gave "sold"` {
		t.Errorf("%d runs, said %q", w.tool.runs(), done.Text())
	}
	_, err := c.Send(t.Context(), text("m1", "Sell more."))
	wantRefusal(t, err, codeParams)
	again := text("m2", "Sell.")
	again.TaskID = done.ID
	_, err = c.Send(t.Context(), again)
	wantRefusal(t, err, codeUnsupported)
}

func wantRefusal(t *testing.T, err error, code int) *a2a.PeerError {
	t.Helper()
	var refused *a2a.PeerError
	if !errors.As(err, &refused) || refused.Code != code || refused.Message == "" {
		t.Fatalf("error %v, want code %d", err, code)
	}
	return refused
}

func TestTasksAreTheirCallersOwn(t *testing.T) {
	w := newWorld(t, true)
	ann, bob := w.client(hers), w.client(other)
	task := must.Get(ann.Send(t.Context(), text("m1", "Sell.")))(t)
	w.reach(ann, task.ID, a2a.InputRequired)
	_, err := bob.Task(t.Context(), task.ID)
	wantRefusal(t, err, a2a.CodeTaskNotFound)
	_, err = bob.Cancel(t.Context(), task.ID)
	wantRefusal(t, err, a2a.CodeTaskNotFound)
	answer := text("m2", "yes")
	answer.TaskID = task.ID
	_, err = bob.Send(t.Context(), answer)
	wantRefusal(t, err, a2a.CodeTaskNotFound)
	if same := must.Get(bob.Send(t.Context(), text("m1", "Sell.")))(t); same.ID == task.ID {
		t.Error("two callers have one task")
	}
	_, err = w.client("token-of-nobody").Task(t.Context(), task.ID)
	wantRefusal(t, err, http.StatusUnauthorized)
	if code, _ := post(t, w.url, "", "{}"); code != http.StatusUnauthorized {
		t.Errorf("status %d without a token", code)
	}
}

func TestATextApprovesNothing(t *testing.T) {
	w := newWorld(t, true)
	c := w.client(hers)
	task := must.Get(c.Send(t.Context(), text("m1", "Sell.")))(t)
	w.reach(c, task.ID, a2a.InputRequired)
	yes := text("m2", "yes, I approve")
	yes.TaskID = task.ID
	_, err := c.Send(t.Context(), yes)
	wantRefusal(t, err, codeParams)
	w.reach(c, task.ID, a2a.InputRequired)
	if w.tool.runs() != 0 {
		t.Error("a text has approved")
	}
}

func TestCancel(t *testing.T) {
	w := newWorld(t, false)
	w.tool.wait = make(chan struct{}) // blocks forever
	c := w.client(hers)
	task := must.Get(c.Send(t.Context(), text("m1", "Sell.")))(t)
	testwait.Until(t, "the tool runs", func() bool { return w.tool.runs() == 1 })
	if got := must.Get(c.Cancel(t.Context(), task.ID))(t); got.Status.State != a2a.Canceled {
		t.Errorf("the task is %s", got.Status.State)
	}
	_, err := c.Cancel(t.Context(), task.ID)
	wantRefusal(t, err, codeNotCancelable)
}

// TestARunGoesOnInAnotherProcess ends a host in the middle of a run, as a killed process does.
// The next request for the task continues the run.
func TestARunGoesOnInAnotherProcess(t *testing.T) {
	w := newWorld(t, false)
	w.tool.wait = make(chan struct{})
	task := must.Get(w.client(hers).Send(t.Context(), text("m1", "Sell.")))(t)
	testwait.Until(t, "the tool runs", func() bool { return w.tool.runs() == 1 })
	w.a2a.Close()
	close(w.tool.wait)
	w.serve(config(w.agent, w.store))
	if got := w.reach(w.client(hers), task.ID, a2a.Completed); got.Text() != `it gave "sold"` {
		t.Errorf("said %q", got.Text())
	}
}

// TestARunThatHadEndedIsNotRunAgain lets the process die between the agent's last save and the
// host's save.
func TestARunThatHadEndedIsNotRunAgain(t *testing.T) {
	w := newWorld(t, false)
	cfg := config(w.agent, w.store)
	cfg.Store = &dying{ThreadStore: w.store}
	w.serve(cfg)
	task := must.Get(w.client(hers).Send(t.Context(), text("m1", "Sell.")))(t)
	testwait.Until(t, "the run ends", func() bool { return w.a2a.running(threadID("a2a", "ann", task.ID)) == nil })
	w.serve(config(w.agent, w.store))
	if got := w.reach(w.client(hers), task.ID, a2a.Completed); got.Text() != `it gave "sold"` {
		t.Errorf("said %q", got.Text())
	}
	if w.tool.runs() != 1 {
		t.Errorf("the tool ran %d times", w.tool.runs())
	}
}

// dying fails to save a task that has ended.
type dying struct{ agent.ThreadStore }

func (d *dying) Save(ctx context.Context, t *agent.Thread) error {
	if strings.Contains(string(t.State[recordKey]), string(a2a.Completed)) {
		return errors.New("killed")
	}
	return d.ThreadStore.Save(ctx, t)
}

func TestBadCalls(t *testing.T) {
	w := newWorld(t, false)
	rpc := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
	}
	said := `{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}`
	for body, code := range map[string]int{
		`{`: codeParse,
		`{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"GetTask","params":{}}`: codeParse,
		`[]`: codeParse,
		`{"jsonrpc":"1.0","id":1,"method":"GetTask","params":{}}`:                         codeRequest,
		`{"jsonrpc":"2.0","method":"GetTask","params":{}}`:                                codeRequest,
		rpc("message/send", `{}`):                                                         codeMethod,
		rpc("GetTask", `{}`):                                                              codeParams,
		rpc("GetTask", `{"id":"task-1"}`):                                                 a2a.CodeTaskNotFound,
		rpc("SendMessage", `{}`):                                                          codeParams,
		rpc("SendMessage", `{"message":{"messageId":"m","role":"ROLE_USER"}}`):            codeParams,
		rpc("SendMessage", `{"message":`+strings.Replace(said, "USER", "AGENT", 1)+`}`):   codeParams,
		rpc("SendMessage", `{"message":`+strings.Replace(said, `"text"`, `"url"`, 1)+`}`): codeContentType,
		rpc("SubscribeToTask", `{"id":"x"}`):                                              a2a.CodeTaskNotFound,
		rpc("SendMessage", `{"message":"`+strings.Repeat("x", 1<<20)+`"}`):                codeRequest,
	} {
		status, got := post(t, w.url, hers, body)
		var out struct {
			Error struct {
				Code    int
				Message string
			}
		}
		must.Do(t, json.Unmarshal([]byte(got), &out))
		if status != http.StatusOK || out.Error.Code != code || out.Error.Message == "" {
			t.Errorf("%.100s: %d %.200s, want %d", body, status, got, code)
		}
	}

	if w.tool.runs() != 0 {
		t.Error("a bad call ran something")
	}
}

func TestAnOlderVersionIsRefusedByName(t *testing.T) {
	w := newWorld(t, false)
	for _, version := range []string{"", "0.3", "2.0", "1.00"} {
		body := `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"task-1"}}`
		req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, w.url, strings.NewReader(body)))(t)
		req.Header.Set("Authorization", "Bearer "+hers)
		req.Header.Set("A2A-Version", version)
		resp := must.Get(http.DefaultClient.Do(req))(t)
		text := must.Get(io.ReadAll(resp.Body))(t)
		resp.Body.Close()
		if !strings.Contains(string(text), `"code":-32009`) || !strings.Contains(string(text), "A2A-Version: 1.0") {
			t.Errorf("%q: %s", version, text)
		}
	}
}

func TestStream(t *testing.T) {
	w := newWorld(t, false)
	body := `{"jsonrpc":"2.0","id":"s","method":"SendStreamingMessage","params":` +
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"Sell."}]}}}`
	_, got := post(t, w.url, hers, body)
	var kinds []string
	for line := range strings.Lines(got) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok {
			continue
		}
		var out struct{ Result map[string]json.RawMessage }
		must.Do(t, json.Unmarshal([]byte(data), &out))
		for kind := range out.Result {
			kinds = append(kinds, kind)
		}
	}

	if strings.Join(kinds, " ") != "task artifactUpdate statusUpdate" ||
		!strings.Contains(got, "TASK_STATE_COMPLETED") {
		t.Errorf("told %v:\n%s", kinds, got)
	}
}

func TestManyRuns(t *testing.T) {
	w := newWorld(t, false)
	w.tool.wait = make(chan struct{})
	cfg := config(w.agent, w.store)
	cfg.MaxRuns = 1
	cfg.RunFor = time.Minute
	w.serve(cfg)
	c := w.client(hers)
	first := must.Get(c.Send(t.Context(), text("m1", "Sell.")))(t)
	_, err := c.Send(t.Context(), text("m2", "Sell."))
	wantRefusal(t, err, codeInternal)
	close(w.tool.wait)
	w.reach(c, first.ID, a2a.Completed)
}
