package gateway

import (
	"strings"
	"testing"
)

func TestAsksAndRunsOnce(t *testing.T) {
	h := newHouse(t, nil)
	args := `{ "path":"/etc/motd",  "n":1.0}`
	h.mustInvoke("c1", "write", args)
	q := h.runtime.choice("c1")
	if q.Default != len(q.Choices)-1 || q.Choices[q.Default] != "Deny" || len(q.Choices) != 3 {
		t.Fatalf("choices %q, default %d", q.Choices, q.Default)
	}
	if h.runs("c1") != 0 {
		t.Fatal("it ran before anybody answered")
	}
	if code := h.answer(q, 0); code != 200 {
		t.Fatalf("answer: %d", code)
	}
	if got := h.runtime.result("c1"); got != "did write "+args {
		t.Errorf("result %q", got)
	}
	for index, want := range map[int]int{0: 200, 2: 404} {
		if code := h.answer(q, index); code != want {
			t.Errorf("answer %d again: %d", index, code)
		}
	}
	if h.runs("c1") != 1 {
		t.Errorf("ran %d times", h.runs("c1"))
	}
	t.Log(q.Prompt, q.Choices)
}

func TestEnds(t *testing.T) {
	h := newHouse(t, nil)
	for name, tt := range map[string]struct{ op, args, want string }{
		"allowed":       {"look", `{"a":1}`, `did look {"a":1}`},
		"denied":        {"burn", `{}`, "Nothing is burnt."},
		"two people":    {"pay", `{"amount":9001}`, "other people"},
		"unknown":       {"other", `{}`, "Error: unknown operation"},
		"bad arguments": {"pay", `{"amount":"1"}`, "Error: the arguments do not fit"},
	} {
		h.mustInvoke(name, tt.op, tt.args)
		if got := h.runtime.result(name); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
