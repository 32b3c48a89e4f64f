package wire_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/assent-dev/assent/rap/wire"
)

// After an error the returned members are enough to answer the sender, or empty.
func TestInvocationPartial(t *testing.T) {
	sender := wire.Invocation{ID: "c", CallID: ptr("x"), CallbackURL: "http://a.example/b", GroupID: "g"}
	const ids = `"id":"c","call_id":"x","callback_url":"http://a.example/b","group_id":"g"`
	cases := []struct {
		name, body string
		want       wire.Invocation
	}{
		{"no operation", `{` + ids + `}`, sender},
		{"operation mistyped", `{"operation":1,` + ids + `}`, sender},
		{"arguments a string", `{"operation":"o","arguments":"{}",` + ids + `}`, sender},
		{"arguments repeat a key", `{"operation":"o","arguments":{"a":1,"a":2},` + ids + `}`, sender},
		{"arguments cut in a surrogate", `{"operation":"o","arguments":{"a":"\ud83d"},` + ids + `}`, sender},
		{"arguments that are no JSON", `{"operation":"o","arguments":{"a":tru},` + ids + `}`, sender},
		{
			"arguments too deep",
			`{"operation":"o","arguments":{"a":` + strings.Repeat("[", 200) + strings.Repeat(
				"]",
				200,
			) + `},` + ids + `}`,
			sender,
		},
		{"user mistyped", `{"operation":"o","user_id":1,` + ids + `}`, sender},
		{"ancestors mistyped", `{"operation":"o","thread_ancestors":[1],` + ids + `}`, sender},
		{
			"no id",
			`{"operation":"o","callback_url":"http://a.example/b","group_id":"g"}`,
			wire.Invocation{CallbackURL: "http://a.example/b", GroupID: "g"},
		},
		{
			"bad address",
			`{"operation":"o","id":"c","callback_url":"http://u@a.example/b","group_id":"g"}`,
			wire.Invocation{ID: "c", GroupID: "g"},
		},
		{
			"bad call_id",
			`{"operation":"o","id":"c","call_id":7,"callback_url":"http://a.example/b","group_id":"g"}`,
			wire.Invocation{ID: "c", CallbackURL: "http://a.example/b", GroupID: "g"},
		},
		{
			"long ids",
			`{"operation":"o","id":` + quoted(9000) + `,"call_id":` + quoted(
				9000,
			) + `,"callback_url":"http://a.example/b","group_id":"g"}`,
			wire.Invocation{CallbackURL: "http://a.example/b", GroupID: "g"},
		},
		{
			"bad text in an id",
			`{"operation":"o","id":"` + "\xff" + `","callback_url":"http://a.example/b","group_id":"g"}`,
			wire.Invocation{CallbackURL: "http://a.example/b", GroupID: "g"},
		},
		{"address twice", `{"operation":"o",` + ids + `,"callback_url":"http://b.example/"}`, wire.Invocation{}},
		{"id twice, one escaped", `{"operation":"o",` + ids + `,"\u0069d":"d"}`, wire.Invocation{}},
		{"two objects", `{"operation":"o",` + ids + `}{}`, wire.Invocation{}},
		{"cut short", `{"operation":"o",` + ids, wire.Invocation{}},
		{"no object", `["o",{` + ids + `}]`, wire.Invocation{}},
		{"empty", ``, wire.Invocation{}},
		{"too large", `{"operation":"o",` + ids + `,"arguments":{"a":` + quoted(16<<20) + `}}`, wire.Invocation{}},
	}
	for _, c := range cases {
		if got, err := wire.ParseInvocation([]byte(c.body)); err == nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

// Parsed messages do not share memory with the body.
func TestParseKeepsNothing(t *testing.T) {
	for name, want := range references() {
		body := sent(t, name)
		got, err := parse(name, body)
		clear(body)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
