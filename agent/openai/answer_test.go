package openai

import (
	"errors"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/must"

	"pgregory.net/rapid"
)

func TestUnreadableChat(t *testing.T) {
	for name, src := range map[string]string{
		"no JSON":           `{`,
		"no object":         `[]`,
		"duplicate":         `{"id":"a","id":"b"}`,
		"lone surrogate":    `{"id":"\ud800"}`,
		"mistyped id":       `{"id":7}`,
		"choices":           `{"choices":{}}`,
		"choice":            `{"choices":[7]}`,
		"null choice":       `{"choices":[null]}`,
		"second choice":     `{"choices":[{"index":1,"message":{}}]}`,
		"no finish reason":  `{"choices":[{"message":{"content":"x"}}]}`,
		"nothing":           `{}`,
		"role":              `{"choices":[{"message":{"role":"user","content":"x"},"finish_reason":"stop"}]}`,
		"content":           `{"choices":[{"message":{"content":["x"]},"finish_reason":"stop"}]}`,
		"old function call": `{"choices":[{"message":{"function_call":{}},"finish_reason":"stop"}]}`,
		"custom call": `{"choices":[{"message":{"tool_calls":[{"id":"a","type":"custom"}]},` +
			`"finish_reason":"stop"}]}`,
		"call without id": `{"choices":[{"message":{"tool_calls":[{"function":{"name":"f"}}]},` +
			`"finish_reason":"stop"}]}`,
		"call without name": `{"choices":[{"message":{"tool_calls":[{"id":"a","function":{}}]},` +
			`"finish_reason":"stop"}]}`,
		"arguments": `{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{}}` +
			`}]},"finish_reason":"stop"}]}`,
		"two ids": `{"choices":[{"message":{"tool_calls":[{"index":0,"id":"a"},{"index":0,"id":"b"}]},` +
			`"finish_reason":"stop"}]}`,
		"usage": `{"usage":{"total_tokens":"1"},"choices":[{"message":{"content":"x"},` + `"finish_reason":"stop"}]}`,
	} {
		unread(t, name, &chatAnswer{}, src)
	}
}

func TestUnreadableResponses(t *testing.T) {
	for name, src := range map[string]string{
		"no JSON":           `x`,
		"nothing":           `{}`,
		"queued":            `{"status":"queued","output":[]}`,
		"output":            `{"status":"completed","output":7}`,
		"item without type": `{"status":"completed","output":[{}]}`,
		"call without id":   `{"status":"completed","output":[{"type":"function_call","name":"f","arguments":"{}"}]}`,
		"arguments": `{"status":"completed","output":[{"type":"function_call","call_id":"a","name":"f",` +
			`"arguments":{}}]}`,
		"user's message": `{"status":"completed","output":[{"type":"message","role":"user","content":[]}]}`,
		"unknown part": `{"status":"completed","output":[{"type":"message","role":"assistant",` +
			`"content":[{"type":"hologram"}]}]}`,
		"request, no id": `{"status":"completed","output":[{"type":"mcp_approval_request","name":"f",` +
			`"server_label":"s"}]}`,
		"request, no label": `{"status":"completed","output":[{"type":"mcp_approval_request","id":"r","name":"f"}]}`,
		"MCP error": `{"status":"completed","output":[{"type":"mcp_call","id":"r","name":"f",` +
			`"server_label":"s","error":7}]}`,
		"usage": `{"status":"completed","output":[],"usage":[]}`,
	} {
		unread(t, name, responses{}.answer(&agent.Options{}), src)
	}
}

func unread(t *testing.T, name string, a answer, src string) {
	t.Helper()
	updates, err := a.whole([]byte(src))
	var got *content.BadError
	if !errors.As(err, &got) || updates != nil {
		t.Errorf("%s: got %v, %v", name, updates, err)
	}
	if !strings.HasPrefix(unreadable(err).Error(), "openai: the answer: ") {
		t.Errorf("%s: got %v", name, unreadable(err))
	}
}

func TestUnreadableEvents(t *testing.T) {
	for name, events := range map[string][]string{
		"no JSON": {`{`},
		"text that changes": {`{"type":"response.output_text.delta","item_id":"m","delta":"No"}`,
			`{"type":"response.output_item.done","item":{"type":"message","id":"m","role":"assistant",` +
				`"content":[{"type":"output_text","text":"Yes"}]}}`},
		"item is no object": {`{"type":"response.output_item.done","item":[]}`},
		"no item":           {`{"type":"response.output_item.done"}`},
		"items left out": {
			`{"type":"response.completed","response":{"id":"r","status":"completed",` +
				`"output":[{"type":"function_call"}]}}`,
		},
		"completed, queued":  {`{"type":"response.completed","response":{"status":"queued","output":[]}}`},
		"output is a string": {`{"type":"response.completed","response":{"status":"completed","output":"x"}}`},
	} {
		a := responses{}.answer(&agent.Options{})
		var err error
		for _, e := range events {
			_, _, err = a.event([]byte(e))
		}
		var got *content.BadError
		if !errors.As(err, &got) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestReportedFailures(t *testing.T) {
	for src, want := range map[string]StatusError{
		`{"type":"error","error":{"type":"invalid_request_error","code":"bad","message":"no","param":"input"}}`: {
			Type:    "invalid_request_error",
			Code:    "bad",
			Message: "no",
			Param:   "input",
		},
		`{"type":"error","code":null,"message":"no"}`: {Message: "no"},
		`{"type":"error","code":{"x":1},"message":7}`: {Code: `{"x":1}`},
	} {
		_, over, err := responses{}.answer(&agent.Options{}).event([]byte(src))
		var got *StatusError
		if !errors.As(err, &got) || *got != want || !over {
			t.Errorf("%s: got %#v", src, err)
		}
	}
}

func TestWhyIncomplete(t *testing.T) {
	for why, want := range map[string]string{
		"":                  "incomplete",
		"stop":              "incomplete",
		"max_output_tokens": "length",
		"steered":           "steered",
	} {
		src := `{"status":"incomplete","incomplete_details":{"reason":"` + why +
			`"},"output":[{"type":"function_call","call_id":"a","name":"f","arguments":""}]}`
		updates := must.Get(responses{}.answer(&agent.Options{}).whole([]byte(src)))(t)
		shows(t, agent.Join(updates), "  "+want, "assistant ", `  call a f "" inert`)
	}
}

// Services that leave out the index, or repeat earlier pieces, are understood.
func TestLooseChunks(t *testing.T) {
	chunk := func(calls string) string {
		return `{"id":"c","choices":[{"delta":{"tool_calls":[` + calls + `]}}]}`
	}
	a := &chatAnswer{}
	var updates []*agent.Update
	for _, src := range []string{
		chunk(`{"id":"a","function":{"name":"f","arguments":"{"}}`),
		chunk(`{"id":"a","function":{"name":"f","arguments":"}"}}`),
		chunk(`{"id":"b","function":{"name":"g"}}`),
		chunk(`{"function":{"arguments":"[1]"}}`),
		`{"choices":[{"delta":{},"finish_reason":"stop"}]}`,
	} {
		more, _, err := a.event([]byte(src))
		must.Do(t, err)
		updates = append(updates, more...)
	}

	last, err := a.end() // closed without [DONE], but complete
	must.Do(t, err)
	shows(t, agent.Join(append(updates, last...)), "c  stop", "assistant c", `  call a f "{}"`, `  call b g "[1]"`)
}

// The pieces into which a service cuts texts and arguments don't change the answer.
func TestPiecesMakeTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 20, -1).Draw(t, "text")
		args := rapid.SliceOfN(rapid.StringN(0, 30, -1), 1, 3).Draw(t, "arguments")
		all := []string{text}
		all = append(all, args...)
		whole := must.Get((&chatAnswer{}).whole(chatWhole(text, args)))(t)
		want, got := show(agent.Join(whole)), show(agent.Join(chatPieces(t, all)))
		if got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
		for i, s := range args {
			if c := agent.Join(whole).Messages[0].Contents; string(
				c[len(c)-len(args)+i].(*content.FunctionCall).Arguments,
			) != s {
				t.Fatalf("arguments %q are not kept: %s", s, want)
			}
		}
	})
}

func chatCallJSON(w *jsonmsg.Writer, i int, args string) {
	w.Name("index").Int(int64(i))
	w.Member("id", string(rune('a'+i)))
	w.Name("function").Object(func(w *jsonmsg.Writer) {
		w.Member("name", "f")
		w.Member("arguments", args)
	})
}

// chunk writes an answer, or a piece of one.
func chunk(member, text, finish string, calls [][]byte) []byte {
	message, _ := jsonmsg.Object(func(w *jsonmsg.Writer) {
		w.Member("content", text)
		w.Name("tool_calls").Elements(calls)
	})
	choice, _ := jsonmsg.Object(func(w *jsonmsg.Writer) {
		w.Name(member).Raw(message)
		w.Member("finish_reason", finish)
	})
	out, _ := jsonmsg.Object(func(w *jsonmsg.Writer) { w.Name("choices").Elements([][]byte{choice}) })
	return out
}

func chatWhole(text string, args []string) []byte {
	var calls [][]byte
	for i, s := range args {
		raw, _ := jsonmsg.Object(func(w *jsonmsg.Writer) { chatCallJSON(w, i, s) })
		calls = append(calls, raw)
	}
	return chunk("message", text, "tool_calls", calls)
}

// chatPieces streams the first text as text and the others as arguments, a few runes of a
// random one at a time.
func chatPieces(t *rapid.T, all []string) []*agent.Update {
	a := &chatAnswer{}
	left := make([][]rune, len(all))
	for i, s := range all {
		left[i] = []rune(s)
	}
	var out []*agent.Update
	send := func(src []byte) {
		updates, _, err := a.event(src)
		must.Do(t, err)
		out = append(out, updates...)
	}
	for i := range all[1:] { // calls begin in order
		raw, _ := jsonmsg.Object(func(w *jsonmsg.Writer) { chatCallJSON(w, i, "") })
		send(chunk("delta", "", "", [][]byte{raw}))
	}
	for open := len(all); open > 0; {
		i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
		for len(left[i]) == 0 && open > 0 {
			if i = (i + 1) % len(all); allEmpty(left) {
				open = 0
			}
		}
		n := min(rapid.IntRange(1, 9).Draw(t, "runes"), len(left[i]))
		piece := string(left[i][:n])
		left[i] = left[i][n:]
		if i == 0 {
			send(chunk("delta", piece, "", nil))
			continue
		}
		raw, _ := jsonmsg.Object(func(w *jsonmsg.Writer) { chatCallJSON(w, i-1, piece) })
		send(chunk("delta", "", "", [][]byte{raw}))
	}

	send(chunk("delta", "", "tool_calls", nil))
	send([]byte("[DONE]"))
	return out
}

func allEmpty(left [][]rune) bool {
	for _, l := range left {
		if len(l) > 0 {
			return false
		}
	}
	return true
}
