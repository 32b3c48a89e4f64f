package rap_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/rap/gateway"
)

// confUnreadable returns bodies that must not be accepted as an answer; %[1]s is the call's id
// as JSON. FuzzAnswer and package wire cover more.
func confUnreadable() map[string]string {
	return map[string]string{
		"negative":             `{"id":%[1]s,"selected":-1}`,
		"a string":             `{"id":%[1]s,"selected":"0"}`,
		"selected in capitals": `{"id":%[1]s,"Selected":0}`,
		"id of another call":   `{"id":"call_999","selected":0}`,
		"selected twice":       `{"id":%[1]s,"selected":0,"selected":0}`,
		"nothing":              ``,
		"too long":             `{"id":%[1]s,"selected":0,"x":"` + strings.Repeat("x", 64<<10) + `"}`,
	}
}

func confT6(t *testing.T) {
	h, r := confGateway(t)
	for name, form := range confUnreadable() {
		c, q := r.asked()
		body := form
		if strings.Contains(form, "%") {
			body = fmt.Sprintf(form, confJSON(t, q.ID))
		}
		wrong := *q
		wrong.ResponseURL = strings.TrimSuffix(q.ResponseURL, q.secret()) + strings.Repeat("A", len(q.secret()))
		if status := c.answerRaw(&wrong, body); !confGone(status) {
			t.Errorf("%s, under a wrong token: %d", name, status)
		}
		if !r.alive(c.in.GroupID, c.in.ID) || c.count("tool_result") != 0 {
			t.Errorf("%s, under a wrong token, ended the call", name)
		}
		if status := c.answerRaw(q, body); status == 0 || status >= 500 {
			t.Errorf("%s: %d", name, status)
		}
		c.fails()
		c.refuses(q)
	}

	t.Run("a denial with an allowance in capitals", func(t *testing.T) {
		c, q := r.asked()
		c.answerRaw(q, fmt.Sprintf(`{"id":%q,"selected":%d,"Selected":0,"ſelected":0}`, q.ID, *q.Default))
		c.fails()
	})
	t.Run("unknown fields", func(t *testing.T) {
		c, q := r.asked()
		if status := c.answerRaw(
			q,
			fmt.Sprintf(`{"type":"x","id":%q,"by":{"selected":1},"selected":%d}`, q.ID, *q.Default),
		); status != 200 {
			t.Errorf("status %d", status)
		}

		if text := c.fails(); !confDenies(text) {
			t.Errorf("not taken as the denial that it is: %q", text)
		}
	})
	h.ran("write_file", 0)
}

func confT7(t *testing.T) {
	h, r := confGateway(t)
	open := h.ops["write_file"].block()
	c, q := r.asked()
	again := func(when string) {
		t.Helper()
		if status := c.answer(q, 0); status != http.StatusOK && status != http.StatusGone {
			t.Errorf("the same answer %s: %d", when, status)
		}
	}
	c.picks(q, 0)
	h.ops["write_file"].begun(t, 1)
	again("during the run")
	open()
	c.result()
	again("after the result")

	c2, q2 := r.asked()
	var wg sync.WaitGroup
	var taken atomic.Int64
	for range 16 {
		wg.Go(func() {
			if c2.answer(q2, 0) == http.StatusOK {
				taken.Add(1)
			}
		})
	}

	wg.Wait()
	c2.result()
	if taken.Load() == 0 {
		t.Error("sixteen answers at once, and none was taken")
	}
	h.through(r)
	h.ran("write_file", 2)
	if c.count("tool_result") != 1 || c2.count("tool_result") != 1 {
		t.Errorf("sent:\n%s", r.heard())
	}
}

func confT8(t *testing.T) {
	h, r := confGateway(t)
	deny, q := r.asked()
	deny.picks(q, *q.Default)
	if status := deny.answer(q, 0); status/100 == 5 {
		t.Errorf("status %d", status)
	}
	if text := deny.fails(); !confDenies(text) {
		t.Errorf("the denial came first, the result is %q", text)
	}
	deny.answer(q, 0)

	allow, q := r.asked()
	allow.picks(q, 0)
	allow.answer(q, *q.Default)
	allow.answerRaw(q, `{"nothing":"readable"}`)
	if got := allow.result(); got != "done "+confMotd {
		t.Errorf("the allowance came first, the result is %q", got)
	}

	// Both at once: only one counts, and the result shows which.
	ran := 1
	for range 10 {
		c, q := r.asked()
		var wg sync.WaitGroup
		for _, k := range []int{0, *q.Default} {
			wg.Go(func() { c.answer(q, k) })
		}
		wg.Wait()
		if text := c.result(); text == "done "+confMotd {
			ran++
		} else if !confDenies(text) {
			t.Errorf("the result is %q", text)
		}
	}

	h.through(r)
	h.ran("write_file", ran)
}

func confT9(t *testing.T) {
	h, r := confGateway(t)
	expired, dead := r.asked()
	h.clock.pass(11 * time.Minute)
	expired.fails()

	c, q := r.asked()
	base := strings.TrimSuffix(q.ResponseURL, q.secret())
	other, foreign := r.asked()
	telling := map[string]string{}
	for name, to := range map[string]string{
		"unknown":  base + "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567ABCDEFGHIJKLMNOPQRST",
		"cut":      q.ResponseURL[:len(q.ResponseURL)-1],
		"longer":   q.ResponseURL + "A",
		"lower":    base + strings.ToLower(q.secret()),
		"the id":   base + c.in.ID,
		"none":     base,
		"dots":     base + "x/../" + q.ID,
		"long":     base + strings.Repeat("A", 3000),
		"expired":  dead.ResponseURL,
		"as query": base + "?" + q.secret(),
		"a star":   base + "*",
	} {
		if to == q.ResponseURL { // a token without upper-case letters
			continue
		}
		for _, body := range []string{
			fmt.Sprintf(`{"id":%q,"selected":0}`, c.in.ID),
			fmt.Sprintf(`{"id":%q,"selected":77}`, c.in.ID),
			`{`,
		} {
			status, text := c.send(http.MethodPost, to, []byte(body))
			if !confGone(status) && status != http.StatusMethodNotAllowed {
				t.Errorf("%s: %d", name, status)
			}
			if strings.Contains(text, c.in.ID) || strings.Contains(text, "thread-1") ||
				strings.Contains(text, "write_file") {
				t.Errorf("%s tells %q", name, text)
			}
			if before, ok := telling[name]; ok && before != fmt.Sprint(status, text) {
				t.Errorf("%s: the answer depends on the body: %q and %d %q", name, before, status, text)
			}
			telling[name] = fmt.Sprint(status, text)
		}
	}

	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete} {
		if status, _ := c.send(
			method,
			q.ResponseURL,
			[]byte(fmt.Sprintf(`{"id":%q,"selected":0}`, c.in.ID)),
		); !confRefused(status) {
			t.Errorf("%s: %d", method, status)
		}
	}

	h.through(r)
	if c.count("tool_result")+other.count("tool_result") != 0 || !r.alive(c.in.GroupID, c.in.ID) {
		t.Fatalf("the call was touched:\n%s", r.heard())
	}
	// The token of one call ends that call, even if the body names another.
	other.answerRaw(foreign, fmt.Sprintf(`{"id":%q,"selected":0}`, c.in.ID))
	other.fails()
	c.picks(q, 0)
	c.result()
	h.through(r)
	h.ran("write_file", 1)
}

func confT31(t *testing.T) {
	r, child := newConfRuntime(t, "alpha"), newConfRuntime(t, "child")
	h := confGatewayOf(t, []*confRuntime{r, child}, func(cfg *gateway.Config) { cfg.Callers[0].AnswersSigned = true })
	c, q := r.asked()
	// Everything that a sandboxed child knows: the address of the gateway, the call, its own
	// credentials.
	body := []byte(fmt.Sprintf(`{"id":%q,"selected":0}`, c.in.ID))
	root := strings.TrimRight(h.cfg.PublicURL, "/")
	for _, to := range []string{
		root + "/answer",
		root + "/answer/",
		root + "/answer/" + c.in.ID,
		root + "/answer/" + c.in.GroupID + "/" + c.in.ID,
		root + "/user_choice_response",
		root + "/answer/0",
		root + "/answer?id=" + c.in.ID,
	} {
		for _, who := range []*confRuntime{child, r} {
			if status, _ := who.send(http.MethodPost, to, body); !confRefused(status) {
				t.Errorf("%s: %d", strings.TrimPrefix(to, root), status)
			}
		}
	}

	// This caller's answers are signed, too: the URL alone, or with another's credentials, is
	// not enough.
	for name, token := range map[string]string{
		"no bearer":          "",
		"a wrong bearer":     "Bearer nobody",
		"the child's bearer": "Bearer " + child.token,
	} {
		status, _ := c.send(http.MethodPost, q.ResponseURL, body, func(req *http.Request) {
			req.Header.Del("Authorization")
			if token != "" {
				req.Header.Set("Authorization", token)
			}
		})
		if !confRefused(status) {
			t.Errorf("%s: %d", name, status)
		}
	}

	if status, _ := c.send(http.MethodPost, q.ResponseURL, body, func(req *http.Request) {
		req.Header.Set("Content-Type", "text/plain")
	}); status != http.StatusUnsupportedMediaType {
		t.Errorf("a form: %d", status)
	}

	h.through(r)
	if c.count("tool_result") != 0 || !r.alive(c.in.GroupID, c.in.ID) || child.alive(c.in.GroupID, c.in.ID) {
		t.Fatalf("the call was touched, or shown to the child:\n%s", r.heard())
	}
	c.picks(q, 0)
	c.result()

	// If answers need no signature, the token in the URL is enough.
	own, q := child.asked()
	status, _ := own.send(
		http.MethodPost,
		q.ResponseURL,
		[]byte(fmt.Sprintf(`{"id":%q,"selected":0}`, own.in.ID)),
		func(req *http.Request) {
			req.Header.Del("Authorization")
		},
	)
	if status != http.StatusOK {
		t.Errorf("an answer without a bearer: %d", status)
	}
	own.result()
	if len(q.secret()) < 22 { // 128 bits in base64
		t.Errorf("a token of %d characters", len(q.secret()))
	}
	h.ran("write_file", 2)
}
