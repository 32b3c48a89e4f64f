package wire_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/assent-dev/assent/rap/wire"
)

// member is a member of a message, as in the tables of the protocol.
type member struct {
	name     string
	raw      string
	optional bool
	bad      []string // values that are refused; null counts as absent everywhere
}

// form is one kind of message with all of its members.
type form struct {
	name    string // the name for parse
	members []member
}

func (f form) String() string { return f.name }

// body returns the message with one member's value replaced. If raw is empty, the member is
// left out.
func (f form) body(name, raw string) string {
	var all []string
	for _, m := range f.members {
		if m.name == name {
			m.raw = raw
		}
		if m.raw != "" {
			all = append(all, strconv.Quote(m.name)+":"+m.raw)
		}
	}

	return "{" + strings.Join(all, ",") + "}"
}

func (f form) parse(body string) (any, error) { return parse(f.name, []byte(body)) }

// Values that have the wrong type.
var (
	noText  = []string{`7`, `true`, `{}`, `["a"]`}
	noID    = append([]string{`""`, quoted(8<<10 + 1)}, noText...)
	noFlag  = []string{`0`, `1`, `"true"`, `{}`, `[]`}
	noList  = []string{`"a"`, `{}`, `1`, `false`}
	noRaw   = []string{`"{}"`, `[]`, `1`, `true`}
	noIndex = []string{
		`-1`, `-0`, `-0.5`, `1.0`, `1.5`, `1e0`, `0.0`, `"1"`, `true`, `[1]`, `{}`, `2147483648`, `4294967296`,
		`18446744073709551616`, `99999999999999999999`,
	}
	noURL = append(
		[]string{
			`""`,
			`"/a"`,
			`"a.example/b"`,
			`"//a.example/b"`,
			`"ftp://a.example/"`,
			`"javascript:alert(1)"`,
			`"http:a.example"`,
			`"http:///b"`,
			`"http://"`,
			`"http://u@a.example/"`,
			`"http://u:p@a.example/"`,
			`"http://@a.example/"`,
			`"http://a.example/b#c"`,
			`"http://a.example/#"`,
			`"http://a.example/b c"`,
			`" http://a.example/"`,
			`"http://a.example/\n"`,
			`"http://a.example\\@b.example/"`,
			`"http://a.example/%zz"`,
			`"http://a.example/?q=%2"`,
			`"http://a.exämple/"`,
			`"http://a.example/ä"`,
			`"http://a%2eexample/"`,
			`"http://%80/"`,
			`"http://%c3%a9.example/"`,
			`"http://[::1%25en0]/"`,
			`"http://a.example:0/"`,
			`"http://a.example:65536/"`,
			`"http://a.example:/"`,
			`"http://a.example:x/"`,
			`"http://[::1/"`,
			`"http://a.example/` + strings.Repeat("a", 4096) + `"`,
		},
		noText...,
	)
	noName = append([]string{`""`, quoted(129)}, noText...)
)

func quoted(n int) string { return `"` + strings.Repeat("a", n) + `"` }

func ids() []member {
	return []member{
		{"group_id", `"g"`, false, noID},
		{"id", `"c"`, false, noID},
		{"call_id", `"x"`, true, append(noText, quoted(8<<10+1))},
	}
}

func callback(kind string, members ...member) form {
	head := member{
		"type",
		strconv.Quote(kind),
		false,
		append([]string{`""`, `"tool_Result"`, `"user_choice "`, `"ping"`}, noText...),
	}
	return form{"callback/" + kind, append([]member{head}, members...)}
}

// forms returns the tables 1.2 to 1.10 of the protocol.
func forms() []form {
	return []form{
		{"toolset/", []member{
			{"name", `"n"`, false, noName},
			{"description", `"d"`, true, noText},
			{"endpoint", `"https://a.example/invoke"`, false, noURL},
			{
				"tools",
				`[{"name":"t","description":"d","inputSchema":{"type":"object"},"annotations":{"requiresAuth":"oauth",` +
					`"readOnly":false,"destructive":true,"idempotent":true,"longRunning":false},"displayScript":"s"}]`,
				false,
				append([]string{`[]`, `[1]`, `[null]`, `[[]]`}, noList...),
			},
			{"needsMigration", `true`, true, noFlag},
		}},
		{"invocation/", []member{
			{"operation", `"o"`, false, noID},
			{"arguments", `{"a":1}`, true, append([]string{`{"a":1,"a":1}`}, noRaw...)},
			{"id", `"c"`, false, noID},
			{"call_id", `"x"`, true, noText},
			{"callback_url", `"http://a.example/b"`, false, noURL},
			{"group_id", `"g"`, false, noID},
			{"thread_ancestors", `["r","p"]`, true, append([]string{`[1]`, `[""]`, `["r",null]`}, noList...)},
			{"user_id", `"u"`, true, noText},
		}},
		callback(
			"tool_result",
			append(
				ids(),
				member{"text", `"t"`, true, noText},
				member{
					"content",
					`[{"type":"text","text":"t"}]`,
					true,
					append(
						[]string{
							`[1]`,
							`["t"]`,
							`[{}]`,
							`[{"type":"text"}]`,
							`[{"type":"text","text":1}]`,
							`[{"type":"audio","text":"t"}]`,
							`[{"Type":"text","text":"t"}]`,
							`[{"type":"image","data":"AAAA"}]`,
							`[{"type":"image","mediaType":"image/png"}]`,
							`[{"type":"image","data":"","mediaType":"image/png"}]`,
							`[{"type":"image","data":"A","mediaType":"image/png"}]`,
							`[{"type":"image","data":"AA\n==","mediaType":"image/png"}]`,
							`[{"type":"image","data":"AB==","mediaType":"image/png"}]`,
							`[{"type":"image","data":"AAA=","mediaType":"png"}]`,
							`[{"type":"image","data":"AAA=","mediaType":"image/png;a=b"}]`,
							`[{"type":"image","data":"AAA=","media_type":"image/png"}]`,
						},
						noList...,
					),
				},
				member{
					"display_as",
					`[{"type":"text","content":"t"}]`,
					true,
					append(
						[]string{
							`["t"]`,
							`[{}]`,
							`[{"type":"text"}]`,
							`[{"type":"text","content":{}}]`,
							`[{"type":"diff","content":"t"}]`,
							`[{"type":"diff","content":{"path":"p"}}]`,
							`[{"type":"image","content":{"data":"!","mediaType":"image/png"}}]`,
						},
						noList...,
					),
				},
				member{"subscription", `true`, true, noFlag},
			)...,
		),
		callback("user_choice", append(
			ids(),
			member{"prompt", `"p"`, false, noText},
			member{
				"choices",
				`["a","b"]`,
				false,
				append([]string{`[]`, `[1,2]`, `["a",null]`, `[["a"],["b"]]`, `["a"]`}, noList...),
			},
			member{"default", `1`, false, append([]string{`2`}, noIndex...)},
			member{"response_url", `"http://a.example/b"`, false, noURL},
		)...),
		callback("oauth", append(
			ids(),
			member{
				"auth_url",
				`"https://a.example/b#c"`,
				false,
				append([]string{`"http://a.example/"`, `"https://good.example@a.example/"`}, noText...),
			},
		)...),
		callback("subscription_event",
			member{"group_id", `"g"`, false, noID},
			member{"tool_call_id", `"c"`, false, noID},
			member{"text", `"t"`, false, noText},
			member{"associative", `true`, true, noFlag},
			member{"final", `true`, true, noFlag}),
		callback("view_update",
			member{"group_id", `"g"`, false, noID},
			member{"view_type", `"v"`, false, noID},
			member{"content", `{"a":1}`, false, noRaw}),
		{"answer/", []member{{"id", `"c"`, false, noID}, {"selected", `1`, false, noIndex}}},
		{"notice/close", []member{{"thread_id", `"g"`, false, noID}}},
		{"notice/cancel", []member{{"thread_id", `"g"`, false, noID}, {"tool_call_id", `"c"`, false, noID}}},
		{"notice/status", []member{{"thread_id", `"g"`, false, noID}, {"tool_call_id", `"c"`, false, noID}}},
	}
}

// eachMember calls f for every member of every message, with the parsed complete message.
func eachMember(t *testing.T, f func(t *testing.T, in form, m member, whole any)) {
	for _, in := range forms() {
		whole, err := in.parse(in.body("", ""))
		if err != nil {
			t.Fatalf("%s: %v\n%s", in, err, in.body("", ""))
		}
		for _, m := range in.members {
			t.Run(in.String()+" "+m.name, func(t *testing.T) { f(t, in, m, whole) })
		}
	}
}

// refused checks that a message has an error at a field, with a text that quotes nothing of the
// message.
func refused(t *testing.T, in form, body, field string) {
	t.Helper()
	got, err := in.parse(body)
	var bad *wire.Error
	if !errors.As(err, &bad) || bad.Expected == "" || bad.Field != field && !strings.HasPrefix(bad.Field, field+"[") {
		t.Errorf("%.200s is read as %+v, %v (want an error at %q)", body, got, err, field)
	}
	if _, partial := got.(wire.Invocation); !partial && got != nil && !reflect.ValueOf(got).IsZero() {
		t.Errorf("%.200s: something is returned beside the error: %+v", body, got)
	}
}

// Each member is read, and a value of the wrong type is refused.
func TestMistyped(t *testing.T) {
	eachMember(t, func(t *testing.T, in form, m member, _ any) {
		for _, raw := range m.bad {
			field := m.name
			switch {
			case in.name == "callback/user_choice" && m.name == "choices" && raw == `["a"]`:
				field = "default" // which is then out of range
			case raw == `{"a":1,"a":1}`:
				field = ""
			}

			refused(t, in, in.body(m.name, raw), field)
		}
	})
}

// Required members must be present, null counts as absent, and names are case-sensitive.
func TestMissing(t *testing.T) {
	eachMember(t, func(t *testing.T, in form, m member, whole any) {
		absent, err := in.parse(in.body(m.name, ""))
		if m.optional != (err == nil) {
			t.Fatalf("without it: %+v, %v", absent, err)
		}
		null, nullErr := in.parse(in.body(m.name, "null"))
		if !reflect.DeepEqual(null, absent) || fmt.Sprint(nullErr) != fmt.Sprint(err) {
			t.Errorf("null is %+v, %v, absent is %+v, %v", null, nullErr, absent, err)
		}
		for _, other := range []string{
			strings.ToUpper(m.name),
			strings.ToUpper(m.name[:1]) + m.name[1:],
			m.name + " ",
			strings.ReplaceAll(m.name, "s", "\u017f"),
		} {
			if other == m.name {
				continue
			}
			extra := strings.TrimSuffix(in.body(m.name, ""), "}") + "," + strconv.Quote(other) + ":" + m.raw + "}"
			extra = strings.Replace(extra, "{,", "{", 1)
			got, gotErr := in.parse(extra)
			if !reflect.DeepEqual(got, absent) || fmt.Sprint(gotErr) != fmt.Sprint(err) {
				t.Errorf("%s instead of %s: %+v, %v", other, m.name, got, gotErr)
			}
			beside := strings.TrimSuffix(in.body("", ""), "}") + "," + strconv.Quote(other) + ":[0]}"
			if got, err := in.parse(beside); err != nil || !reflect.DeepEqual(got, whole) {
				t.Errorf("%s beside %s: %+v, %v", other, m.name, got, err)
			}
		}
	})
}

// A repeated name is refused, because two readers may take different values.
func TestRepeated(t *testing.T) {
	eachMember(t, func(t *testing.T, in form, m member, _ any) {
		for _, again := range []string{m.name, fmt.Sprintf(`\u%04x`, m.name[0]) + m.name[1:]} {
			refused(t, in, strings.TrimSuffix(in.body("", ""), "}")+`,"`+again+`":`+m.raw+"}", "")
		}
	})
}

// Unknown members are ignored at every position.
func TestUnknownMembers(t *testing.T) {
	for _, in := range forms() {
		want, _ := in.parse(in.body("", ""))
		for _, extra := range []string{
			`"":null`,
			`"x-acme":{"a":[1,{"b":2}]}`,
			`"Type":"tool_result"`,
			`"version":1.0`,
		} {
			for _, body := range []string{
				"{" + extra + "," + in.body("", "")[1:],
				strings.TrimSuffix(in.body("", ""), "}") + "," + extra + "}",
			} {
				if got, err := in.parse(body); err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("%s: %s is %+v, %v", in, body, got, err)
				}
			}
		}
	}
}

// A result needs text or content, which may be empty.
func TestResultText(t *testing.T) {
	for members, want := range map[string]string{
		``:                            "text or content",
		`,"text":null,"content":null`: "text or content",
		`,"Text":"t"`:                 "text or content",
		`,"display_as":[]`:            "text or content",
		`,"text":""`:                  "",
		`,"content":[]`:               "",
		`,"content":null,"text":"t"`:  "",
	} {
		_, err := wire.ParseCallback([]byte(`{"type":"tool_result","group_id":"g","id":"c"` + members + `}`))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", members, err)
		}
	}
}

// Anything but one JSON object is refused as a whole, and the error quotes nothing of it.
func TestUnsound(t *testing.T) {
	for _, in := range forms() {
		whole := in.body("", "")
		open := strings.TrimSuffix(whole, "}")
		for _, body := range []string{
			"",
			" ",
			"null",
			"true",
			`"a"`,
			"1",
			"[]",
			"[" + whole + "]",
			whole + "x",
			whole + whole,
			whole + "\x00",
			whole + "// a",
			"\ufeff" + whole,
			open,
			open + ",}",
			open + `,"SECRET":}`,
			open + `,"SECRET":"` + "\xff" + `"}`,
			open + `,"SECRET":"\ud800"}`,
			open + `,'a':1}`,
			open + `,"a":NaN}`,
			open + `,"a":01}`,
			open + `,"a":0x1}`,
			open + `,"a":1e400}`,
			open + `,"a":1.}`,
			open + `,"a":+1}`,
			open + `,"SECRET":1,"SECRET":2}`,
			open + `,"a":{"SECRET":1,"SECRET":2}}`,
			open + `,"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "}",
		} {
			refused(t, in, body, "")
			if _, err := in.parse(body); strings.Contains(err.Error(), "SECRET") {
				t.Errorf("%s: %v", in, err)
			}
		}
	}
}

// White space and the order of members have no meaning.
func TestSpelling(t *testing.T) {
	for _, in := range forms() {
		want, _ := in.parse(in.body("", ""))
		var all []string
		for _, m := range slices.Backward(in.members) {
			all = append(all, strconv.Quote(m.name)+"\t: "+m.raw)
		}
		body := " {\n" + strings.Join(all, "\r\n , ") + " }\t"
		if got, err := in.parse(body); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %s is %+v, %v", in, body, got, err)
		}
	}
}

// No error quotes a message, which may contain a token.
func TestErrorsTellNothing(t *testing.T) {
	for _, in := range forms() {
		for _, broken := range in.members {
			for _, bad := range append([]string{""}, broken.bad...) {
				leaky := in
				leaky.members = slices.Clone(in.members)
				for i, m := range leaky.members {
					if strings.HasPrefix(m.raw, `"`) && m.name != "type" {
						leaky.members[i].raw = strings.TrimSuffix(m.raw, `"`) + `SECRET"`
					}
				}
				body := leaky.body(broken.name, strings.Replace(bad, "a.ex", "SECRET.ex", 1))
				if _, err := in.parse(body); err != nil && strings.Contains(err.Error(), "SECRET") {
					t.Errorf("%v\n%s", err, body)
				}
			}
		}
	}

	for _, in := range forms() {
		if strings.HasPrefix(in.name, "callback/") {
			_, err := in.parse(in.body("type", `"SECRET"`))
			if err == nil || strings.Contains(err.Error(), "SECRET") || !strings.Contains(err.Error(), "user_choice") {
				t.Errorf("unknown type: %v", err)
			}
		}
	}
}
