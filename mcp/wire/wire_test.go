package wire_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/assent-dev/assent/mcp/wire"
)

// refusal returns the message of an error, or an empty string if there is none.
func refusal(err *wire.Error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func parse(text string) (wire.Message, *wire.Error) { return wire.Parse([]byte(text), wire.Limits()) }

func TestParseRefusesWhatTwoReadersCouldReadDifferently(t *testing.T) {
	for text, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`:                             "",
		`{"jsonrpc":"2.0","id":"ü","method":"ping","params":{}}`:               "",
		`{"jsonrpc":"2.0","id":-7,"method":"ping","more":[1,{"a":1}]}`:         "",
		`{"jsonrpc":"2.0","id":9007199254740992,"method":"ping"}`:              "",
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`:              "id: expected a string",
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`:                           "id: expected a string",
		`{"jsonrpc":"2.0","id":1e0,"method":"ping"}`:                           "id: expected a string",
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`:                          "id: expected a string",
		`{"jsonrpc":"2.0","id":true,"method":"ping"}`:                          "id: expected a string",
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`:                            "id: expected a string",
		`{"jsonrpc":"2.0","id":"\ud800","method":"ping"}`:                      "id: expected a string",
		`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`:       `"method" stands there twice`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","\u006dethod":"tools/call"}`:  `"method" stands there twice`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"params":{}}`:     `"params" stands there twice`,
		`{"jsonrpc":"2.0","id":1,"Method":"ping"}`:                             `unknown member "Method": expected "method"`,
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`:                             `jsonrpc: expected "2.0"`,
		`{"id":1,"method":"ping"}`:                                             `jsonrpc: expected "2.0"`,
		`{"jsonrpc":"2.0","id":1,"method":1}`:                                  "method: expected a string",
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`:                 "params: expected an object, found an array",
		`{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`:                 "found both",
		`{"jsonrpc":"2.0","id":1}`:                                             "expected a method, a result or an error",
		`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1}}`:              "expected a method, a result or an error",
		`{"jsonrpc":"2.0","id":1,"result":[]}`:                                 "result: expected an object",
		`{"jsonrpc":"2.0","id":1,"result":{"isError":true,"isError":false}}`:   "-32600",
		`{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}`:                        "error: ",
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what"}}`: "",
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`:                           "found a batch",
		`{"jsonrpc":"2.0"`:                      "-32700",
		``:                                      "-32700",
		`null`:                                  "-32700",
		"{\"jsonrpc\":\"2.0\",\"id\":\"\x00\"}": "NUL",
		`{"jsonrpc":"2.0","method":"x"}{"a":"b"}`: "-32700",
	} {
		_, err := parse(text)
		if got := refusal(err); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, expected %q", text, got, want)
		}
	}
}

func TestParseBoundsSizeAndDepth(t *testing.T) {
	nested := func(levels int) string {
		inside := strings.Repeat("[", levels) + strings.Repeat("]", levels)
		return `{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":` + inside + `}}`
	}
	if _, err := parse(nested(998)); err != nil {
		t.Errorf("1,000 levels: %v", err)
	}
	if _, err := parse(nested(999)); err == nil || err.Code != wire.CodeInvalidRequest {
		t.Errorf("1,001 levels: %v", err)
	}
	quoted := `{"a":"` + strings.Repeat("[", 2000) + `"}`
	if _, err := parse(quoted); err == nil || strings.Contains(err.Message, "deeper") {
		t.Errorf("brackets in a string: %v", err)
	}

	lim := wire.Limits()
	lim.MaxBytes = 10
	_, err := wire.Parse([]byte(`{"jsonrpc":"2.0","method":"x"}`), lim)
	if err == nil || err.Code != wire.CodeInvalidRequest {
		t.Errorf("a long message: %v", err)
	}
}

func TestIDsKeepTheirBytesAndCompareByMeaning(t *testing.T) {
	read := func(id string) wire.ID {
		m, err := parse(`{"jsonrpc":"2.0","id":` + id + `,"method":"x"}`)
		if err != nil || m.ID.Text() != id {
			t.Fatalf("%s became %s: %v", id, m.ID.Text(), err)
		}
		return m.ID
	}
	if read(`"1"`).Key() == read(`1`).Key() {
		t.Error("a string is not the number")
	}
	if read(`"a"`).Key() != read(`"\u0061"`).Key() {
		t.Error("two spellings of one string are one id")
	}
}

func TestMessagesComeBackByteForByte(t *testing.T) {
	for _, text := range []string{
		`{"jsonrpc":"2.0","id":"\u00fc","method":"tools/call","params":{ "name" : "x", "arguments":{"b":1.0,"a":1e2} }}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":7,"result":{ "content":[],"extra":{"z":1,"a":2}}}`,
		`{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no","data":{"a": 1}}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}`,
	} {
		m, bad := parse(text)
		if bad != nil {
			t.Fatalf("%s: %v", text, bad)
		}
		again, err := m.Append(nil)
		if err != nil || string(again) != text {
			t.Errorf("%s\nbecame\n%s (%v)", text, again, err)
		}
	}
}

func TestAppendWritesOneLine(t *testing.T) {
	m, bad := parse("{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{\r\n\"a\":1\n}}")
	if bad != nil {
		t.Fatal(bad)
	}
	got, err := m.Append(nil)
	if want := `{"jsonrpc":"2.0","method":"x","params":{  "a":1 }}`; err != nil || string(got) != want {
		t.Errorf("got %s (%v), expected %s", got, err, want)
	}
}

func TestReadCallRefusesWhatNoApproverWouldSee(t *testing.T) {
	for params, want := range map[string]string{
		`{"name":"x"}`:                           "",
		`{"name":"x","arguments":{"a":1,"a":2}}`: "",
		`{"name":"x","_meta":{"progressToken":1,"com.example/a":2}}`:              "",
		`{"name":"x","task":{"ttl":1000},"inputResponses":{},"requestState":"s"}`: "",
		`{"name":"x","name":"y"}`:                                    `"name" stands there twice`,
		`{"name":"x","arguments":{},"arguments":{}}`:                 `"arguments" stands there twice`,
		`{"Name":"x"}`:                                               `unknown member "Name": expected "name"`,
		`{"name":"x","Arguments":{}}`:                                `expected "arguments"`,
		`{"name":"x","dryRun":true}`:                                 `unknown member "dryRun"`,
		`{"name":""}`:                                                "params.name",
		`{}`:                                                         "params.name",
		`{"name":"x","arguments":[]}`:                                "params.arguments: expected an object, found an array",
		`{"name":"x","arguments":null}`:                              "params.arguments: expected an object",
		`{"name":"x","task":{"ttl":"soon"}}`:                         "params.task",
		`{"name":"x","inputResponses":[]}`:                           "params.inputResponses",
		`{"name":"x","requestState":1}`:                              "params.requestState",
		`{"name":"x","_meta":[]}`:                                    "params._meta: expected an object",
		`{"name":"x","_meta":{"progressToken":1.5}}`:                 "params._meta.progressToken",
		`{"name":"x","_meta":{"a":1,"a":2}}`:                         "params._meta",
		`{"name":"x","_meta":{"progressToken":1,"ProgressToken":2}}`: "params._meta",
		`{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":1}}`:         "params._meta.io.modelcontextprotocol/protocolVersion",
		`{"name":"x","_meta":{"io.modelcontextprotocol/clientCapabilities":"none"}}`: "params._meta.io.modelcontextprotocol/clientCapabilities",
	} {
		_, err := wire.ReadCall([]byte(params))
		if got := refusal(err); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, expected %q", params, got, want)
		}
	}
}

func TestReadCallKeepsArgumentsByteForByte(t *testing.T) {
	const args = `{ "b":1.0, "a":"\u0041", "n":12345678901234567890 }`
	call, bad := wire.ReadCall([]byte(`{"arguments":` + args + `,"name":"x"}`))
	if bad != nil {
		t.Fatal(bad)
	}
	if string(call.Arguments) != args {
		t.Errorf("got %s, expected %s", call.Arguments, args)
	}
}

func TestReadLogRefusesUnknownLevelsAndLinesWithoutData(t *testing.T) {
	const params = `{"level":"error","logger":"disk","data":{"a": 1}}`
	line, bad := wire.ReadLog([]byte(params))
	if bad != nil || line.Level != "error" || line.Logger != "disk" || string(line.Data) != `{"a": 1}` {
		t.Errorf("read %+v, %v", line, bad)
	}
	written, err := line.Params()
	if err != nil || string(written) != params {
		t.Errorf("wrote %s (%v)", written, err)
	}

	for _, params := range []string{
		``,
		`{}`,
		`{"level":"loud","data":1}`,
		`{"level":"Error","data":1}`,
		`{"level":"","data":1}`,
		`{"level":3,"data":1}`,
		`{"level":"error"}`,
		`{"level":"error","logger":3,"data":1}`,
	} {
		if _, bad := wire.ReadLog([]byte(params)); bad == nil || bad.Code != wire.CodeInvalidParams {
			t.Errorf("%s: got %v, expected the error %d", params, bad, wire.CodeInvalidParams)
		}
	}
}

func TestMetaTellsTheProtocolsKeysFromForeignOnes(t *testing.T) {
	meta, bad := wire.ReadMeta([]byte(`{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
		"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"io.modelcontextprotocol/new":1,
		"traceparent":"00-1","com.mcp/x":3,"org.example/y":4,"progressToken":"p"}}`))
	if bad != nil {
		t.Fatal(bad)
	}
	if !meta.IsModern() || len(meta.Trace) != 1 || meta.Progress.Text() != `"p"` {
		t.Errorf("read %+v", meta)
	}
	if len(meta.Foreign) != 1 || meta.Foreign[0].Name != "org.example/y" {
		t.Errorf("foreign keys: %+v", meta.Foreign)
	}

	text, err := (&wire.Meta{Version: wire.V20260728, Progress: wire.Number(4), Foreign: meta.Foreign}).Append(nil)
	want := `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","progressToken":4,"org.example/y":4}`
	if err != nil || string(text) != want {
		t.Errorf("wrote %s (%v)", text, err)
	}
}

func TestTextBeforeContentKeepsTheRest(t *testing.T) {
	for result, want := range map[string]string{
		`{"a":1,"content":[ {"b": 2} ]}`: `{"a":1,"content":[{"text":"n","type":"text"}, {"b": 2} ]}`,
		`{"content": [ ]}`:               `{"content":[{"text":"n","type":"text"}]}`,
		`{"content":null,"x":[]}`:        `{"content":[{"text":"n","type":"text"}],"x":[]}`,
		`{}`:                             `{"content":[{"text":"n","type":"text"}]}`,
	} {
		if got := wire.WithText([]byte(result), "n"); string(got) != want {
			t.Errorf("%s\nbecame   %s\nexpected %s", result, got, want)
		}
	}
}

func TestForClientFitsTheErasAndKeepsTheRest(t *testing.T) {
	const foreign = `"content":[ {"type":"text"} ],"x":{"b": 1},"_meta":{ "a/b":1 }`
	for _, c := range []struct {
		result string
		modern bool
		want   string
	}{
		{`{` + foreign + `}`, false, `{` + foreign + `}`},
		{`{` + foreign + `}`, true, `{"resultType":"complete",` + foreign + `}`},
		{`{` + foreign + `,"resultType":"complete"}`, false, `{` + foreign + `}`},
		{`{"_meta":{"io.modelcontextprotocol/serverInfo":{},"a/b": 1}}`, false, `{"_meta":{"a/b":1}}`},
		{`{"resultType":"input_required"}`, true, `{"resultType":"input_required"}`},
	} {
		if got := wire.ForClient([]byte(c.result), c.modern); string(got) != c.want {
			t.Errorf("%s (modern %v)\nbecame   %s\nexpected %s", c.result, c.modern, got, c.want)
		}
	}
}

func TestSaidIsAResultThatModelsRead(t *testing.T) {
	said := wire.Said{Text: "Not run.", IsError: true, Meta: []byte(`{"a/b":1}`)}
	got, err := said.Append(nil, true)
	want := `{"resultType":"complete","content":[{"type":"text","text":"Not run."}],"isError":true,"_meta":{"a/b":1}}`
	if err != nil || string(got) != want {
		t.Errorf("got %s (%v)", got, err)
	}
}

func TestProgressIsReadAndWritten(t *testing.T) {
	const params = `{"progressToken":"p","progress":1.5,"total":3,"message":"half"}`
	p, bad := wire.ReadProgress([]byte(params))
	if bad != nil || p.Progress != 1.5 || p.Total != 3 || p.Message != "half" {
		t.Fatalf("read %+v, %v", p, bad)
	}
	got, err := p.Params()
	if err != nil || string(got) != params {
		t.Errorf("wrote %s (%v)", got, err)
	}
	for _, params := range []string{
		`{}`,
		`{"progressToken":1}`,
		`{"progressToken":1,"progress":"x"}`,
		`{"progress":1}`,
	} {
		if _, bad := wire.ReadProgress([]byte(params)); bad == nil {
			t.Errorf("%s was taken", params)
		}
	}
}

func TestBatchIsSplitForTheOneVersionThatHasThem(t *testing.T) {
	all, is, bad := wire.Batch([]byte(` [ {"a":1} , {"b":[2]} ] `), wire.Limits())
	if !is || bad != nil || fmt.Sprintf("%s", all) != `[{"a":1} {"b":[2]}]` {
		t.Errorf("got %s, %v, %v", all, is, bad)
	}
	if _, is, _ := wire.Batch([]byte(`{}`), wire.Limits()); is {
		t.Error("an object is no batch")
	}
	for _, text := range []string{`[]`, `[{}`, `[{},]`} {
		if _, is, bad := wire.Batch([]byte(text), wire.Limits()); !is || bad == nil {
			t.Errorf("%s was taken", text)
		}
	}
}

func TestLinesPassOverWhatIsTooLong(t *testing.T) {
	in := "one\r\n\n" + strings.Repeat("x", 200<<10) + "\ntwo\nhalf"
	lines := wire.NewLines(strings.NewReader(in), 100<<10)
	var got []string
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		got = append(got, fmt.Sprintf("%s%v", line, err))
	}

	want := []string{"one<nil>", wire.ErrTooLong.Error(), "two<nil>"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q, expected %q", got, want)
	}
}

func TestPipeWritesOneLineForEachMessage(t *testing.T) {
	var out bytes.Buffer
	pipe := wire.NewPipe(&out)
	for n := range 3 {
		if err := pipe.Write(wire.Answer(wire.Number(int64(n)), []byte("{}"), nil)); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Count(out.String(), "\n"); got != 3 {
		t.Errorf("%d lines: %q", got, out.String())
	}
}

// FuzzParse: an accepted message is written so that it parses to the same message again, and
// nothing panics.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":1},"_meta":{}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","result":{"content":[]}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","result":{"content":[]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, bad := wire.Parse(text, wire.Limits())
		if bad != nil {
			return
		}
		_, _ = wire.ReadCall(m.Params)
		_, _ = wire.ReadMeta(m.Params)
		once, err := m.Append(nil)
		if err != nil {
			t.Fatalf("taken and not writable: %v", err)
		}
		again, bad := wire.Parse(once, wire.Limits())
		if bad != nil || again.ID.Key() != m.ID.Key() || again.Method != m.Method {
			t.Fatalf("%s reads differently: %v", once, bad)
		}
	})
}

func TestLogLevelsAreOrdered(t *testing.T) {
	levels := []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
	for rank, level := range levels {
		if got := wire.LogRank(level); got != rank {
			t.Errorf("%s has rank %d, expected %d", level, got, rank)
		}
		if _, bad := wire.ReadLog(fmt.Appendf(nil, `{"level":%q,"data":1}`, level)); bad != nil {
			t.Errorf("%s: %v", level, bad)
		}
	}
	for _, level := range []string{"", "trace", "Debug", "warn"} {
		if got := wire.LogRank(level); got != -1 {
			t.Errorf("%q has rank %d, expected -1", level, got)
		}
	}
}

func TestLogLinesAreReadAndWritten(t *testing.T) {
	for _, params := range []string{
		`{"level":"debug","logger":"db","data":{ "a": 1.0 }}`,
		`{"level":"emergency","data":"text"}`,
		`{"level":"info","data":false}`,
	} {
		l, bad := wire.ReadLog([]byte(params))
		if bad != nil {
			t.Errorf("%s: %v", params, bad)
			continue
		}
		if written, err := l.Params(); err != nil || string(written) != params {
			t.Errorf("%s\nbecame %s (%v)", params, written, err)
		}
	}
}

func TestReadLogRefusesUnknownLevelsAndMissingData(t *testing.T) {
	for _, params := range []string{
		``,
		`{}`,
		`{"data":1}`,
		`{"level":"","data":1}`,
		`{"level":"trace","data":1}`,
		`{"level":4,"data":1}`,
		`{"level":"info"}`,
		`{"level":"info","data":null}`,
		`{"level":"info","logger":1,"data":1}`,
		`{"level":"info","data":1,"data":2}`,
		`[]`,
	} {
		if l, bad := wire.ReadLog([]byte(params)); bad == nil || bad.Code != wire.CodeInvalidParams {
			t.Errorf("%s was read as %+v, error %v", params, l, bad)
		}
	}
}

// TestUnreadableMessagesKeepTheirID: whoever waits for the answer learns that it can't be read.
func TestUnreadableMessagesKeepTheirID(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	for text, want := range map[string][2]string{
		`{"jsonrpc":"2.0","result":` + deep + `,"id":7}`:        {"7", ""},
		`{"id" : "a\"b" , "result":` + deep:                     {`"a\"b"`, ""},
		`{"method":"tools/call","params":` + deep + `,"id":7}`:  {"7", "tools/call"},
		`{"result":{"id":1,"a":[{"id":2}]},"id":7,"result":{}}`: {"7", ""},
		`{"result":"\"id\":8,","id":7`:                          {"7", ""},
		`{"id":7,"result":` + deep + `,"id":8}`:                 {"", ""},
		`{"result":["id",{"id":1}],"x":` + deep + `}`:           {"", ""},
		`{"id":` + deep + `}`:                                   {"", ""},
		`{"id":` + strings.Repeat("1", 10_000) + `,"x":` + deep: {"", ""},
		`[{"id":7}]`: {"", ""}, `{`: {"", ""}, `{"id":`: {"", ""}, `{"id`: {"", ""}, `{"method":"`: {"", ""},
	} {
		m, bad := wire.Parse([]byte(text), wire.Limits())
		id := ""
		if !m.ID.IsZero() {
			id = m.ID.Text()
		}
		if bad == nil || id != want[0] || m.Method != want[1] {
			t.Errorf("%.60s: id %s, method %q, %v", text, id, m.Method, bad)
		}
	}
}
