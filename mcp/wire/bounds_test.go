package wire_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/assent-dev/assent/mcp/wire"
	"github.com/assent-dev/assent/value"
)

const (
	ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	deep = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":[]}}` // three levels
)

func TestLimitsAreThoseOfTheProtocolsLibraries(t *testing.T) {
	if got := wire.Limits(); got.MaxBytes != 16*1024*1024 || got.MaxDepth != 1000 {
		t.Errorf("%d bytes, %d levels", got.MaxBytes, got.MaxDepth)
	}
}

func TestMessagesAndBatchesAreTakenUpToTheirLimits(t *testing.T) {
	for _, c := range []struct {
		text string
		lim  value.Limits
		want string
	}{
		{ping, value.Limits{MaxBytes: len(ping)}, ""},
		{ping, value.Limits{MaxBytes: len(ping) - 1}, "larger than 39 bytes"},
		{ping, value.Limits{MaxBytes: 1}, "larger than 1 bytes"},
		{" \r\n" + ping + "\t", value.Limits{MaxBytes: len(ping)}, ""},
		{deep, value.Limits{MaxDepth: 3}, ""},
		{deep, value.Limits{MaxDepth: 2}, "deeper than 2 levels"},
		{deep, value.Limits{MaxDepth: 1}, "deeper than 1 levels"},
		{deep, value.Limits{}, ""},
	} {
		_, err := wire.Parse([]byte(c.text), c.lim)
		if got := refusal(err); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%+v, %s: got %q, expected %q", c.lim, c.text, got, c.want)
		}
	}

	const batch = "[" + deep + "]"
	for _, c := range []struct {
		lim   value.Limits
		taken bool
	}{
		{value.Limits{}, true},
		{value.Limits{MaxBytes: len(batch), MaxDepth: 4}, true},
		{value.Limits{MaxBytes: len(batch) - 1}, false},
		{value.Limits{MaxBytes: 1}, false},
		{value.Limits{MaxDepth: 3}, false},
		{value.Limits{MaxDepth: 1}, false},
	} {
		all, is, err := wire.Batch([]byte(batch), c.lim)
		if !is || (err == nil) != c.taken || (len(all) == 1) != c.taken {
			t.Errorf("%+v: %d messages, %v, %v", c.lim, len(all), is, err)
		}
		if err != nil && !strings.Contains(err.Message, "too large or nested too deep") {
			t.Errorf("%+v: %v", c.lim, err)
		}
	}
}

// Only open brackets outside of strings are levels.
func TestDepthCountsOpenBrackets(t *testing.T) {
	for _, params := range []string{
		`{"a":[` + strings.Repeat("[],", 20) + `1]}`,
		`{"a":[` + strings.Repeat("{},", 20) + `1]}`,
		`{"a":"` + strings.Repeat("[", 20) + `"}`,
		`{"a":"\"` + strings.Repeat("{", 20) + `"}`,
		`{"a":"\\","b":"` + strings.Repeat("[", 20) + `"}`,
		`{"a":"]","b":"` + strings.Repeat("[", 20) + `"}`,
	} {
		text := `{"jsonrpc":"2.0","id":1,"method":"x","params":` + params + `}`
		if _, err := wire.Parse([]byte(text), value.Limits{MaxDepth: 4}); err != nil {
			t.Errorf("%s: %v", params, err)
		}
	}
	for _, params := range []string{`{"a":"\\","b":[[[[]]]]}`, `{"a":"]","b":[[[[]]]]}`, `{"a":[{"b":[{}]}]}`} {
		text := `{"jsonrpc":"2.0","id":1,"method":"x","params":` + params + `}`
		if _, err := wire.Parse([]byte(text), value.Limits{MaxDepth: 4}); err == nil {
			t.Errorf("%s was taken", params)
		}
	}
}

func TestTextsThatAreNoBatch(t *testing.T) {
	for _, text := range []string{"", " ", "x", "1", ping} {
		if all, is, err := wire.Batch([]byte(text), wire.Limits()); is || all != nil || err != nil {
			t.Errorf("%q: %s, %v, %v", text, all, is, err)
		}
	}
	if _, is, err := wire.Batch([]byte("["), wire.Limits()); !is || err == nil || err.Code != wire.CodeParse {
		t.Errorf("a bracket alone: %v, %v", is, err)
	}
}

func TestIDsHaveBounds(t *testing.T) {
	long := `"` + strings.Repeat("x", 1022) + `"`
	for raw, want := range map[string]bool{
		``:                     false,
		long:                   true,
		long[:1023] + `x"`:     false,
		`9007199254740992`:     true,
		`9007199254740993`:     false,
		`-9007199254740992`:    true,
		`-9007199254740993`:    false,
		`-9223372036854775808`: false,
		`99999999999999999999`: false,
		`0`:                    true,
		`-0`:                   false,
		`+1`:                   false,
		`01`:                   false,
		` 1`:                   false,
		`"a`:                   false,
	} {
		if _, ok := wire.ReadID([]byte(raw)); ok != want {
			t.Errorf("%.30s: %v", raw, ok)
		}
	}
	if id := wire.Number(-120); id.Text() != "-120" || id.Key() != "-120" {
		t.Errorf("got %s", id.Text())
	}
}

func TestLinesHaveABound(t *testing.T) {
	in := "12345\n123456\n12345\r\n\r\n\na\n1234\r\n"
	lines := wire.NewLines(strings.NewReader(in), 5)
	var got []string
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		got = append(got, fmt.Sprintf("%s %v", line, err))
	}

	tooLong := " " + wire.ErrTooLong.Error()
	want := []string{"12345 <nil>", tooLong, tooLong, "a <nil>", "1234 <nil>"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q, expected %q", got, want)
	}
}
