package gateway

import (
	"strings"
	"testing"
)

func TestNoAnswerYet(t *testing.T) {
	h := newHarness(t, nil)
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
