package gateway

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestAnswersThatAreNone(t *testing.T) {
	h := newHouse(t, nil)
	n := 0
	for name, body := range map[string]string{
		"out of range":   `{"id":"%s","selected":3}`,
		"negative":       `{"id":"%s","selected":-1}`,
		"a fraction":     `{"id":"%s","selected":0.5}`,
		"1.0":            `{"id":"%s","selected":1.0}`,
		"a string":       `{"id":"%s","selected":"0"}`,
		"null":           `{"id":"%s","selected":null}`,
		"missing":        `{"id":"%s"}`,
		"no id":          `{"selected":0}`,
		"another id":     `{"id":"%s0","selected":0}`,
		"names twice":    `{"id":"%s","selected":2,"selected":0}`,
		"another case":   `{"id":"%s","Selected":0}`,
		"no JSON":        `%s`,
		"nothing":        ``,
		"two documents":  `{"id":"%s","selected":0}{}`,
		"a huge integer": `{"id":"%s","selected":18446744073709551616}`,
		"too long":       `{"id":"%s","selected":0,"x":"` + strings.Repeat("x", maxNotice) + `"}`,
	} {
		n++
		id := fmt.Sprint("c", n)
		h.mustInvoke(id, "write", `{}`)
		q := h.runtime.choice(id)
		if strings.Contains(body, "%s") {
			body = fmt.Sprintf(body, id)
		}
		if code := h.postAs("", q.ResponseURL+"0", body); code != 404 {
			t.Errorf("%s, to another address: %d", name, code)
		}
		if code := h.postAs("", q.ResponseURL, body); code != 400 {
			t.Errorf("%s: %d", name, code)
		}
		if got := h.runtime.result(id); !strings.Contains(got, "not valid") {
			t.Errorf("%s: %q", name, got)
		}
		if code := h.answer(q, 0); code != 404 || h.runs(id) != 0 {
			t.Errorf("%s, then an answer: %d, %d runs", name, code, h.runs(id))
		}
	}
}

func TestNoAnswerYet(t *testing.T) {
	h := newHouse(t, nil)
	h.mustInvoke("c1", "write", `{}`)
	q := h.runtime.choice("c1")
	req := h.request(q.ResponseURL, `{"id":"c1","selected":0}`)
	req.Header.Set("Content-Type", "text/plain")
	if code := h.do(req); code != 415 {
		t.Errorf("a form: %d", code)
	}
	for _, token := range []string{"", "/", strings.Repeat("A", 300), "%00", "..%2finvoke"} {
		if code := h.postAs("", "/answer/"+token, `{"id":"c1","selected":0}`); code != 404 {
			t.Errorf("token %.20q: %d", token, code)
		}
	}
	if code := h.answer(q, 0); code != 200 {
		t.Errorf("the answer: %d", code)
	}
	h.runtime.result("c1")
}

func TestWantsAnswersSigned(t *testing.T) {
	h := newHouse(t, func(c *Config) {
		c.Callers[0].AnswersSigned = true
		c.Callers = append(c.Callers, Caller{Name: "second", TokenHash: sum("second"), Callbacks: c.Callers[0].Callbacks})
	})
	h.mustInvoke("c1", "write", `{}`)
	q := h.runtime.choice("c1")
	body := `{"id":"c1","selected":0}`
	for _, token := range []string{"", "second", "other"} {
		if code := h.postAs(token, q.ResponseURL, body); code != 404 {
			t.Errorf("signed by %q: %d", token, code)
		}
	}
	if code := h.postAs(callerToken, q.ResponseURL, body); code != 200 {
		t.Errorf("signed: %d", code)
	}
	h.runtime.result("c1")
}

func TestQuestionsExpire(t *testing.T) {
	h := newHouse(t, nil)
	h.mustInvoke("c1", "write", `{}`)
	q := h.runtime.choice("c1")
	h.pass(10*time.Minute - 30*time.Second)
	h.mustInvoke("c2", "write", `{}`)
	h.runtime.choice("c2")
	if len(h.runtime.results("c1")) != 0 {
		t.Error("it ended too early")
	}
	h.pass(time.Minute)
	if code := h.answer(q, 0); code != 404 {
		t.Errorf("a late answer: %d", code)
	}
	if got := h.runtime.result("c1"); !strings.Contains(got, "in time") || h.runs("c1") != 0 {
		t.Errorf("result %q, %d runs", got, h.runs("c1"))
	}
}

func TestTakesOneAnswer(t *testing.T) {
	h := newHouse(t, nil)
	for round := range 10 {
		id := fmt.Sprint("c", round)
		h.mustInvoke(id, "write", `{}`)
		q := h.runtime.choice(id)
		var all sync.WaitGroup
		codes := make([]int, 6)
		for i := range codes {
			all.Go(func() { codes[i] = h.answer(q, []int{0, 2}[i%2]) })
		}
		all.Wait()
		got := h.runtime.result(id)
		denied := strings.Contains(got, "denied")
		if ran := h.runs(id); ran > 1 || (ran == 1) == denied {
			t.Fatalf("ran %d times, and the result is %q", ran, got)
		}
		for i, code := range codes {
			if (code == 200) != (denied == (i%2 == 1)) {
				t.Errorf("result %q, answer %d: %d", got, i, code)
			}
		}
	}
}
