package answer

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/resolve"
)

// TestTextsAreSafeProperty checks that each line of any text stays behind its mark.
func TestTextsAreSafeProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := hostile().Draw(t, "text")
		var out bytes.Buffer
		s := &view{Printer: &term.Printer{W: &out}}
		s.text("| ", strings.ReplaceAll(text, "\n", " "), term.Scrub)
		if got := out.String(); testfiles.Hidden(got) || strings.Count(got, "\n") != 1 {
			t.Fatalf("%q", got)
		}
	})
}

// TestHiddenMessage checks that the author's message is omitted if it could repeat values that a
// policy hides.
func TestHiddenMessage(t *testing.T) {
	var out bytes.Buffer
	r := &approval.Request{
		Redact: []string{"ssn"},
		Revisions: []approval.Revision{{
			Call:     resolve.Call{Args: resolve.Raw(`{"ssn":"SECRET"}`)},
			Decision: resolve.Decision{Message: "Pay to SECRET?"},
		}},
	}
	(&view{Printer: &term.Printer{W: &out}, all: true}).request(r)
	if strings.Contains(out.String(), "SECRET") {
		t.Error(out.String())
	}
}

// TestWhatTheRetentionTook checks that a form whose schema was redacted is not shown as an empty
// choice, and can't be answered.
func TestWhatTheRetentionTook(t *testing.T) {
	var out bytes.Buffer
	r := &approval.Request{
		ID:        "qst_1",
		State:     approval.Answered,
		Cause:     approval.BySubmission,
		By:        "mara",
		Question:  &approval.Question{Asker: "desk"},
		Revisions: []approval.Revision{{}},
	}
	(&view{Printer: &term.Printer{W: &out}, all: true}).request(r)
	if got := out.String(); !strings.Contains(got, "What it asked for is no longer kept.") ||
		!strings.Contains(got, "Answered by mara.") || strings.Contains(got, "choice") {
		t.Error(got)
	}
	if err := takesData(r); err == nil || !strings.Contains(err.Error(), "no longer kept") {
		t.Error(err)
	}
}

// TestContextOfHiddenValues checks the warning before the agent's text that it may repeat values
// that a policy hides.
func TestContextOfHiddenValues(t *testing.T) {
	var out bytes.Buffer
	r := &approval.Request{
		Redact:    []string{"ssn"},
		Context:   []info.Item{{Label: "Why", Text: "because"}},
		Revisions: []approval.Revision{{Call: resolve.Call{Args: resolve.Raw(`{"ssn":"SECRET"}`)}}},
	}
	(&view{Printer: &term.Printer{W: &out}, all: true}).request(r)
	_, says, _ := strings.Cut(out.String(), "What the agent says about it")
	if warned := strings.Index(says, "may repeat them"); warned < 0 || warned > strings.Index(says, "  | Why") {
		t.Error(out.String())
	}
}

func TestListWithoutAMessage(t *testing.T) {
	var out bytes.Buffer
	p := &term.Printer{W: &out}
	p.Table(summaryRows([]approval.Summary{{ID: "apr_1"}, {ID: "apr_2", Message: "Pay?"}}, time.Now()))
	lines := strings.Split(out.String(), "\n")
	if !strings.Contains(lines[1], "hidden by policy") || !strings.Contains(lines[2], "Pay?") {
		t.Error(out.String())
	}
}

func TestWatchShowsWhatWouldRun(t *testing.T) {
	var out strings.Builder
	now := time.Now()
	rows := waitingRows([]approval.Summary{{
		ID:       "apr_06gvuikiueh5nv27o518u9ifn0",
		Agent:    "trading-desk",
		Target:   "tool rebalance_portfolio",
		Message:  "Rebalance?",
		Deadline: now.Add(26 * time.Hour),
	}}, now)
	p := &term.Printer{W: &out}
	p.Table(rows)
	line := cutTo(strings.Split(out.String(), "\n")[1], 77)
	for _, want := range []string{"…u9ifn0", "in 1d 2h", "0/1", "tool rebalance_portfolio", "trading-desk", "Reb"} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is not on the first 77 columns: %s", want, line)
		}
	}
}

// hostile draws texts with many characters that must not reach a terminal.
func hostile() *rapid.Generator[string] {
	return rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.RuneFrom([]rune(testfiles.Odd))))
}
