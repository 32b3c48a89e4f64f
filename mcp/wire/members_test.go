package wire_test

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/mcp/wire"
)

func TestVersionsHaveAnEra(t *testing.T) {
	for version, want := range map[string][2]bool{
		"2024-11-05": {true, false},
		"2025-03-26": {true, false},
		"2025-06-18": {true, false},
		"2025-11-25": {true, false},
		"2026-07-28": {false, true},
		"2027-01-01": {false, false},
		"":           {false, false},
	} {
		if got := [2]bool{wire.IsLegacy(version), wire.IsModern(version)}; got != want {
			t.Errorf("%q: legacy and modern %v, expected %v", version, got, want)
		}
	}
	if newest := wire.Legacy()[0]; newest != "2025-11-25" {
		t.Errorf("the newest legacy version is %s", newest)
	}
}

func TestCodesThatOnlyModernServersSend(t *testing.T) {
	for code, want := range map[int]bool{
		-32020: true, -32021: true, -32022: true,
		-32700: false, -32600: false, -32601: false, -32602: false, -32603: false, -32002: false, -32042: false,
		-32019: false, -32023: false, 0: false,
	} {
		if wire.ModernCode(code) != want {
			t.Errorf("%d: %v", code, !want)
		}
	}
}

// A reader that ignores case would take these for members of the message.
func TestParseRefusesOtherSpellingsOfItsMembers(t *testing.T) {
	for text, want := range map[string]string{
		`{"JSONRPC":"2.0","jsonrpc":"2.0","id":1,"method":"x"}`:       `"JSONRPC": expected "jsonrpc"`,
		`{"jsonrpc":"2.0","Id":1,"id":1,"method":"x"}`:                `"Id": expected "id"`,
		`{"jsonrpc":"2.0","id":1,"method":"x","Params":{}}`:           `"Params": expected "params"`,
		`{"jsonrpc":"2.0","id":1,"result":{},"RESULT":{}}`:            `"RESULT": expected "result"`,
		`{"jsonrpc":"2.0","id":1,"result":{},"eRROR":{}}`:             `"eRROR": expected "error"`,
		`{"jsonrpc":"2.0","id":null,"method":"x","error":{"code":1}}`: "id: expected a string",
		`{"jsonrpc":"2.0","id":true,"error":{"code":1}}`:              "id: expected a string",
		`{"jsonrpc":"2.0","id":null,"result":{}}`:                     "id: expected a string",
		`{"jsonrpc":"2.0","id":1,"method":"","params":{}}`:            "method: expected a string",
		`{"jsonrpc":"2.0","id":1,"method":"x","error":{"code":1}}`:    "found both",
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":2}}`:     "error: ",
		`{"jsonrpc":"2.0","id":1,"error":{"code":2147483648}}`:        "error: ",
		`{"jsonrpc":"2.0","id":1,"error":{"code":-2147483649}}`:       "error: ",
		`{"jsonrpc":"2.0","id":1,"error":{"code":2147483647}}`:        "",
		`{"jsonrpc":"2.0","id":1,"error":{"code":-2147483648}}`:       "",
		`[`: "found a batch",
		"\x00{\"jsonrpc\":\"2.0\",\"method\":\"x\"}": "NUL",
	} {
		_, err := parse(text)
		if got := refusal(err); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, expected %q", text, got, want)
		}
	}
}

func TestReadCallReadsItsMembers(t *testing.T) {
	const responses, meta = `{"q":{"action":"accept"}}`, `{"progressToken":"p","a/b":1}`
	call, bad := wire.ReadCall([]byte(`{"name":"x","task":{"ttl":60},"inputResponses":` + responses +
		`,"requestState":"s","_meta":` + meta + `}`))
	if bad != nil {
		t.Fatal(bad)
	}
	if string(call.Arguments) != "{}" || call.Task == nil || call.Task.TTL != 60 || call.State != "s" ||
		string(call.Responses) != responses {
		t.Errorf("read %+v", call)
	}
	if call.Meta.Progress.Text() != `"p"` || len(call.Meta.Foreign) != 1 {
		t.Errorf("read _meta %+v", call.Meta)
	}

	for params, want := range map[string]string{
		``:                                            "params.name",
		`{"name":"x","_META":{}}`:                     `expected "_meta"`,
		`{"name":"x","Task":{}}`:                      `expected "task"`,
		`{"name":"x","InputResponses":{}}`:            `expected "inputResponses"`,
		`{"name":"x","RequestState":""}`:              `expected "requestState"`,
		`{"name":"x","task":{"ttl":-1}}`:              "params.task",
		`{"name":"x","task":{"ttl":0}}`:               "",
		`{"name":"x","task":{}}`:                      "",
		`{"name":"x","inputResponses":{"a":1,"a":2}}`: "params.inputResponses",
	} {
		_, err := wire.ReadCall([]byte(params))
		if got := refusal(err); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, expected %q", params, got, want)
		}
	}
}

func TestMetaIsReadAndWritten(t *testing.T) {
	const meta = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{ "sampling":{} },` +
		`"io.modelcontextprotocol/clientInfo":{"name":"x"},"io.modelcontextprotocol/logLevel":"info",` +
		`"progressToken":12,"traceparent":"00-1","tracestate":"a=1","baggage":"b=2","org.example/y":4}`
	m, bad := wire.ReadMeta([]byte(`{"_meta":` + meta + `}`))
	if bad != nil {
		t.Fatal(bad)
	}
	if len(m.Trace) != 3 || len(m.Foreign) != 1 {
		t.Errorf("%d keys of traces and %d foreign ones", len(m.Trace), len(m.Foreign))
	}
	if text, err := m.Append(nil); err != nil || string(text) != meta {
		t.Errorf("wrote %s (%v)", text, err)
	}

	for params, want := range map[string]string{
		``:             "",
		`{}`:           "",
		`{"_meta":{}}`: "",
		`{"_META":{}}`: `expected "_meta"`,
		`{"_meta":{"io.modelcontextprotocol/protocolVersion":""}}`:   "protocolVersion: not what",
		`{"_meta":{"io.modelcontextprotocol/logLevel":1}}`:           "logLevel: not what",
		`{"_meta":{"io.modelcontextprotocol/clientInfo":"x"}}`:       "clientInfo: not what",
		`{"_meta":{"io.modelcontextprotocol/clientCapabilities":1}}`: "clientCapabilities: not what",
	} {
		_, err := wire.ReadMeta([]byte(params))
		if got := refusal(err); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, expected %q", params, got, want)
		}
	}
}

// Each key alone makes _meta non-empty.
func TestMetaIsEmptyWithoutKeys(t *testing.T) {
	other := []jsonmsg.Member{{Name: "a/b", Raw: []byte("1")}}
	for name, c := range map[string]struct {
		meta          wire.Meta
		empty, modern bool
	}{
		"nothing":      {wire.Meta{}, true, false},
		"version":      {wire.Meta{Version: wire.V20260728}, false, true},
		"capabilities": {wire.Meta{Capabilities: []byte("{}")}, false, true},
		"client":       {wire.Meta{ClientInfo: []byte("{}")}, false, false},
		"log level":    {wire.Meta{LogLevel: "info"}, false, false},
		"progress":     {wire.Meta{Progress: wire.Number(1)}, false, false},
		"trace":        {wire.Meta{Trace: other}, false, false},
		"foreign":      {wire.Meta{Foreign: other}, false, false},
	} {
		if c.meta.IsEmpty() != c.empty || c.meta.IsModern() != c.modern {
			t.Errorf("%s: empty %v, modern %v", name, c.meta.IsEmpty(), c.meta.IsModern())
		}
	}
}

func TestReservedKeys(t *testing.T) {
	for key, want := range map[string]bool{
		"io.modelcontextprotocol/x": true,
		"com.mcp/x":                 true,
		"com.mcp.tools/x":           true,
		"mcp/x":                     false,
		"com.example.mcp/x":         false,
		"com.mcp":                   false,
		"progressToken":             false,
		"":                          false,
	} {
		if wire.Reserved(key) != want {
			t.Errorf("%q: %v", key, !want)
		}
	}
}

func TestResultTypeIsCompleteUnlessAResultNamesOne(t *testing.T) {
	for result, want := range map[string]string{
		`{}`:                              "complete",
		`{"resultType":""}`:               "complete",
		`{"resultType":7}`:                "complete",
		`{"resultType":"task"}`:           "task",
		`{"resultType":"input_required"}`: "input_required",
	} {
		if got := wire.ResultType([]byte(result)); got != want {
			t.Errorf("%s: %s, expected %s", result, got, want)
		}
	}
}

func TestWithMetaAddsKeysAndKeepsTheRest(t *testing.T) {
	for _, c := range []struct{ result, meta, want string }{
		{`{}`, `{"a":1}`, `{"_meta":{"a":1}}`},
		{`{ "x" : 1.0 }`, `{"a":1}`, `{ "x" : 1.0,"_meta":{"a":1} }`},
		{`{"_meta":{"b": 2}}`, `{"a":1}`, `{"_meta":{"b": 2,"a":1}}`},
		{`{"_meta":{"b":2},"x":1}`, `{"a":1,"c":3}`, `{"x":1,"_meta":{"b":2,"a":1,"c":3}}`},
		{`{"_meta":{"a":0}}`, `{"a":1}`, `{"_meta":{"a":1}}`},
		{`{"_meta":"text"}`, `{"a":1}`, `{"_meta":{"a":1}}`},
	} {
		if got := wire.WithMeta([]byte(c.result), []byte(c.meta)); string(got) != c.want {
			t.Errorf("%s with %s: %s, expected %s", c.result, c.meta, got, c.want)
		}
	}
}

func TestProgressWritesATotalThatIsGiven(t *testing.T) {
	for _, params := range []string{
		`{"progressToken":7,"progress":0,"total":1}`,
		`{"progressToken":7,"progress":0.5}`,
	} {
		p, bad := wire.ReadProgress([]byte(params))
		if bad != nil {
			t.Errorf("%s: %v", params, bad)
			continue
		}
		if got, err := p.Params(); err != nil || string(got) != params {
			t.Errorf("%s became %s (%v)", params, got, err)
		}
	}
}
