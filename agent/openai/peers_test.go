package openai

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

// A message of parts is one with an id and a status by the service's
// own types, which some servers hold every request to.
func TestSendsWhatAnAssistantSaidAsText(t *testing.T) {
	items := must.Get(inputItems([]*content.Message{content.NewMessage(
		content.Assistant,
		&content.Text{Text: "A"},
		&content.Text{Text: " cat."},
		&content.Error{Code: refusalCode, Message: "No more."},
		call("c"),
		&content.Error{Code: refusalCode, Message: "Nothing."},
	), content.NewMessage(content.ToolRole, gives("c"))}, false, false))(t)
	var got []string
	for _, raw := range items {
		var item struct {
			Type, Role string
			Content    json.RawMessage
		}
		must.Do(t, json.Unmarshal(raw, &item))
		got = append(got, strings.TrimSpace(item.Type+" "+item.Role+" "+string(item.Content)))
	}

	want := []string{
		`message assistant "A cat.\n\nNo more."`,
		"function_call",
		`message assistant "Nothing."`,
		"function_call_output",
	}
	if strings.Join(got, "; ") != strings.Join(want, "; ") {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// An answer that came at once is refused for what is wrong with it.
func TestTellsWhatIsWrongWithACall(t *testing.T) {
	for src, want := range map[string]string{
		`{"choices":[{"message":{"tool_calls":[{"function":{"name":"f"}}]},"finish_reason":"tool_calls"}]}`: "tool_calls[0]: the call has no id or no name",
		`{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f"}},{"id":"b","function":{}}]},` +
			`"finish_reason":"tool_calls"}]}`: "tool_calls[1]: the call has no id or no name",
		`{"choices":[{"message":{"content":"x"}}]}`: "choices: the answer has no finish reason",
	} {
		_, err := (&chatAnswer{}).whole([]byte(src))
		var bad *content.BadError
		if !errors.As(err, &bad) || err.Error() != want {
			t.Errorf("%s\n%v, want %s", src, err, want)
		}
	}
}
