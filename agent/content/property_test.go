package content_test

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/internal/must"
)

// gen draws values that every format carries.
type gen struct{ t *rapid.T }

func (g gen) text() string { return rapid.StringN(0, 12, -1).Draw(g.t, "text") }
func (g gen) id() string   { return rapid.StringMatching(`[a-z_]{1,6}`).Draw(g.t, "id") }
func (g gen) flag() bool   { return rapid.Bool().Draw(g.t, "flag") }
func (g gen) raw() []byte {
	return raw(
		rapid.SampledFrom([]string{`1.50`, `"x\n"`, `[ 1,{}]`, `{"a" : null}`, `true`, `"\u0041"`}).
			Draw(g.t, "raw"),
	)
}

func (g gen) common(c content.Content) {
	if g.flag() {
		*content.CommonOf(c) = g.values()
	}
}

func (g gen) values() content.Common {
	c := content.Common{
		Properties: raw(rapid.SampledFrom([]string{`{"p": 1}`, `{"q":[2],"r":"s"}`}).Draw(g.t, "props")),
	}
	if g.flag() {
		c.Extra = []content.Member{{Key: "x-" + g.text(), Raw: g.raw()}, {Key: "y", Raw: g.raw()}}
	}
	return c
}

func (g gen) args() []byte {
	args := rapid.SampledFrom([]string{``, `{}`, `{"a": 1.0}`, `{"b":{"c":[null,"é"]}}`}).Draw(g.t, "args")
	if args == "" {
		return nil
	}
	return raw(args)
}

func (g gen) function() *content.FunctionCall {
	c := &content.FunctionCall{CallID: g.id(), Name: g.text(), Arguments: g.args(), InformationalOnly: g.flag()}
	g.common(c)
	return c
}

func (g gen) call() content.ToolCall {
	var c content.ToolCall
	switch rapid.IntRange(0, 2).Draw(g.t, "call") {
	case 0:
		return g.function()
	case 1:
		c = &content.MCPCall{CallID: g.id(), Name: g.text(), ServerName: g.text(), Arguments: g.args()}
	default:
		c = &content.HostedCall{
			Kind: rapid.SampledFrom([]string{"toolCall", "webSearchToolCall", "imageGenerationToolCall"}).
				Draw(g.t, "kind"),
			CallID: g.id(),
		}
	}

	g.common(c)
	return c
}

func (g gen) note() content.Note {
	n := content.Note{Message: g.text(), Where: g.text(), Agent: g.text()}
	if g.flag() {
		n.Expires = time.Unix(rapid.Int64Range(0, 4e9).Draw(g.t, "s"),
			rapid.Int64Range(0, 999_999_999).Draw(g.t, "ns")).
			UTC()
	}

	if g.flag() {
		n.Context = []info.Item{{Label: "Why", Text: "x" + g.text()}}
		if info.Check(n.Context) != nil {
			n.Context = nil
		}
	}

	return n
}

func (g gen) response() *content.ToolApprovalResponse {
	r := &content.ToolApprovalResponse{RequestID: g.id(), Approved: g.flag(), Reason: g.text()}
	original := g.function()
	r.Call = original
	switch {
	case !r.Approved:
		r.Call = g.call()
	case g.flag():
		edited := *original
		edited.Arguments = g.args()
		r.Edited = &edited
	default:
		r.Always = content.AlwaysScope(rapid.IntRange(0, 2).Draw(g.t, "always"))
	}

	return r
}

func (g gen) any() content.Content {
	c := g.one()
	g.common(c)
	return c
}

func (g gen) one() content.Content {
	switch rapid.IntRange(0, 13).Draw(g.t, "type") {
	case 0:
		return &content.Text{Text: g.text()}
	case 1:
		return &content.Reasoning{Text: g.text(), Protected: g.text()}
	case 2:
		return &content.Data{URI: "data:text/plain;base64,eA==", MediaType: "text/plain", Name: g.text()}
	case 3:
		return &content.URI{URI: g.text(), MediaType: g.text()}
	case 4:
		return &content.Error{Message: g.text(), Code: g.text(), Details: g.text()}
	case 5:
		return &content.Usage{Input: rapid.Int64().Draw(g.t, "n"), Counts: g.values().Extra}
	case 6:
		return g.function()
	case 7:
		return &content.FunctionResult{CallID: g.id(), Result: g.raw()}
	case 8:
		return &content.MCPResult{CallID: g.id(),
			Outputs: []content.Content{g.any(), &content.Unknown{Raw: raw(`{ "k":1 }`)}}}
	case 9:
		return &content.ToolApprovalRequest{RequestID: g.id(), Call: g.call(), NoConfirmation: g.flag(), Note: g.note()}
	case 10:
		return g.response()
	case 11:
		return &content.TextApprovalRequest{RequestID: g.id(), Text: g.text(), Note: g.note()}
	case 12:
		return &content.StructuredInputRequest{RequestID: g.id(), Text: g.text(),
			Schema: raw(`{"type": "string"}`), Note: g.note()}
	}

	return &content.StructuredInputResponse{RequestID: g.id(), Data: g.raw(), Reason: g.text()}
}

func (g gen) message() *content.Message {
	m := &content.Message{Role: content.Role(g.id()), ID: g.text(), AuthorName: g.text(), Common: g.values()}
	for range rapid.IntRange(0, 3).Draw(g.t, "contents") {
		m.Contents = append(m.Contents, g.any())
	}
	return m
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := []*content.Message{gen{t}.message(), gen{t}.message()}
		for _, s := range shapes() {
			out := must.Get(s.codec.AppendMessages(nil, in))(t)
			back, err := s.codec.DecodeMessages(out)
			if err != nil {
				t.Fatalf("%s: %v\n%s", s.name, err, out)
			}
			if !reflect.DeepEqual(in, back) {
				again, err := s.codec.AppendMessages(nil, back)
				t.Fatalf("%s:\n%s\n%s %v", s.name, out, again, err)
			}
		}
	})
}

// A round trip through another format keeps everything that both formats carry.
func TestRoundTripThroughOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := gen{t}.response()
		at := content.Content(in)
		for _, s := range append(shapes(), shapes()...) {
			out, err := s.codec.AppendContent(nil, at)
			must.Do(t, err)
			if at, err = s.codec.DecodeContent(out); err != nil {
				t.Fatal(err)
			}
		}

		if !reflect.DeepEqual(content.Content(in), at) {
			out, _ := content.DotNet().AppendContent(nil, in)
			again, _ := content.DotNet().AppendContent(nil, at)
			t.Fatalf("%s\n%s", out, again)
		}
	})
}
