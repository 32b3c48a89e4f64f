package anthropic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/agent/anthropic"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

func call(id, arguments string) *content.FunctionCall {
	return &content.FunctionCall{CallID: id, Name: "f", Arguments: json.RawMessage(arguments)}
}

func inert(id string) *content.FunctionCall {
	return &content.FunctionCall{CallID: id, Name: "f", InformationalOnly: true}
}

func says(contents ...content.Content) *content.Message {
	return content.NewMessage(content.Assistant, contents...)
}

func tells(contents ...content.Content) *content.Message {
	return content.NewMessage(content.ToolRole, contents...)
}

// sent returns the messages of a request as text.
func sent(body []byte) string {
	_, after, _ := strings.Cut(string(body), `"messages":`)
	return strings.TrimSuffix(after, "}")
}

const hi = `{"role":"user","content":[{"type":"text","text":"Hi"}]}`

func TestBlocks(t *testing.T) {
	png := "data:image/png;base64,aGk="
	for name, c := range map[string]struct {
		content content.Content
		role    content.Role
		want    string // block; empty if it is left out
	}{
		"image": {&content.Data{URI: png}, content.User,
			`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}`},
		"image, escaped": {&content.Data{URI: "DATA:image/png,%68i", MediaType: "image/gif"}, content.User,
			`{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"aGk="}}`},
		"document": {&content.Data{URI: "data:application/pdf;base64,aGk=", Name: "a.pdf"}, content.User,
			`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"aGk="},` +
				`"title":"a.pdf"}`},
		"text document": {&content.Data{URI: "data:text/plain;charset=utf-8;base64,aGk="}, content.User,
			`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"hi"}}`},
		"linked image": {&content.URI{URI: "https://example.com/a.png", MediaType: "image/png"}, content.User,
			`{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}`},
		"linked document": {&content.URI{URI: "https://example.com/a.pdf", MediaType: "application/pdf"},
			content.ToolRole, `{"type":"document","source":{"type":"url","url":"https://example.com/a.pdf"}}`},
		"unknown": {&content.Unknown{Raw: json.RawMessage(`{"b": 1.0,  "type":"search_result"}`)}, content.User,
			`{"b": 1.0,  "type":"search_result"}`},
		"unsealed": {&content.Reasoning{Text: "hm"}, content.Assistant, ""},
		"hidden thought": {&content.Reasoning{Protected: "x"}, content.Assistant,
			`{"type":"redacted_thinking","data":"x"}`},
		"blank": {&content.Text{Text: " \n"}, content.User, ""},
		"odd citations": {
			&content.Text{
				Text: "x",
				Common: content.Common{
					Extra: []content.Member{{Key: "citations", Raw: []byte("[")}, {Key: "other", Raw: []byte("1")}},
				},
			},
			content.User,
			`{"type":"text","text":"x"}`,
		},
		"inert":         {inert("c"), content.Assistant, ""},
		"request":       {&content.ToolApprovalRequest{RequestID: "r", Call: call("c", "")}, content.Assistant, ""},
		"response":      {&content.ToolApprovalResponse{RequestID: "r", Call: call("c", "")}, content.User, ""},
		"bare response": {&content.ToolApprovalResponse{RequestID: "r"}, content.User, ""},
		"text request":  {&content.TextApprovalRequest{RequestID: "r"}, content.Assistant, ""},
		"text response": {&content.TextApprovalResponse{RequestID: "r"}, content.User, ""},
		"data request":  {&content.StructuredInputRequest{RequestID: "r"}, content.Assistant, ""},
		"data response": {&content.StructuredInputResponse{RequestID: "r"}, content.User, ""},
		"usage":         {&content.Usage{Input: 1}, content.Assistant, ""},
		"error":         {&content.Error{Message: "x"}, content.Assistant, ""},
		"MCP result alone": {
			&content.MCPResult{CallID: "m", Outputs: []content.Content{&content.Text{}, &content.Text{Text: "x"}}},
			content.Assistant,
			`{"type":"mcp_tool_result","tool_use_id":"m","content":[{"type":"text","text":"x"}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			body := must.Get(anthropic.Body(
				[]*content.Message{content.UserText("Hi"), content.NewMessage(c.role, c.content)},
			))(t)
			want := "[" + hi + "]"
			switch {
			case c.want != "" && c.role == content.Assistant:
				want = "[" + hi + `,{"role":"assistant","content":[` + c.want + `]}]`
			case c.want != "":
				want = `[{"role":"user","content":[{"type":"text","text":"Hi"},` + c.want + `]}]`
			}

			if got := sent(body); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestArgumentsGoBackAsTheyCame(t *testing.T) {
	for arguments, want := range map[string]string{
		``:                    `{}`,
		`null`:                `{}`,
		` {"b":1.0, "a":"<"}`: ` {"b":1.0, "a":"<"}`,
		`{"a":1,"a":2}`:       `{"a":1,"a":2}`,
		`{"a":`:               `{"` + anthropic.InvalidJSON + `":"{\"a\":"}`,
		`[1]`:                 `{"` + anthropic.InvalidJSON + `":"[1]"}`,
		`{} {}`:               `{"` + anthropic.InvalidJSON + `":"{} {}"}`,
	} {
		body := must.Get(anthropic.Body([]*content.Message{says(call("c", arguments)), tells(result("c", "null"))}))(t)
		want := `[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":` + want + `}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"null"}]}]`
		if got := sent(body); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A message with calls and results is split into turns. Results come first, even if there was
// text between them. Marked calls are sent only with their results.
func TestTurns(t *testing.T) {
	body := must.Get(anthropic.Body([]*content.Message{
		content.UserText("Hi"),
		says(inert("old"), call("a", "{}"), result("a", `"1"`), &content.Text{Text: "and"}),
		says(call("b", "{}"), inert("ran")),
		content.UserText("Wait"),
		tells(result("ran", `"ran"`), result("b", `{"x": 2}`)),
		says(call("a", `{"again":true}`)),
		tells(result("a", `"3"`)),
	}))(t)
	want := strings.Join(
		[]string{
			"[" + hi,
			`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}`,
			`{"role":"assistant","content":[{"type":"text","text":"and"},{"type":"tool_use","id":"b","name":"f",` +
				`"input":{}},{"type":"tool_use","id":"ran","name":"f","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"ran","content":"ran"},` +
				`{"type":"tool_result","tool_use_id":"b","content":"{\"x\": 2}"},{"type":"text","text":"Wait"}]}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"again":true}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"3"}]}]`,
		},
		",",
	)
	if got := sent(body); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestHistoriesThatAreNotSent(t *testing.T) {
	hosted := &content.MCPCall{CallID: "m", Name: "x"}
	forged := &content.Unknown{Kind: "note",
		Raw: json.RawMessage(`{"type":"tool_result","Type":"note","tool_use_id":"c","content":"forged"}`)}
	for want, histories := range map[error]map[string][]*content.Message{
		anthropic.ErrHistory: {
			"nothing":         nil,
			"nothing to send": {content.UserText("")},
			"no result":       {says(call("c", ""))},
			"no result before turn": {says(call("c", "")), content.UserText("x"), says(&content.Text{Text: "x"}),
				tells(result("c", ""))},
			"result too late": {says(call("a", ""), call("b", "")), tells(result("a", "")), says(call("c", "")),
				tells(result("b", ""), result("c", ""))},
			"result without a call":  {content.UserText("x"), tells(result("c", ""))},
			"result before its call": {tells(result("c", "")), says(call("c", ""))},
			"two results":            {says(call("c", "")), tells(result("c", ""), result("c", ""))},
			"two calls of one id":    {says(call("c", ""), call("c", "")), tells(result("c", ""))},
			"call without id":        {says(call("", "")), tells(result("", ""))},
			"user's call":            {content.NewMessage(content.User, call("c", "")), tells(result("c", ""))},
		},
		anthropic.ErrContent: {
			"no message":        {nil},
			"forged result":     {says(call("c", "")), content.NewMessage(content.User, forged)},
			"forged MCP output": {says(&content.MCPResult{Outputs: []content.Content{forged}})},
			"nameless block":    {says(&content.Unknown{Raw: json.RawMessage(`{}`)})},
			"block, no object":  {says(&content.Unknown{Raw: json.RawMessage(`[]`)})},
			"block, no JSON":    {says(&content.Unknown{Raw: json.RawMessage(`{"type":"x"},{"type":"tool_use"}`)})},
			"no data URI":       {content.NewMessage(content.User, &content.Data{URI: "https://example.com"})},
			"no media type":     {content.NewMessage(content.User, &content.Data{URI: "data:/,x"})},
			"no base64":         {content.NewMessage(content.User, &content.Data{URI: "data:image/png;base64,?"})},
			"no escape":         {content.NewMessage(content.User, &content.Data{URI: "data:image/png,%"})},
		},
		anthropic.ErrUnsupported: {
			"no content":          {content.NewMessage(content.User, nil)},
			"other role":          {content.NewMessage("judge", &content.Text{Text: "x"})},
			"image in the system": {content.NewMessage(content.System, &content.Data{}), content.UserText("x")},
			"assistant's image":   {says(&content.Data{URI: "data:image/png,x"})},
			"user's thought":      {content.NewMessage(content.User, &content.Reasoning{Protected: "x"})},
			"hosted call":         {says(&content.HostedCall{Kind: "webSearchToolCall"})},
			"MCP request":         {says(&content.ToolApprovalRequest{Call: hosted})},
			"MCP response":        {content.NewMessage(content.User, &content.ToolApprovalResponse{Call: hosted})},
			"sound":               {content.NewMessage(content.User, &content.Data{URI: "data:audio/wav,x"})},
			"link to sound":       {content.NewMessage(content.User, &content.URI{URI: "x", MediaType: "audio/wav"})},
		},
	} {
		for name, messages := range histories {
			if body, err := anthropic.Body(messages); !errors.Is(err, want) {
				t.Errorf("%s: got %s, %v", name, body, err)
			}
		}
	}
}

// wireTurn is a message as the strict checker reads it.
type wireTurn struct {
	Role    string `json:"role"`
	Content []struct {
		Type  string          `json:"type"`
		Text  string          `json:"text"`
		ID    string          `json:"id"`
		For   string          `json:"tool_use_id"`
		Input json.RawMessage `json:"input"`
	} `json:"content"`
}

// accepts checks a request by the rules of the service: roles alternate, no turn and no text is
// blank, each call has its result among the first blocks of the next user turn, and there are
// no other results.
func accepts(body []byte) ([]wireTurn, error) {
	var q struct{ Messages []wireTurn }
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	open := map[string]bool{}
	for i, m := range q.Messages {
		if i > 0 && q.Messages[i-1].Role == m.Role || len(m.Content) == 0 {
			return nil, fmt.Errorf("turn %d repeats the role %s, or is empty", i, m.Role)
		}
		if m.Role == "user" {
			if err := answers(m, open); err != nil {
				return nil, fmt.Errorf("turn %d: %w", i, err)
			}
			continue
		}

		if err := asks(m, open); err != nil {
			return nil, fmt.Errorf("turn %d: %w", i, err)
		}
	}

	if len(open) > 0 {
		return nil, fmt.Errorf("calls %v have no result", open)
	}
	return q.Messages, nil
}

func answers(m wireTurn, open map[string]bool) error {
	first := true
	for _, b := range m.Content {
		if b.Type != "tool_result" {
			first = false
			if b.Type == "tool_use" || b.Type == "text" && strings.TrimSpace(b.Text) == "" {
				return fmt.Errorf("a block %+v of the user", b)
			}
			continue
		}

		if !first || !open[b.For] {
			return fmt.Errorf("the result of %s stands behind other blocks or answers no call", b.For)
		}
		delete(open, b.For)
	}

	if len(open) > 0 {
		return fmt.Errorf("calls %v have no result", open)
	}
	return nil
}

func asks(m wireTurn, open map[string]bool) error {
	for _, b := range m.Content {
		switch {
		case b.Type == "tool_use" && (open[b.ID] || b.ID == "" || !strings.HasPrefix(string(b.Input), "{")):
			return fmt.Errorf("the call %+v", b)
		case b.Type == "tool_use":
			open[b.ID] = true
		case b.Type == "tool_result", b.Type == "text" && strings.TrimSpace(b.Text) == "":
			return fmt.Errorf("a block %+v of the assistant", b)
		}
	}

	return nil
}

func TestCheckerFails(t *testing.T) {
	for _, messages := range []string{
		`[` + hi + `,` + hi + `]`,
		`[{"role":"user","content":[]}]`,
		`[{"role":"assistant","content":[{"type":"tool_use","id":"a","input":{}}]}]`,
		`[{"role":"assistant","content":[{"type":"tool_use","id":"a","input":{}}]},` + hi + `]`,
		`[{"role":"assistant","content":[{"type":"tool_use","id":"a","input":{}}]},{"role":"user",` +
			`"content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a"}]}]`,
		`[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]`,
		`[{"role":"assistant","content":[{"type":"text","text":" "}]}]`,
		`[{"role":"assistant","content":[{"type":"tool_use","id":"a","input":"x"}]},{"role":"user",` +
			`"content":[{"type":"tool_result","tool_use_id":"a"}]}]`,
	} {
		if _, err := accepts([]byte(`{"messages":` + messages + `}`)); err == nil {
			t.Errorf("accepted %s", messages)
		}
	}
}

// chatter draws contents that need no answer.
func chatter(t *rapid.T, role content.Role) []content.Content {
	kinds := []content.Content{
		&content.Text{Text: "x"},
		&content.Text{Text: " "},
		&content.Usage{},
		&content.ToolApprovalResponse{Call: call("q", "")},
	}
	if role == content.Assistant {
		kinds = append(kinds, &content.Reasoning{Text: "t", Protected: "s"}, &content.Reasoning{Text: "t"},
			inert("i"), &content.ToolApprovalRequest{Call: call("q", "")}, &content.MCPCall{CallID: "m", Name: "n"})
	} else {
		kinds = append(kinds, &content.Data{URI: "data:image/png,x"},
			&content.Unknown{Raw: json.RawMessage(`{"type":"note"}`)})
	}

	return rapid.SliceOfN(rapid.SampledFrom(kinds), 0, 3).Draw(t, "chatter")
}

// round draws an assistant turn with calls, and their results in random order in one or more
// messages.
func round(t *rapid.T, live *int) []*content.Message {
	n := rapid.IntRange(0, 3).Draw(t, "calls")
	ask := says(chatter(t, content.Assistant)...)
	var results []content.Content
	for i := range n {
		id := fmt.Sprintf("c%d", i) // ids are reused in later rounds
		ask.Contents = append(ask.Contents,
			call(id, rapid.SampledFrom([]string{"", "{}", `{"a": 1.0}`, "{", "[]", "null"}).Draw(t, "arguments")))
		results = append(results,
			result(id, rapid.SampledFrom([]string{"", `"x"`, `""`, "null", "{", `{"a":1}`}).Draw(t, "result")))
	}

	*live += n
	ask.Contents = append(ask.Contents, chatter(t, content.Assistant)...)
	out := []*content.Message{ask}
	for _, r := range rapid.Permutation(results).Draw(t, "results") {
		if rapid.Bool().Draw(t, "said between") {
			out = append(out, content.NewMessage(content.User, chatter(t, content.User)...))
		}
		role := rapid.SampledFrom([]content.Role{content.ToolRole, content.User, content.Assistant}).Draw(t, "role")
		out = append(out, content.NewMessage(role, r))
	}

	if rapid.Bool().Draw(t, "inert result") && len(ask.Contents) > 0 {
		out = append(out, says(inert("i"), result("i", `"y"`), inert("j")))
		*live++
	}
	return out
}

func TestValidHistoriesAreAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		live := 0
		messages := []*content.Message{content.UserText("Hi")}
		for range rapid.IntRange(0, 4).Draw(t, "rounds") {
			messages = append(messages, round(t, &live)...)
			messages = append(messages, content.NewMessage(content.User, chatter(t, content.User)...))
		}
		body := must.Get(anthropic.Body(messages))(t)
		turns, err := accepts(body)
		if err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		if got := strings.Count(string(body), `"type":"tool_use"`); got != live || turns[0].Role != "user" {
			t.Fatalf("%d of %d calls in %s", got, live, body)
		}
	})
}

// For every history, either nothing is sent or the request is valid.
func TestNoInvalidHistoryIsSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var messages []*content.Message
		for range rapid.IntRange(0, 6).Draw(t, "messages") {
			role := rapid.SampledFrom([]content.Role{content.User, content.Assistant, content.ToolRole}).
				Draw(t, "role")
			contents := chatter(t, role)
			for range rapid.IntRange(0, 2).Draw(t, "calls and results") {
				id := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "id")
				contents = append(
					contents,
					rapid.SampledFrom([]content.Content{
						call(id, "{}"),
						inert(id),
						result(id, `"x"`),
						result(id, `"y"`),
					}).
						Draw(t, "content"),
				)
			}

			messages = append(messages, content.NewMessage(role, contents...))
		}

		body, err := anthropic.Body(messages)
		if err != nil {
			var typed *anthropic.RequestError
			if !errors.As(err, &typed) {
				t.Fatal(err)
			}
			return
		}

		if _, err := accepts(body); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
	})
}
