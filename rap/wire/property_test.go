package wire_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/rap/wire"
	"github.com/assent-dev/assent/value"
)

// For any content, the encoding is JSON that all readers understand in the same way, and no
// text can become another member.
func TestAppendAnything(t *testing.T) {
	bad := []string{
		"",
		"\xff",
		"a\xc3",
		`"`,
		`}`,
		"\ud7ff\x00",
		`{},"callback_url":"http://evil.example/"`,
		`[],"id":"x"`,
		`{"a":1}{`,
		"null",
		`{"a":1,"a":2}`,
		`{}`,
		`[]`,
	}
	rapid.Check(t, func(t *rapid.T) {
		s := func() string { return rapid.SampledFrom(bad).Draw(t, "s") }
		raw := func() json.RawMessage { return json.RawMessage(s()) }
		i := wire.Invocation{
			Operation:   s(),
			Arguments:   raw(),
			ID:          s(),
			CallID:      ptr(s()),
			CallbackURL: s(),
			GroupID:     s(),
			Ancestors:   []string{s()},
			UserID:      s(),
		}
		all := []message{
			&i,
			&wire.Toolset{
				Name:        s(),
				Description: s(),
				Endpoint:    s(),
				Tools: []wire.Tool{{
					Name:        s(),
					InputSchema: raw(),
					Annotations: wire.Annotations{RequiresAuth: s()},
				}},
			},
			&wire.Result{
				GroupID:   s(),
				ID:        s(),
				Text:      ptr(s()),
				Content:   []wire.Content{{Text: s()}, {MediaType: s(), Image: s()}},
				DisplayAs: raw(),
			},
			&wire.Choice{
				GroupID:     s(),
				ID:          s(),
				Prompt:      s(),
				Choices:     []string{s(), s()},
				Default:     -1,
				ResponseURL: s(),
			},
			&wire.OAuth{GroupID: s(), ID: s(), AuthURL: s()}, &wire.Event{GroupID: s(), ToolCallID: s(), Text: s()},
			&wire.View{GroupID: s(), ViewType: s(), Content: raw()},
			&wire.Result{}, &wire.Choice{}, &wire.Toolset{}, &wire.Invocation{}, &wire.View{},
			wire.Answer{
				ID:       s(),
				Selected: -1,
			}, wire.CloseThread{ThreadID: s()}, wire.CancelCall{ThreadID: s()}, wire.Status{ToolCallID: s()},
		}
		for _, m := range all {
			out := m.Append(nil)
			if _, err := value.Parse(out, value.Limits{}); err != nil || !utf8.Valid(out) {
				t.Fatalf("%T: %s: %v", m, out, err)
			}
		}

		doc, err := value.Parse(i.Append(nil), value.Limits{})
		if err != nil || len(doc.Members) > 8 {
			t.Fatalf("%v, %v", doc, err)
		}
		args, _ := doc.Get("arguments")
		if was := strings.TrimSpace(string(i.Arguments)); was == "" || was == "{}" {
			if args.Kind != value.Object {
				t.Fatalf("%q: %v", was, args)
			}
		} else if args.Kind != value.Bool || args.Bool {
			t.Fatalf("%q is written as arguments that may be taken for some: %v", was, args)
		}
	})
}
