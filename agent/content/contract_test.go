package content_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

func page(t *testing.T) string {
	t.Helper()
	src := must.Get(os.ReadFile("../../docs/contracts/contents.md"))(t)
	return string(src)
}

// Every line of the page is written unchanged, or as the following line of the page.
func TestContract(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```json ([a-z ]+)\n(.*?)```").FindAllStringSubmatch(page(t), -1)
	if len(blocks) != 9 {
		t.Fatalf("%d blocks", len(blocks))
	}
	unknown := 0
	for _, block := range blocks {
		shape, rest, _ := strings.Cut(block[1], " ")
		lines := strings.Split(strings.TrimSpace(block[2]), "\n")
		for i := 0; i < len(lines); i++ {
			src, want := lines[i], lines[i]
			if strings.Contains(rest, "read") {
				i++
				want = lines[i]
			}
			got, isUnknown, err := again(codecOf(shape), strings.Contains(rest, "message"), src)
			if err != nil || got != want {
				t.Errorf("%s\nis written as %s, %v\nand not    as %s", src, got, err, want)
			}
			if isUnknown {
				unknown++
			}
		}
	}

	if unknown != len(shapes()) {
		t.Errorf("%d examples are unknown", unknown)
	}
}

func again(codec content.Codec, message bool, src string) (string, bool, error) {
	if message {
		m, err := codec.DecodeMessage([]byte(src))
		if err != nil {
			return "", false, err
		}
		out, err := codec.AppendMessage(nil, m)
		return string(out), false, err
	}

	c, err := codec.DecodeContent([]byte(src))
	if err != nil {
		return "", false, err
	}
	_, unknown := c.(*content.Unknown)
	out, err := codec.AppendContent(nil, c)
	return string(out), unknown, err
}

// The table lists the discriminator of every type in every format.
func TestContractTable(t *testing.T) {
	rows := map[string]string{}
	for line := range strings.Lines(page(t)) {
		if name := regexp.MustCompile("^\\| `(\\w+)`").FindStringSubmatch(line); name != nil {
			rows[name[1]] += line
		}
	}
	for _, e := range examples() {
		name := strings.TrimPrefix(fmt.Sprintf("%T", e.value), "*content.")
		for _, s := range shapes() {
			out := must.Get(s.codec.AppendContent(nil, e.value))(t)
			kind := regexp.MustCompile(`^{"\$?[tT]ype":"(\w+)"`).FindSubmatch(out)
			if kind == nil || !strings.Contains(rows[name], "`"+string(kind[1])+"`") {
				t.Errorf("%s: %s is not in the row of %s", s.name, out, name)
			}
		}
	}

	for _, code := range []content.Code{
		content.BadJSON,
		content.BadShape,
		content.BadID,
		content.BadKind,
		content.BadArguments,
		content.BadSchema,
		content.BadData,
	} {
		if rows[string(code)] == "" {
			t.Errorf("no row for %s", code)
		}
	}
}

// The payloads and id checks are those of the upstream tests.
func TestApprovalCases(t *testing.T) {
	src := must.Get(os.ReadFile("testdata/approval_cases.json"))(t)
	var cases []struct {
		Name, RequestID, CallID, Tool, Reason, Error string
		Src, Properties                              json.RawMessage
		Confirmation, Approved                       *bool
	}
	if err := json.Unmarshal(src, &cases); err != nil || len(cases) != 12 {
		t.Fatal(len(cases), err)
	}
	for _, c := range cases {
		got, err := content.DotNet().DecodeContent(c.Src)
		if c.Error != "" {
			if bad := badError(t, err); string(bad.Code) != c.Error {
				t.Errorf("%s: %s %v", c.Name, bad.Code, err)
			}
			continue
		}

		call := &content.FunctionCall{CallID: c.CallID, Name: c.Tool}
		common := content.Common{Properties: c.Properties}
		var want content.Content
		if c.Approved != nil {
			want = &content.ToolApprovalResponse{Common: common, RequestID: c.RequestID, Approved: *c.Approved,
				Call: call, Reason: c.Reason}
		} else {
			want = &content.ToolApprovalRequest{Common: common, RequestID: c.RequestID,
				Call: call, NoConfirmation: !*c.Confirmation}
		}

		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %#v, %v", c.Name, got, err)
		}
	}
}
