package wire_test

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/rap/wire"
)

// A second, lenient reader, built only from the field tables and Go's own decoder. Because Go's
// decoder ignores case, lenient first drops all members whose names don't match exactly.
type (
	lenientInvocation struct {
		Operation   string          `json:"operation"`
		Arguments   json.RawMessage `json:"arguments"`
		ID          string          `json:"id"`
		CallID      *string         `json:"call_id"`
		CallbackURL string          `json:"callback_url"`
		GroupID     string          `json:"group_id"`
		Ancestors   []string        `json:"thread_ancestors"`
		UserID      string          `json:"user_id"`
	}
	lenientCallback struct {
		Type         string          `json:"type"`
		GroupID      string          `json:"group_id"`
		ID           string          `json:"id"`
		CallID       *string         `json:"call_id"`
		Text         *string         `json:"text"`
		Content      json.RawMessage `json:"content"`
		DisplayAs    json.RawMessage `json:"display_as"`
		Subscription bool            `json:"subscription"`
		Prompt       string          `json:"prompt"`
		Choices      []string        `json:"choices"`
		Default      *float64        `json:"default"`
		ResponseURL  string          `json:"response_url"`
		AuthURL      string          `json:"auth_url"`
		ToolCallID   string          `json:"tool_call_id"`
		Associative  bool            `json:"associative"`
		Final        bool            `json:"final"`
		ViewType     string          `json:"view_type"`
	}
	lenientItem struct {
		Type      string `json:"type"`
		Text      string `json:"text"`
		Data      string `json:"data"`
		MediaType string `json:"mediaType"`
	}
	lenientAnswer struct {
		ID       string   `json:"id"`
		Selected *float64 `json:"selected"`
	}
	lenientClose struct {
		ThreadID string `json:"thread_id"`
	}
	lenientCancel struct {
		ThreadID   string `json:"thread_id"`
		ToolCallID string `json:"tool_call_id"`
	}
)

// failer is implemented by tests and property tests.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// lenient decodes the members that into names exactly. A null member counts as absent.
func lenient(t failer, body []byte, into any) {
	t.Helper()
	var members, known map[string]json.RawMessage
	names, err := json.Marshal(into)
	if err == nil {
		err = json.Unmarshal(names, &known)
	}
	if err == nil {
		err = json.Unmarshal(body, &members)
	}
	if err != nil {
		t.Fatalf("Go can't read what was accepted: %v\n%s", err, body)
	}
	for name, raw := range members {
		if _, ok := known[name]; !ok || string(raw) == "null" {
			delete(members, name)
		}
	}
	exact, err := json.Marshal(members)
	if err == nil {
		err = json.Unmarshal(exact, into)
	}
	if err != nil {
		t.Fatalf("Go can't read what was accepted: %v\n%s", err, body)
	}
}

// agree checks that the second reader understands an accepted message in the same way.
func agree(t failer, body []byte, got any) {
	t.Helper()
	var want any
	switch got.(type) {
	case wire.Invocation:
		want = asInvocation(t, body)
	case wire.Answer:
		var l lenientAnswer
		lenient(t, body, &l)
		want = wire.Answer{ID: l.ID, Selected: int(*l.Selected)}
	case wire.CloseThread:
		var l lenientClose
		lenient(t, body, &l)
		want = wire.CloseThread(l)
	case wire.CancelCall:
		var l lenientCancel
		lenient(t, body, &l)
		want = wire.CancelCall(l)
	case wire.Status:
		var l lenientCancel
		lenient(t, body, &l)
		want = wire.Status(l)
	default:
		want = asCallback(t, body)
	}

	if !reflect.DeepEqual(plain(t, got), plain(t, want)) {
		t.Fatalf("we read  %+v\nGo reads %+v\nin %s", got, want, body)
	}
}

// plain returns a value without differences in the spelling of raw JSON.
func plain(t failer, v any) any {
	t.Helper()
	text := must.Get(json.Marshal(v))(t)
	var out any
	must.Do(t, json.Unmarshal(text, &out))
	return []any{reflect.TypeOf(v), out}
}

func asInvocation(t failer, body []byte) wire.Invocation {
	t.Helper()
	var l lenientInvocation
	lenient(t, body, &l)
	if l.Arguments == nil {
		l.Arguments = json.RawMessage("{}")
	}
	if len(l.Ancestors) == 0 {
		l.Ancestors = nil
	}
	return wire.Invocation(l)
}

func asCallback(t failer, body []byte) wire.Callback {
	t.Helper()
	var l lenientCallback
	lenient(t, body, &l)
	switch l.Type {
	case "user_choice":
		return &wire.Choice{
			GroupID:     l.GroupID,
			ID:          l.ID,
			CallID:      l.CallID,
			Prompt:      l.Prompt,
			Choices:     l.Choices,
			Default:     int(*l.Default),
			ResponseURL: l.ResponseURL,
		}
	case "oauth":
		return &wire.OAuth{GroupID: l.GroupID, ID: l.ID, CallID: l.CallID, AuthURL: l.AuthURL}
	case "subscription_event":
		return &wire.Event{
			GroupID:     l.GroupID,
			ToolCallID:  l.ToolCallID,
			Text:        *l.Text,
			Associative: l.Associative,
			Final:       l.Final,
		}
	case "view_update":
		return &wire.View{GroupID: l.GroupID, ViewType: l.ViewType, Content: l.Content}
	}

	out := &wire.Result{
		GroupID:      l.GroupID,
		ID:           l.ID,
		CallID:       l.CallID,
		Text:         l.Text,
		DisplayAs:    l.DisplayAs,
		Subscription: l.Subscription,
	}
	if l.Content != nil {
		out.Content = []wire.Content{}
		var items []json.RawMessage
		must.Do(t, json.Unmarshal(l.Content, &items))
		for _, raw := range items {
			var item lenientItem
			lenient(t, raw, &item)
			if item.Type == "text" {
				item.Data, item.MediaType = "", ""
			} else {
				item.Text = ""
			}
			out.Content = append(out.Content, wire.Content{
				Text:      item.Text,
				Image:     item.Data,
				MediaType: item.MediaType,
			})
		}
	}

	return out
}

// mutant draws a message with members left out, repeated, with changed letters, in another
// order, or with other values.
func mutant(t *rapid.T, in form) string {
	values := []string{
		`0`,
		`1`,
		`-1`,
		`1.0`,
		`1e0`,
		`"1"`,
		`""`,
		`"a"`,
		`"\u0041"`,
		`true`,
		`false`,
		`null`,
		`{}`,
		`{"a":1}`,
		`[]`,
		`["a"]`,
		`["a","b","c"]`,
		`[null]`,
		`"http://a.example/"`,
		`[{"type":"text","text":"x"}]`,
		`[{"type":"text","Text":"y","text":"x","data":"AAA="}]`,
		`"\ud800"`,
		`{"a":1,"a":2}`,
		"{ \"\\u0041\\n\" : [1.50, -0e1, \"\\ud83d\\ude00\"]\t}",
	}
	var all []string
	for _, m := range in.members {
		name, raw := m.name, m.raw
		switch rapid.IntRange(0, 50).Draw(t, "change") {
		case 0:
			continue
		case 1:
			all = append(all, strconv.Quote(name)+":"+rapid.SampledFrom(values).Draw(t, "twice"))
		case 2, 3:
			all = append(
				all,
				strconv.Quote(strings.ToUpper(name[:1])+name[1:])+":"+rapid.SampledFrom(values).Draw(t, "variant"),
			)
		case 4, 5, 6, 7:
			raw = rapid.SampledFrom(values).Draw(t, "value")
		case 8:
			name = strings.ToUpper(name)
		case 9, 10, 11, 12, 13, 14, 15:
			if strings.HasPrefix(raw, `"`) && !strings.Contains(raw, "://") && name != "type" {
				text := must.Get(json.Marshal(rapid.String().Draw(t, "text")))(t)
				raw = string(text)
			}
		}

		all = append(all, strconv.Quote(name)+":"+raw)
	}

	if rapid.Bool().Draw(t, "shuffled") {
		all = rapid.Permutation(all).Draw(t, "order")
	}
	return "{" + strings.Join(all, ",") + rapid.SampledFrom([]string{"}", "}", "}", "} ", "}}"}).Draw(t, "end")
}

// Both readers understand every accepted message in the same way, and it does not change when
// it is encoded and parsed again.
func TestReadersAgree(t *testing.T) {
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SampledFrom(forms()).Draw(t, "form")
		body := mutant(t, in)
		got, err := in.parse(body)
		if err != nil {
			return
		}
		accepted++
		if in.name != "toolset/" {
			agree(t, []byte(body), got)
		}
		out := written(got)
		again, err := in.parse(string(out))
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Fatalf("%+v, %v\nwant %+v\n%s", again, err, got, out)
		}
		if _, ok := got.(wire.Callback); ok && !strings.HasPrefix(string(out), `{"type":"`) {
			t.Fatalf("the type is not first: %s", out)
		}
		after := written(got, []byte("before")...)
		if string(after) != "before"+string(out) {
			t.Fatalf("appended to something else: %s", after)
		}
	})
	if accepted < 5 {
		t.Error("hardly anything was accepted")
	}
}
