package editor_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/editor"
)

// framed returns a message with its header.
func framed(body string) string {
	return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

// TestGarbageIsAnswered checks that malformed input gets one error, and that the next message is
// handled.
func TestGarbageIsAnswered(t *testing.T) {
	const parse, invalid = -32700, -32600
	for name, tt := range map[string]struct {
		sent string
		code int
	}{
		"no header":          {"hello\r\n\r\n", parse},
		"another protocol":   {"GET / HTTP/1.1\r\n", parse},
		"a blank line":       {"\r\n", parse},
		"no length":          {"Content-Type: text\r\n\r\n", parse},
		"no number":          {"Content-Length: many\r\n", parse},
		"a negative length":  {"Content-Length: -1\r\n", parse},
		"a huge length":      {"Content-Length: 99999999999999999999\r\n", parse},
		"too much":           {"Content-Length: 1000000000000\r\n", parse},
		"no JSON":            {framed("{]}"), parse},
		"half a text":        {framed("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"shu"), parse},
		"bytes that aren't":  {framed("\xff\x00\xfe"), parse},
		"a number":           {framed("17"), invalid},
		"no method":          {framed(`{"jsonrpc":"2.0","id":1}`), invalid},
		"an empty batch":     {framed("[]"), invalid},
		"a batch":            {framed(`[{"jsonrpc":"2.0","id":1,"method":"shutdown"}]`), invalid},
		"a method of a kind": {framed(`{"jsonrpc":"2.0","id":1,"method":{}}`), invalid},
		"an id of a kind":    {framed(`{"jsonrpc":"2.0","id":{},"method":"shutdown"}`), invalid},
		"a very long line":   {strings.Repeat("x", 100_000) + "\r\n", parse},
		"a line without end": {strings.Repeat("x", 10_000) + "\x00", 0},
	} {
		t.Run(name, func(t *testing.T) {
			in := tt.sent + framed(`{"jsonrpc":"2.0","id":7,"method":"shutdown"}`) +
				framed(`{"jsonrpc":"2.0","method":"exit"}`)
			out, err := served(t, in)
			if err != nil || !strings.Contains(out, `{"id":7,"result":null,"jsonrpc":"2.0"}`) {
				t.Errorf("ends with %v: %s", err, out)
			}
			said := strings.Count(out, `"id":null`)
			if tt.code != 0 && (said != 1 || !strings.Contains(out, fmt.Sprintf(`"code":%d`, tt.code))) {
				t.Errorf("%d errors: %s", said, out)
			}
		})
	}
}

// TestHeadersAsOthersWriteThem checks names in any case, other headers, and lines that end without
// \r.
func TestHeadersAsOthersWriteThem(t *testing.T) {
	body := `{"jsonrpc":"2.0","id":7,"method":"shutdown"}`
	in := fmt.Sprintf("content-length:%d\nContent-Type: application/x; charset=utf-8\n\n%s", len(body), body) +
		framed(`{"jsonrpc":"2.0","method":"exit"}`)
	out, err := served(t, in)
	if err != nil || !strings.Contains(out, `"id":7,"result":null`) || strings.Contains(out, "error") {
		t.Errorf("ends with %v: %s", err, out)
	}
}

// served returns the answers of a session to an input.
func served(t *testing.T, in string) (answers string, err error) {
	t.Helper()
	c := &client{t: t, dir: t.TempDir()}
	c.write("a.policy.yaml", "schema_version: \"1.0.0\"\npolicy_ref: a.b\nrules: [{id: all, approval: true}]\n")
	var out bytes.Buffer
	err = editor.Serve(t.Context(), strings.NewReader(in), &out, c.load)
	return out.String(), err
}
