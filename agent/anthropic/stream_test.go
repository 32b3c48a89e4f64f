package anthropic_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/anthropic"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

// feed writes events, one per line, as a stream. The type in the data is the name of the event.
func feed(lines string) string {
	var out strings.Builder
	for l := range strings.Lines(strings.TrimSpace(lines)) {
		var head struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal([]byte(l), &head)
		out.WriteString("event: " + head.Type + "\ndata: " + strings.TrimSpace(l) + "\n\n")
	}

	return out.String()
}

const (
	begin = `{"type":"message_start","message":{"type":"message","role":"assistant","id":"m","content":[]}}` + "\n"
	end   = "\n" + `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}` + "\n" + `{"type":"message_stop"}`
)

func TestStreams(t *testing.T) {
	for name, c := range map[string]struct{ events, want string }{
		"unknown events": {`{"type":"news","content_block":1}`, ``},
		"server tool": {
			`
{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use", "id":"s","input":{},"name":"web_search"}}
{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"q\": "}}
{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"1.0}"}}
{"type":"content_block_stop","index":0}
{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result",  "tool_use_id":"s","content":[]}}
{"type":"content_block_stop","index":1}
{"type":"content_block_start","index":2,"content_block":{"type":"new"}}
{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"[]"}}
{"type":"content_block_stop","index":2}`,
			`unknown server_tool_use {"type":"server_tool_use","id":"s","input":{"q": 1.0},"name":"web_search"}` +
				"\n" +
				`unknown web_search_tool_result {"type":"web_search_tool_result",  "tool_use_id":"s","content":[]}` +
				"\n" +
				`unknown new {"type":"new","input":[]}`,
		},
		"MCP": {
			`
{"type":"content_block_start","index":0,"content_block":{"type":"mcp_tool_use","id":"s","input":{},"name":"n","server_name":"d"}}
{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}
{"type":"content_block_stop","index":0}
{"type":"content_block_start","index":1,"content_block":{"type":"mcp_tool_result","tool_use_id":"s","is_error":false,"content":[{"type":"text","text":"x"}]}}
{"type":"content_block_stop","index":1}`,
			"mcp s d/n {}\nmcp result s [text \"x\"] +is_error=false",
		},
		"citations": {`
{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"","citations":[]}}
{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"n":1}}}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}
{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"n":2}}}
{"type":"content_block_stop","index":0}
{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"b","citations":[{"n":3}]}}
{"type":"content_block_stop","index":1}`,
			"text \"a\"\ntext \"\" +citations=[{\"n\":1},{\"n\":2}]\ntext \"b\"\ntext \"\" +citations=[{\"n\":3}]"},
		"blocks that overlap": {`
{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}
{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}
{"type":"content_block_stop","index":1}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"b"}}
{"type":"content_block_stop","index":0}`, "text \"ab\"\ncall c f {\"a\":"},
		"thoughts stay apart": {`
{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"a","signature":""}}
{"type":"content_block_stop","index":0}
{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"d"}}
{"type":"content_block_stop","index":1}
{"type":"content_block_start","index":2,"content_block":{"type":"thinking","thinking":"b","signature":"s"}}
{"type":"content_block_stop","index":2}`, "thought \"a\" \nthought \"\" d\nthought \"b\" s"},
		"whole input": {`
{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"f","input":{"a": 1}}}
{"type":"content_block_stop","index":0}`, `call c f {"a": 1}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := must.Get(agent.Collect(anthropic.ReadStream(feed(begin + strings.TrimSpace(c.events) + end))))(t)
			hold(t, r, "stop", c.want)
		})
	}
}

func TestStreamsThatAreNoMessage(t *testing.T) {
	const open = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n"
	piece := func(block, delta string) string {
		return begin + `{"type":"content_block_start","index":0,"content_block":` + block + `}` + "\n" +
			`{"type":"content_block_delta","index":0,"delta":` + delta + `}` + "\n" +
			`{"type":"content_block_stop","index":0}` + end
	}
	for name, events := range map[string]string{
		"no start":              `{"type":"message_stop"}`,
		"two starts":            begin + begin,
		"start of another role": strings.Replace(begin, "assistant", "user", 1),
		"start with blocks":     strings.Replace(begin, "[]", `[{"type":"text"}]`, 1),
		"start without message": `{"type":"message_start"}`,
		"no JSON":               begin + `{"type":`,
		"gap":                   begin + strings.Replace(open, "0", "1", 1),
		"no index":              begin + strings.Replace(open, `"index":0,`, "", 1),
		"no block":              begin + `{"type":"content_block_start","index":0}`,
		"stop of none":          begin + `{"type":"content_block_stop","index":0}`,
		"stop twice":            begin + open + strings.Repeat(`{"type":"content_block_stop","index":0}`+"\n", 2),
		"end inside of a block": begin + open + strings.TrimSpace(end),
		"end without a reason":  begin + `{"type":"message_stop"}`,
		"odd end":               begin + `{"type":"message_delta","delta":1}`,
		"odd usage":             begin + `{"type":"message_delta","delta":{},"usage":1}`,
		"odd count": begin + `{"type":"message_delta","delta":{"stop_reason":"x"},` +
			`"usage":{"output_tokens":1.5}}` + "\n" + `{"type":"message_stop"}`,
		"odd delta":             piece(`{"type":"text"}`, `1`),
		"unknown delta":         piece(`{"type":"text"}`, `{"type":"new_delta"}`),
		"text into a call":      piece(`{"type":"tool_use","id":"c","name":"f"}`, `{"type":"text_delta","text":"x"}`),
		"input into a text":     piece(`{"type":"text"}`, `{"type":"input_json_delta","partial_json":"x"}`),
		"input into a result":   piece(`{"type":"mcp_tool_result"}`, `{"type":"input_json_delta","partial_json":"x"}`),
		"broken input, unknown": piece(`{"type":"server_tool_use"}`, `{"type":"input_json_delta","partial_json":"{"}`),
	} {
		r, err := agent.Collect(anthropic.ReadStream(feed(events)))
		if !errors.Is(err, anthropic.ErrBadResponse) || r.FinishReason != "" {
			t.Errorf("%s: got %+v, %v", name, r, err)
		}
	}
}

func TestErrorInStream(t *testing.T) {
	for _, text := range []string{
		"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\"}}\n\n",
		"data: {\"type\":\"error\",\"error\":{\"type\":\"api_error\"}}\n\n",
		"event: error\ndata: broken\n\n",
	} {
		_, err := agent.Collect(anthropic.ReadStream(text))
		var status *anthropic.StatusError
		if !errors.As(err, &status) || status.Status != 200 {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

// If a stream is cut at any place, the part before is not a complete answer.
func TestCutAnywhere(t *testing.T) {
	whole := feed(
		begin + `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}
{"type":"content_block_stop","index":0}` + end,
	)
	for n := range len(whole) - 1 {
		r, err := agent.Collect(anthropic.ReadStream(whole[:n]))
		if err == nil || r.FinishReason != "" {
			t.Fatalf("cut at %d: got %+v, %v", n, r, err)
		}
	}

	if _, err := agent.Collect(anthropic.ReadStream("event: ping\n\n")); !errors.Is(err, anthropic.ErrCut) {
		t.Errorf("got %v", err)
	}
	long := "data: " + strings.Repeat("x", 33<<20)
	if _, err := agent.Collect(anthropic.ReadStream(long)); !errors.Is(err, anthropic.ErrCut) ||
		errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

func FuzzStream(f *testing.F) {
	for _, r := range fixtures(f) {
		var lines []string
		for _, e := range r.SSE {
			var event struct{ Data json.RawMessage }
			must.Do(f, json.Unmarshal(e, &event))
			lines = append(lines, string(event.Data))
		}

		if len(lines) > 0 {
			f.Add(strings.Join(lines, "\n"))
		}
	}

	f.Fuzz(func(t *testing.T, lines string) {
		r, err := agent.Collect(anthropic.ReadStream(feed(lines)))
		if err == nil != (r.FinishReason != "") {
			t.Fatalf("got %q, %v", r.FinishReason, err)
		}
		for _, m := range r.Messages {
			if m.Role != content.Assistant {
				t.Fatalf("a message of %s", m.Role)
			}
		}
		if err == nil && len(r.Messages) == 1 {
			goesBack(t, r)
		}
	})
}
