package catalog

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const marked = `{"name":"a","inputSchema":{"type":"object","properties":{
	"region":{"type":"string","x-mcp-header":"Region"},
	"n":{"type":"integer","x-mcp-header":"N"},
	"deep":{"properties":{"dry":{"type":"boolean","x-mcp-header":"Dry"}}}}}}`

// TestHeadersRepeatTheArguments: they repeat the arguments that are sent, including an edit.
func TestHeadersRepeatTheArguments(t *testing.T) {
	tool := Read([]byte(marked))
	for args, want := range map[string]string{
		`{"region":"eu","n":5,"deep":{"dry":true}}`:  "[{Mcp-Param-Region eu} {Mcp-Param-N 5} {Mcp-Param-Dry true}]",
		`{"region":"us","n":5,"deep":{"dry":false}}`: "[{Mcp-Param-Region us} {Mcp-Param-N 5} {Mcp-Param-Dry false}]",
		`{"region":null,"other":1}`:                  "[]",
		`{}`:                                         "[]",
		`{"deep":[{"dry":true}]}`:                    "[]",
		`{"n":5.0}`:                                  "[{Mcp-Param-N 5}]",
		`{"n":-9007199254740991}`:                    "[{Mcp-Param-N -9007199254740991}]",
		`{"region":"ü"}`:                             "[{Mcp-Param-Region =?base64?w7w=?=}]",
		`{"region":" eu"}`:                           "[{Mcp-Param-Region =?base64?IGV1?=}]",
		`{"region":"a\r\nX: y"}`:                     "[{Mcp-Param-Region =?base64?YQ0KWDogeQ==?=}]",
		`{"region":"=?base64?ZXU=?="}`:               "[{Mcp-Param-Region =?base64?PT9iYXNlNjQ/WlhVPT89?=}]",
		`{"n":9007199254740993}`:                     `the argument "n": expected a value of the type integer`,
		`{"n":1.5}`:                                  `the argument "n"`,
		`{"n":"5"}`:                                  `the argument "n"`,
		`{"region":{}}`:                              `the argument "region": expected a value of the type string`,
		`{"deep":{"dry":0}}`:                         `the argument "deep.dry"`,
		`{"n":1,"n":2}`:                              `the arguments: line 1`,
	} {
		params, err := tool.Params([]byte(args))
		got := fmt.Sprint(params)
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: %s, expected %s", args, got, want)
		}
	}

	if params, err := Read(plainTool("a", "")).Params([]byte(`{`)); params != nil || err != nil {
		t.Error("a tool without marks:", params, err)
	}
}

// TestCheckParams: a header that contradicts the body is refused.
func TestCheckParams(t *testing.T) {
	tool := Read([]byte(marked))
	for _, c := range []struct {
		args, headers, want string
	}{
		{`{"region":"eu","n":5}`, "Region=eu N=5", ""},
		{`{"region":"eu","n":5}`, "Region==?base64?ZXU=?= N=5.0", ""},
		{`{"region":"eu"}`, "Region=eu Other=x", ""},
		{`{}`, "", ""},
		{`{"region":"eu"}`, "", "the header Mcp-Param-Region is missing"},
		{`{"region":"eu"}`, "Region=us", "the header Mcp-Param-Region differs from the argument"},
		{`{"region":"eu"}`, "Region=EU", "the header Mcp-Param-Region differs from the argument"},
		{`{"region":"eu"}`, "Region=eu Region=eu", "the header Mcp-Param-Region stands there several times"},
		{`{}`, "Region=eu", "the header Mcp-Param-Region repeats an argument that is not there"},
		{`{"region":"eu"}`, "Region==?base64?Z?=", "the header Mcp-Param-Region differs from the argument"},
		{`{"n":5}`, "N=x", "the header Mcp-Param-N differs from the argument"},
		{`{"n":"5"}`, "N=5", `the argument "n": expected a value of the type integer, which the header Mcp-Param-N repeats`},
	} {
		values := map[string][]string{}
		for _, h := range strings.Fields(c.headers) {
			name, v, _ := strings.Cut(h, "=")
			values["Mcp-Param-"+name] = append(values["Mcp-Param-"+name], v)
		}
		err := tool.CheckParams([]byte(c.args), func(name string) []string { return values[name] })
		if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%s, %s: %v", c.args, c.headers, err)
		}
	}
}

// TestHeadersComeBack: every text can be encoded in a header, which is always visible ASCII, and
// decoded again.
func TestHeadersComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`=\?base64\?[a-z=?]*`)).Draw(t, "text")
		coded := EncodeHeader(text)
		back, sound := DecodeHeader(coded)
		bad := strings.ContainsFunc(coded, func(r rune) bool { return r < ' ' || r > '~' })
		if back != text || !sound || bad || coded != strings.TrimSpace(coded) {
			t.Fatalf("%q became %q, and %q", text, coded, back)
		}
	})
}
