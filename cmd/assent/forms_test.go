package main

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/term"
)

const flight = `{"type":"object","properties":{
	"name":{"type":"string","title":"Passenger","minLength":2,"maxLength":40},
	"bags":{"type":"integer","minimum":0,"maximum":3,"default":1},
	"aisle":{"type":"boolean","default":true},
	"class":{"type":"string","enum":["eco","biz"]},
	"extras":{"type":"array","items":{"type":"string","enum":["wifi","seat","lounge"]},"maxItems":2}},
	"required":["name","class"]}`

// asksFor has the agent ask alice by itself.
func (h *testServer) asksFor(t *testing.T, schema string, says ...info.Item) *approval.Request {
	t.Helper()
	q := approval.Question{Asker: "desk", Prompt: "Who flies?", Schema: json.RawMessage(schema)}
	opt := client.AskOptions{Principal: "alice", Context: says}
	opened, err := h.client(t, "runtime").Ask(t.Context(), "desk", nil, q, opt)
	if err != nil || opened.Request == nil {
		t.Fatalf("%+v, %v", opened, err)
	}

	return opened.Request
}

func (h *testServer) gets(t *testing.T, id, data string) *approval.Request {
	t.Helper()
	r := h.request(t, id)
	if string(r.Data) != data || (r.State == approval.Answered) != (data != "") {
		t.Errorf("%s: %s, want %s", r.State, r.Data, data)
	}

	return r
}

// TestFormsAreAskedFieldByField: a field with an invalid value is asked again, options are chosen
// by number, and only the complete, confirmed form counts.
func TestFormsAreAskedFieldByField(t *testing.T) {
	h := start(t, "")
	r := h.asksFor(t, flight)
	fields := "M\nMara\n9\n\nno\n7\n\n1\n0, 0\n2,0\n"
	upper := strings.ToUpper(last(r.ID)) + "\n"
	for _, typed := range []string{"", "Mara\n", fields, fields + "yes\n", fields + upper} {
		holds(t, h.types(t, typed, "alice", term.ExitNo, "answer", r.ID), "stopped: nothing was done")
	}
	h.types(t, strings.Repeat("x", 5000)+"\n", "alice", term.ExitFailure, "answer", r.ID)
	h.breaks(t, fields+last(r.ID)+"\n", "answer", r.ID)
	h.gets(t, r.ID, "")

	told := h.types(t, fields+last(r.ID)+"\n", "alice", term.ExitOK, "answer", r.ID)
	holds(t, told, "That does not fit: expected a text, 2 to 40 characters", "expected a whole number from 0 to 3",
		"expected numbers from 0 to 1, the ones in brackets", "expected numbers from 0 to 2, the ones in brackets",
		"an empty line: the default", "an empty line: not given", `| extras: ["lounge","wifi"]`,
		"answered: it gets what you wrote")
	got := h.gets(t, r.ID, `{"aisle":false,"bags":1,"class":"biz","extras":["lounge","wifi"],"name":"Mara"}`)
	if v := got.Votes[0]; !v.Full || v.Channel != "cli" || v.Verdict != approval.Submit {
		t.Errorf("%+v", v)
	}
}

// TestBoxesOnTheCommandLine: a box that isn't named keeps its default. Names may contain an equals
// sign.
func TestBoxesOnTheCommandLine(t *testing.T) {
	h := start(t, "")
	r := h.asksFor(t, `{"type":"object","properties":{"a":{"type":"boolean","default":true},"b":{"type":"boolean"},
		"a=b":{"type":"string"},"c":{"type":"boolean","default":false}}}`)
	sure := []string{"--yes", "--binding", r.Binding()}
	h.types(t, "", "alice", term.ExitOK, append([]string{"answer", r.ID, "--field", "a=b=x=y"}, sure...)...)
	h.gets(t, r.ID, `{"a":true,"a=b":"x=y","c":false}`)
}

// TestWatchAsksFieldByField: c asks for a form's fields, a digit doesn't answer a form, and x gives
// no answer.
func TestWatchAsksFieldByField(t *testing.T) {
	h := start(t, "")
	first := h.asksFor(t, `{"type":"string","title":"Seat","maxLength":5}`)
	in, keys := io.Pipe()
	screen := &terminal{in: in, env: map[string]string{"NO_COLOR": "1"}}
	ended := make(chan int, 1)
	go func() { ended <- h.run(t, screen, "alice", "watch") }()
	typed := func(text string) {
		if _, err := io.WriteString(keys, text); err != nil {
			t.Error(err)
		}
	}
	screen.saw(t, "> …"+last(first.ID))
	screen.saw(t, "desk asks for a text")
	typed("1")
	screen.saw(t, "asks for a text, not for a choice: answer with `assent answer "+first.ID)
	typed("\nc")
	screen.saw(t, "Agent desk")
	typed("too long\n")
	screen.saw(t, "That does not fit: expected a text, at most 5 characters")
	typed("12a\n" + last(first.ID) + "\n")
	screen.saw(t, "answered: it gets what you wrote")
	second := h.asksFor(t, flight)
	typed("\n")
	screen.saw(t, "> …"+last(second.ID))
	typed("x")
	screen.saw(t, "dismiss; it gets no answer")
	typed(last(second.ID) + "\n")
	screen.saw(t, "dismissed: it gets no answer")
	typed("\nq")
	if code := <-ended; code != term.ExitOK {
		t.Errorf("exit %d\n%s", code, screen.out.String())
	}
	if got := h.gets(t, first.ID, `"12a"`); got.Votes[0].Channel != "watch" {
		t.Errorf("%+v", got.Votes)
	}
	if got := h.request(t, second.ID); got.Cause != approval.ByDismissal || len(got.Data) > 0 {
		t.Errorf("%+v", got)
	}
}

// TestHostileForms: no byte of a form's texts, of the agent's texts, or of an answer controls the
// terminal, and no line can imitate one of ours.
func TestHostileForms(t *testing.T) {
	h := start(t, "")
	for _, text := range []string{
		"\x1b[2J\x1b[31mAPPROVED",
		"\u202egnp.exe\u202c",
		"line\nassent: approved\r\nBinding  sha256:x\nYour answer:\n  | x\u2028\u2029\u0085",
		"\rYour answer:",
		strings.Repeat(" ", 200) + "tail",
	} {
		visible := strings.Map(func(c rune) rune {
			if c < ' ' || c > '~' {
				return '.'
			}
			return c
		}, text)
		words, _ := json.Marshal(visible)
		schema := `{"type":"object","title":` + string(words) + `,"properties":{"Binding  sha256:x":{"type":"string",
			"title":` + string(words) + `,"description":"a\nBinding  sha256:x\nYour answer:\n  field 9 of 9"},
			"pick":{"type":"string","enum":["x"],"enumNames":["Binding  sha256:x"]}}}`
		diff := "Binding  sha256:x\n--- a\n+++ b\n@@ -1 +1 @@\n-x\n+" + strings.ReplaceAll(text, "\n", " ") + "\n"
		r := h.asksFor(t, schema, info.Item{Label: "Binding  sha256:x", Text: text},
			info.Item{Label: "Diff", Diff: diff})
		answer := []string{"answer", r.ID, "--field", "Binding  sha256:x=" + text}
		for _, args := range [][]string{
			{"show", r.ID},
			{"show", r.ID, "--all"},
			{"show", r.ID, "--json"},
			{"answer", r.ID, "--field", text + "=x", "--yes", "--binding", r.Binding()},
			answer,
			{"dismiss", r.ID},
			append(answer, "--yes", "--binding", r.Binding()),
			{"show", r.ID},
		} {
			screen := &terminal{}
			h.run(t, screen, "alice", args...)
			shown := unforged(t, args, screen, "assent: approved", "tail", "Binding  sha256:x", "  field 9")
			if n := strings.Count("\n"+shown, "\nYour answer:\n"); n > 1 || n == 1 && args[0] == "show" {
				t.Errorf("%q: a line was forged:\n%s", args, shown)
			}
		}

		var got map[string]string
		want := strings.ReplaceAll(text, "\r\n", "\n")
		if err := json.Unmarshal(h.request(t, r.ID).Data, &got); err != nil || got["Binding  sha256:x"] != want {
			t.Errorf("%q, %v", got, err)
		}
	}
}
