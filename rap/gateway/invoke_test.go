package gateway

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/rap/wire"
)

func TestAcceptsOrRefuses(t *testing.T) {
	h := newHarness(t, func(c *Config) { c.MaxBody = 4096 })
	good := `{"operation":"look","arguments":{},"id":"c1","group_id":"t","callback_url":"` + h.runtime.url() + `"}`
	for name, tt := range map[string]struct {
		body string
		want int
	}{
		"nothing":        {"", 400},
		"no JSON":        {"{", 400},
		"a list":         {"[" + good + "]", 400},
		"no callback":    {strings.Replace(good, "callback_url", "callback", 1), 400},
		"no id":          {strings.Replace(good, `"id":"c1"`, `"id":7`, 1), 400},
		"no group":       {strings.Replace(good, `"group_id":"t"`, `"group_id":null`, 1), 400},
		"another origin": {strings.Replace(good, h.runtime.url(), "http://127.0.0.1:9", 1), 403},
		"another scheme": {strings.Replace(good, "http:", "https:", 1), 403},
		"a relative one": {strings.Replace(good, h.runtime.url(), "", 1), 400},
		"too long":       {strings.Replace(good, "{}", `{"x":"`+strings.Repeat("x", 5000)+`"}`, 1), 413},
		"odd arguments":  {strings.Replace(strings.Replace(good, `"c1"`, `"odd"`, 1), "{}", `[]`, 1), 200},
		"odd user": {
			strings.Replace(strings.Replace(good, `"c1"`, `"user"`, 1), "{}", `{},"user_id":7`, 1),
			200,
		},
		"unknown operation": {strings.Replace(strings.Replace(good, `"c1"`, `"unknown"`, 1), "look", "lurk", 1), 200},
	} {
		if code := h.post("/invoke", tt.body); code != tt.want {
			t.Errorf("%s: %d", name, code)
		}
	}

	for _, id := range []string{"odd", "user", "unknown"} {
		if got := h.runtime.result(id); !strings.HasPrefix(got, "Error: ") {
			t.Errorf("%s: %q", id, got)
		}
	}
	req := h.request(h.cfg.PublicURL+"/invoke", good)
	req.Header.Set("Authorization", "Bearer "+callerToken)
	req.Header.Set("Content-Encoding", "gzip")
	if code := h.do(req); code != 415 {
		t.Errorf("encoded: %d", code)
	}
	if strings.Contains(h.logged(), "/cb") || len(h.runtime.results("c1")) != 0 {
		t.Error("the log has a callback's path, or a refused call ended")
	}
}

func TestKnowsRepetitions(t *testing.T) {
	h := newHarness(t, nil)
	for range 3 {
		h.mustInvoke("c1", "write", `{"path":"a"}`)
	}
	q := h.runtime.choice("c1")
	h.mustInvoke("c1", "write", `{"path":"b"}`)
	h.mustInvoke("c1", "look", `{}`)
	h.mustInvoke("c1", "write", `{"path":"a"}`, as("eve"))
	h.runtime.until("three errors", func() bool { return len(h.runtime.results("c1")) == 3 })
	for _, got := range h.runtime.results("c1") {
		if !strings.Contains(got, "another call") {
			t.Errorf("result %q", got)
		}
	}
	if code := h.answer(q, 0); code != 200 {
		t.Fatalf("the first was touched: %d", code)
	}
	h.runtime.until("its result", func() bool { return len(h.runtime.results("c1")) == 4 })
	h.runtime.until("its end", func() bool { return !h.alive("c1") })
	h.mustInvoke("c1", "write", `{"path":"a"}`)
	h.runtime.until("its result again", func() bool { return len(h.runtime.results("c1")) == 5 })
	if got := h.runtime.results("c1"); got[3] != got[4] || h.runs("c1") != 1 || h.runtime.choices("c1") != 1 {
		t.Errorf("%q, %d runs, %d questions", got, h.runs("c1"), h.runtime.choices("c1"))
	}

	h.runtime.until("its end", func() bool { return !h.alive("c1") })
	h.pass(rememberEnded + time.Minute) // nobody remembers it
	h.mustInvoke("c1", "look", `{}`)
	h.runtime.until("a run of its own", func() bool { return h.runs("c1") == 2 })
}

func TestBoundsWhatIsOpen(t *testing.T) {
	h := newHarness(t, func(c *Config) { c.MaxOpen, c.MaxThread = 3, 2 })
	for _, tt := range []struct {
		id, thread string
		want       int
	}{
		{"a", "1", 200},
		{"b", "1", 200},
		{"c", "1", 503},
		{"c", "2", 200},
		{"d", "2", 503},
		{"d", "3", 503},
		{"a", "1", 200},
	} {
		if code := h.invoke(tt.id, "write", `{}`, in(tt.thread)); code != tt.want {
			t.Errorf("%s in %s: %d", tt.id, tt.thread, code)
		}
	}

	h.crash()
	h.runtime.until("that they are counted", func() bool { return h.invoke("e", "write", `{}`, in("4")) == 503 })
	for _, id := range []string{"a", "b", "c"} {
		h.post("/cancel_tool_call", string(wire.CancelCall{ThreadID: map[string]string{
			"a": "1",
			"b": "1",
			"c": "2",
		}[id], ToolCallID: id}.Append(nil)))
		h.runtime.result(id)
	}

	h.runtime.until("room", func() bool { return h.invoke("f", "write", `{}`, in("1")) == 200 })
}

func TestBoundsTheRate(t *testing.T) {
	h := newHarness(t, func(c *Config) {
		c.Rate = 5
		at := time.Now()
		c.Now = func() time.Time { return at }
	})
	codes := map[int]int{}
	for i := range 12 {
		codes[h.invoke(fmt.Sprint("c", i), "look", `{}`)]++
	}
	if codes[200] != 5 || codes[503] != 7 {
		t.Errorf("%v", codes)
	}
}

// Without records nothing is acknowledged, asked, or taken for an answer.
func TestWithoutRecords(t *testing.T) {
	h := newHarness(t, nil)
	h.mustInvoke("c1", "write", `{}`)
	q := h.runtime.choice("c1")
	h.disk.die(0)
	if code := h.invoke("c2", "look", `{}`); code != 503 {
		t.Errorf("invoke: %d", code)
	}
	if code := h.answer(q, 0); code != 503 {
		t.Errorf("answer: %d", code)
	}
	if code := h.post(
		"/cancel_tool_call",
		string(wire.CancelCall{ThreadID: "thread", ToolCallID: "c1"}.Append(nil)),
	); code != 200 {
		t.Errorf("cancel: %d", code)
	}

	h.restart()
	if code := h.postAs(
		"",
		h.cfg.PublicURL+"/answer/"+q.ResponseURL[strings.LastIndex(q.ResponseURL, "/")+1:],
		`{"id":"c1","selected":0}`,
	); code != 200 {
		t.Errorf("the next process: %d", code)
	}

	h.runtime.result("c1")
}
