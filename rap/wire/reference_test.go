package wire_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/rap/wire"
)

func ptr[T any](v T) *T { return &v }

// sent returns a message of another implementation.
func sent(t testing.TB, name string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(filepath.Join("testdata", filepath.FromSlash(name))))(t)
}

// seeds adds messages of other implementations to a fuzz target.
func seeds(f *testing.F, folder string) {
	f.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", folder, "*.json"))
	if err != nil || len(names) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, name := range names {
		f.Add(sent(f, strings.TrimPrefix(filepath.ToSlash(name), "testdata/")))
	}
}

// references returns the expected content of the messages under testdata.
func references() map[string]any {
	return map[string]any{
		"toolset/rust.json": &wire.Toolset{
			Name:           "sandbox",
			Description:    "A sandbox on this host.",
			Endpoint:       "http://127.0.0.1:8080/invoke",
			NeedsMigration: true,
			Tools: []wire.Tool{
				{
					Name:          "edit_file",
					Description:   "Edits a file.",
					DisplayScript: "fn show(a) { a.path }",
					Annotations:   wire.Annotations{ReadOnly: ptr(false), Destructive: ptr(true)},
					InputSchema: []byte(
						`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",` +
							`"properties":{"path":{"type":"string"},"patch":{"type":"string"}},"required":["path",` +
							`"patch"]}`,
					),
				},
				{
					Name:        "list",
					Description: "Lists.",
					InputSchema: []byte(`{"type":"object","additionalProperties":false}`),
				},
			},
		},
		"toolset/js.json": &wire.Toolset{
			Name:     "weather",
			Endpoint: "https://abc.lambda-url.eu-west-1.on.aws",
			Tools: []wire.Tool{{
				Name:        "get_weather",
				Description: "The weather of a town.",
				Annotations: wire.Annotations{ReadOnly: ptr(true), Idempotent: ptr(true), LongRunning: ptr(false)},
				InputSchema: []byte(
					`{ "type": "object", "properties": { "town": { "type": "string" } }, "required": ["town"] }`,
				),
			}},
		},
		"invocation/root.json": wire.Invocation{
			Operation:   "edit_file",
			Arguments:   []byte(`{"path":"/tmp/a","patch":"@@ -1 +1 @@\n"}`),
			ID:          "call_1",
			CallbackURL: "http://127.0.0.1:41234",
			GroupID:     "3f0c",
		},
		"invocation/child.json": wire.Invocation{
			Operation:   "list",
			Arguments:   []byte(`{ "n" : 1.50, "é":"\u00e9\ud83d\ude00" }`),
			ID:          "toolu_01/ä",
			CallID:      ptr("fc_9"),
			CallbackURL: "https://r.example/cb/TOKEN?x=%2F",
			GroupID:     "c2",
			Ancestors:   []string{"root", "c1"},
			UserID:      "ann",
		},
		"invocation/bare.json": wire.Invocation{
			Operation:   "list",
			Arguments:   []byte(`{}`),
			ID:          "call_2",
			CallbackURL: "http://127.0.0.1:41234/",
			GroupID:     "3f0c",
		},
		"callback/choice_rust.json": &wire.Choice{
			GroupID:     "3f0c",
			ID:          "call_1",
			Prompt:      "Direct mode: allow writing to /tmp/a?",
			Choices:     []string{"Yes (3f0c and all children)", "Yes once", "No"},
			Default:     2,
			ResponseURL: "http://localhost:8080/user_choice_response",
		},
		"callback/choice_js.json": &wire.Choice{
			GroupID:     "3f0c",
			ID:          "call_1",
			Prompt:      "Go?",
			Choices:     []string{"", "Go", "Go"},
			ResponseURL: "https://t.example/a%2Fb?token=a%20b&c",
		},
		"callback/result_rust.json": &wire.Result{
			GroupID:      "3f0c",
			ID:           "call_1",
			CallID:       ptr("fc_9"),
			Text:         ptr("Error: file write denied by user."),
			Subscription: true,
			DisplayAs: []byte(
				`[{"type":"text","content":"denied"},{"type":"diff","content":{"path":"/tmp/a","patch":"@@"}},` +
					`{"type":"chart","content":7}]`,
			),
		},
		"callback/result_js.json": &wire.Result{
			GroupID: "3f0c",
			ID:      "call_1",
			Content: []wire.Content{{Text: "a cat"}, {Image: "iVBORw0KGgo=", MediaType: "image/png"}},
		},
		"callback/oauth.json": &wire.OAuth{
			GroupID: "3f0c",
			ID:      "call_1",
			AuthURL: "https://idp.example/authorize?state=S#login",
		},
		"callback/event.json": &wire.Event{
			GroupID:     "3f0c",
			ToolCallID:  "call_1",
			Text:        "still running",
			Associative: true,
		},
		"callback/view.json": &wire.View{GroupID: "3f0c", ViewType: "diff", Content: []byte(`{ "files": [1.0, "x"] }`)},
		"answer/daemon.json": wire.Answer{ID: "call_1", Selected: 2},
		"answer/spaced.json": wire.Answer{ID: "call_1"},
		"notice/close.json":  wire.CloseThread{ThreadID: "3f0c"},
		"notice/cancel.json": wire.CancelCall{ThreadID: "3f0c", ToolCallID: "call_1"},
	}
}

// parse parses a message. The folder in its name determines the kind.
func parse(name string, src []byte) (any, error) {
	switch folder, file, _ := strings.Cut(name, "/"); folder {
	case "toolset":
		t, err := wire.ParseToolset(src)
		return withoutSchemas(t), err
	case "invocation":
		return wire.ParseInvocation(src)
	case "callback":
		return wire.ParseCallback(src)
	case "answer":
		return wire.ParseAnswer(src)
	default:
		switch strings.TrimSuffix(file, ".json") {
		case "close":
			return wire.ParseCloseThread(src)
		case "status":
			return wire.ParseStatus(src)
		}

		return wire.ParseCancelCall(src)
	}
}

// withoutSchemas returns a copy of a toolset without the compiled schemas.
func withoutSchemas(t *wire.Toolset) *wire.Toolset {
	if t == nil {
		return nil
	}
	out := *t
	out.Tools = nil
	for _, tool := range t.Tools {
		out.Tools = append(out.Tools, wire.Tool{
			Name:          tool.Name,
			Description:   tool.Description,
			InputSchema:   tool.InputSchema,
			Annotations:   tool.Annotations,
			DisplayScript: tool.DisplayScript,
		})
	}

	return &out
}

type message interface{ Append(dst []byte) []byte }

// written appends the encoding of any message to before.
func written(v any, before ...byte) []byte {
	if i, ok := v.(wire.Invocation); ok {
		return i.Append(before)
	}
	return v.(message).Append(before)
}

// Messages of other implementations are parsed as intended, and encoded to the same text.
func TestReferences(t *testing.T) {
	names, err := filepath.Glob("testdata/*/*.json")
	if err != nil || len(names) != len(references()) {
		t.Fatalf("%d messages, %d meanings, %v", len(names), len(references()), err)
	}
	for name, want := range references() {
		t.Run(name, func(t *testing.T) {
			got, err := parse(name, sent(t, name))
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("%+v, %v\nwant %+v", got, err, want)
			}
			golden.Equal(t, strings.TrimSuffix(name, ".json")+".golden", string(written(got))+"\n")
			again, err := parse(name, written(got))
			if err != nil || !reflect.DeepEqual(again, want) {
				t.Errorf("written and read again: %+v, %v", again, err)
			}
		})
	}
}
