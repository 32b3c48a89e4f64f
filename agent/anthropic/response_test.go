package anthropic_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/anthropic"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/internal/replay"
)

// answer returns a response with some blocks.
func answer(blocks string) string {
	return `{"type":"message","role":"assistant","id":"m","stop_reason":"end_turn","content":[` + blocks + `]}`
}

func TestResponses(t *testing.T) {
	for src, want := range map[string]string{
		answer(`{"type":"tool_use","id":"c","name":"f","input":null}`):        `call c f {}`,
		answer(`{"type":"tool_use","id":"c","name":"f"}`):                     `call c f {}`,
		answer(`{"type":"tool_use","id":"c","name":"f","input":[1]}`):         `call c f [1]`,
		answer(`{"type":"mcp_tool_result","tool_use_id":"c","content":null}`): `mcp result c []`,
		answer(`{"type":"mcp_tool_result","tool_use_id":"c","content":[{"type":"new","x":[` +
			`]}]}`): `mcp result c [unknown new {"type":"new","x":[]}]`,
		answer(`{"text":{},"type":"new"}`): `unknown new {"text":{},"type":"new"}`,
		answer(``):                         ``,
	} {
		r, err := anthropic.ParseResponse([]byte(src))
		if err != nil || show(r.Messages[0].Contents) != want || r.Usage != nil {
			t.Errorf("%s: got %+v, %v", src, r, err)
		}
	}

	for _, src := range []string{
		``,
		`[]`,
		`{}`,
		`{"type":"error","error":{"type":"overloaded_error"}}`,
		`{"type":"message","role":"user","stop_reason":"end_turn","content":[]}`,
		`{"type":"message","role":"assistant","content":[]}`,
		strings.Replace(answer(``), `"id"`, `"usage":{"input_tokens":"many"},"id"`, 1),
		answer(`1`),
		answer(`{}`),
		answer(`{"type":"text","text":1}`),
		answer(`{"type":"tool_use","id":"c"}`),
		answer(`{"type":"tool_use","name":"f"}`),
		answer(`{"type":"mcp_tool_use","id":"c"}`),
		answer(`{"type":"mcp_tool_result","content":1}`),
		answer(`{"type":"mcp_tool_result","content":[{}]}`),
	} {
		if r, err := anthropic.ParseResponse([]byte(src)); !errors.Is(err, anthropic.ErrBadResponse) {
			t.Errorf("%s: got %+v, %v", src, r, err)
		}
	}
}

func TestFinishReasons(t *testing.T) {
	for stop, want := range map[string]string{
		"end_turn":                      "stop",
		"stop_sequence":                 "stop",
		"max_tokens":                    "length",
		"model_context_window_exceeded": "length",
		"tool_use":                      "tool_calls",
		"refusal":                       "content_filter",
		"pause_turn":                    "pause_turn",
		"new":                           "new",
	} {
		r, err := anthropic.ParseResponse([]byte(strings.Replace(answer(""), "end_turn", stop, 1)))
		if err != nil || r.FinishReason != want {
			t.Errorf("%s: got %+v, %v", stop, r, err)
		}
	}
}

// fixtures returns the answers of all transcripts.
func fixtures(t testing.TB) []replay.Response {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	var out []replay.Response
	for _, file := range files {
		transcript, err := replay.Load(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		for _, x := range transcript {
			out = append(out, x.Response)
		}
	}

	return out
}

// goesBack sends an answer with a result for each call. Every message that can be read must be
// accepted when it is sent back.
func goesBack(t *testing.T, r *agent.Response) {
	history := append([]*content.Message{content.UserText("Hi")}, r.Messages...)
	seen := map[string]bool{}
	for _, c := range r.Messages[0].Contents {
		if call, ok := c.(*content.FunctionCall); ok {
			if seen[call.CallID] {
				return // the model made an invalid history
			}
			seen[call.CallID] = true
			history = append(history, tells(result(call.CallID, `"x"`)))
		}
	}

	body, err := anthropic.Body(history)
	if err != nil {
		if !errors.Is(err, anthropic.ErrContent) { // for a block that parsers read differently
			t.Fatal(err)
		}
		return
	}

	if _, err := accepts(body); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
}

func FuzzResponse(f *testing.F) {
	for _, r := range fixtures(f) {
		if r.Body != nil {
			f.Add([]byte(r.Body))
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		r, err := anthropic.ParseResponse(src)
		if err != nil {
			if r != nil || !errors.Is(err, anthropic.ErrBadResponse) {
				t.Fatalf("got %v, %v", r, err)
			}
			return
		}

		goesBack(t, r)
	})
}
