package term

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"pgregory.net/rapid"

	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/must"
)

// TestPrinterProperty: whatever the arguments are, what is printed has
// as many lines as the format, and no control byte.
func TestPrinterProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := hostile().Draw(t, "text")
		var out bytes.Buffer
		p := &Printer{W: &out}
		p.Printf("%s %s %s %v\n", text, Bold.Of(text), Ready(text), errors.New(text))
		table := Heading("A", "B")
		table.Row(text, Red.Of(Ready(text)))
		p.Table(table)
		if got := out.String(); testfiles.Hidden(got) || strings.Count(got, "\n") != 3 {
			t.Fatalf("%q", got)
		}
		if again := Scrub(Scrub(text)); again != Scrub(text) {
			t.Fatalf("scrubbed twice: %q, once: %q", again, Scrub(text))
		}
	})
}

// TestJSONSafeProperty: the document stays the same document.
func TestJSONSafeProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := map[string]string{hostile().Draw(t, "key"): hostile().Draw(t, "value")}
		var out bytes.Buffer
		must.Do(t, (&Printer{W: &out}).Document(doc))
		var back map[string]string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || testfiles.Hidden(out.String()) ||
			fmt.Sprint(back) != fmt.Sprint(doc) {
			t.Fatalf("%q: %v", out.String(), err)
		}
	})
}

func TestErrorsOfSeveralLines(t *testing.T) {
	var out strings.Builder
	cmd := &cobra.Command{
		Use: "assent",
		RunE: func(*cobra.Command, []string) error {
			return errors.New("no store:\n\tdial\x1b[1m")
		},
	}
	if code := Run(cmd, Streams{Err: &out}, nil); code != ExitFailure ||
		out.String() != "assent: no store:\n    dial\\u{1b}[1m\n" {
		t.Errorf("%d %q", code, out.String())
	}
}

// hostile draws texts with many characters that must not reach a terminal.
func hostile() *rapid.Generator[string] {
	return rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.RuneFrom([]rune(testfiles.Odd))))
}
