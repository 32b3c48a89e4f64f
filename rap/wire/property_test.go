package wire_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/rap/wire"
	"github.com/assent-dev/assent/value"
)

// gen draws messages as the types allow them.
type gen struct{ t *rapid.T }

func (g gen) text() string { return rapid.String().Draw(g.t, "text") }
func (g gen) id() string   { return rapid.StringN(1, 20, -1).Draw(g.t, "id") }
func (g gen) flag() bool   { return rapid.Bool().Draw(g.t, "flag") }

func (g gen) optional() *string { return rapid.Ptr(rapid.String(), true).Draw(g.t, "optional") }
func (g gen) hint() *bool       { return rapid.Ptr(rapid.Bool(), true).Draw(g.t, "hint") }

func (g gen) url() string {
	return rapid.StringMatching(`https?://([a-z]{1,8}\.example|127\.0\.0\.1|\[::1\])(:[1-9][0-9]{0,3}`+
		`)?(/[a-zA-Z0-9._~!$&'()*+,;=:@-]{0,9}|/%[0-9A-Fa-f]{2})?(\?[a-z=&/?%]{0,0}[a-z0-9=&/?+]{0,9})?`).
		Draw(g.t, "url")
}

// object draws the text of an object, spelt in one of many ways.
func (g gen) object() json.RawMessage {
	key, err := json.Marshal(g.text())
	if err != nil {
		g.t.Fatal(err)
	}
	element := rapid.SampledFrom(
		[]string{`1.50`, `"x\n"`, `[ 1,{}]`, "{\n}", `true`, `"\u0041"`, `"\ud83d\ude00"`, `-0e1`, `null`},
	)
	return fmt.Appendf(
		nil,
		rapid.SampledFrom([]string{"{%s:%s}", "{ %s : %s\t}", `{%s:[%s,{"a":1}]}`}).Draw(g.t, "shape"),
		key,
		element.Draw(g.t, "element"),
	)
}

func (g gen) toolset() *wire.Toolset {
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Za-z0-9_.-]{1,128}`), 1, 4, rapid.ID).
		Draw(g.t, "names")
	set := &wire.Toolset{
		Name:           rapid.StringN(1, 128, -1).Draw(g.t, "name"),
		Description:    g.text(),
		Endpoint:       g.url(),
		NeedsMigration: g.flag(),
	}
	for _, name := range names {
		set.Tools = append(set.Tools, wire.Tool{
			Name:          name,
			Description:   g.text(),
			DisplayScript: g.text(),
			InputSchema: json.RawMessage(
				rapid.SampledFrom([]string{`{}`, `{ "type":"object" }`, `{"properties":{"a":{"maximum":1.0}}}`}).
					Draw(g.t, "schema"),
			),
			Annotations: wire.Annotations{
				RequiresAuth: g.text(),
				ReadOnly:     g.hint(),
				Destructive:  g.hint(),
				Idempotent:   g.hint(),
				LongRunning:  g.hint(),
			},
		})
	}

	return set
}

func (g gen) invocation() wire.Invocation {
	return wire.Invocation{
		Operation:   g.id(),
		Arguments:   g.object(),
		ID:          g.id(),
		CallID:      g.optional(),
		CallbackURL: g.url(),
		GroupID:     g.id(),
		UserID:      g.text(),
		Ancestors: rapid.SliceOfN(rapid.StringN(1, 9, -1), -1, 3).Filter(func(all []string) bool {
			return len(all) > 0 || all == nil
		}).Draw(g.t, "ancestors"),
	}
}

func (g gen) choice() *wire.Choice {
	c := &wire.Choice{
		GroupID:     g.id(),
		ID:          g.id(),
		CallID:      g.optional(),
		Prompt:      g.text(),
		ResponseURL: g.url(),
		Choices:     rapid.SliceOfN(rapid.String(), 1, 5).Draw(g.t, "choices"),
	}
	c.Default = rapid.IntRange(0, len(c.Choices)-1).Draw(g.t, "default")
	return c
}

func (g gen) result() *wire.Result {
	r := &wire.Result{
		GroupID:      g.id(),
		ID:           g.id(),
		CallID:       g.optional(),
		Text:         g.optional(),
		Subscription: g.flag(),
	}
	if r.Text == nil || g.flag() {
		r.Content = []wire.Content{}
		for range rapid.IntRange(0, 3).Draw(g.t, "items") {
			r.Content = append(r.Content, g.content())
		}
	}

	if g.flag() {
		r.DisplayAs = json.RawMessage(
			rapid.SampledFrom([]string{`[]`, `[ {"type":"text","content":"\u0041"} ]`, `[{"type":"x","a":1.0}]`}).
				Draw(g.t, "display"),
		)
	}

	return r
}

func (g gen) content() wire.Content {
	if g.flag() {
		return wire.Content{Text: g.text()}
	}
	data := rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(g.t, "data")
	return wire.Content{
		Image:     base64.StdEncoding.EncodeToString(data),
		MediaType: "image/" + rapid.StringMatching(`[a-z0-9.+-]{1,9}`).Draw(g.t, "media"),
	}
}

// message draws any message, with the name that parse wants.
func (g gen) message() (string, any) {
	switch rapid.IntRange(0, 10).Draw(g.t, "message") {
	case 0:
		return "toolset/", g.toolset()
	case 1:
		return "invocation/", g.invocation()
	case 2:
		return "callback/", g.choice()
	case 3:
		return "callback/", g.result()
	case 4:
		return "callback/", &wire.OAuth{
			GroupID: g.id(),
			ID:      g.id(),
			CallID:  g.optional(),
			AuthURL: strings.Replace(g.url(), "http:", "https:", 1),
		}
	case 5:
		return "callback/", &wire.Event{
			GroupID:     g.id(),
			ToolCallID:  g.id(),
			Text:        g.text(),
			Associative: g.flag(),
			Final:       g.flag(),
		}
	case 6:
		return "callback/", &wire.View{GroupID: g.id(), ViewType: g.id(), Content: g.object()}
	case 7:
		return "answer/", wire.Answer{ID: g.id(), Selected: rapid.IntRange(0, 1<<31-1).Draw(g.t, "selected")}
	case 8:
		return "notice/close", wire.CloseThread{ThreadID: g.id()}
	case 9:
		return "notice/cancel", wire.CancelCall{ThreadID: g.id(), ToolCallID: g.id()}
	}

	return "notice/status", wire.Status{ThreadID: g.id(), ToolCallID: g.id()}
}

// What is written is read as it was, texts of others byte for byte, and
// stands behind what was there before.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name, want := gen{t}.message()
		out := written(want)
		got, err := parse(name, out)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, %v\nwant %+v\n%s", got, err, want, out)
		}
		if _, ok := want.(wire.Callback); ok && !strings.HasPrefix(string(out), `{"type":"`) {
			t.Fatalf("the type is not first: %s", out)
		}
		behind := "before"
		switch m := want.(type) {
		case wire.Invocation:
			behind = string(m.Append([]byte(behind)))
		case message:
			behind = string(m.Append([]byte(behind)))
		}

		if behind != "before"+string(out) {
			t.Fatalf("behind something else: %s", behind)
		}
	})
}

// Whatever a message is made of, JSON is written that all readers
// understand alike, and one text never becomes other members.
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
			&wire.OAuth{GroupID: s(), ID: s(), AuthURL: s()}, &wire.Event{
				GroupID:    s(),
				ToolCallID: s(),
				Text:       s(),
			},
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
