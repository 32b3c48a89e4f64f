package slack

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// anyText draws texts with problematic parts: markup, entities, control characters, bidi
// characters, tags, padding, emoji.
func anyText() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"a",
		"é",
		"&",
		"<",
		">",
		"&lt;",
		"<!channel>",
		"<@U1>",
		"*b*",
		"`",
		":bomb:",
		"http://evil.example",
		"\n",
		"\r",
		"\t",
		"\x1b[2J",
		"\x00",
		"\u202e",
		"\u2068",
		"\u2069",
		"\u200b",
		"\U000e0041",
		"שלום",
		"🙂",
		"\\",
		"\\u{",
		"\xff",
		"   ",
		strings.Repeat(" ", 50),
		"漢",
		"e\u0301",
	})
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 60).Draw(t, "pieces"), "")
	})
}

func TestCutKeepsItsLimitAndSaysWhetherItCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, limit := anyText().Draw(t, "text"), rapid.IntRange(120, 400).Draw(t, "limit")
		shown, whole := safetext.CutSlack(s, limit)
		if safetext.SlackLength(shown) > limit {
			t.Fatalf("%d of %d: %q", safetext.SlackLength(shown), limit, shown)
		}
		if whole != (shown == safetext.Slack(s)) ||
			!whole && !strings.Contains(shown, "characters are not shown here") {
			t.Fatalf("whole is %t: %q", whole, shown)
		}
	})
}

func TestSafeTextHasNothingThatSlackOrAReaderCouldTakeForSomethingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shown := safetext.Slack(anyText().Draw(t, "text"))
		inner := strings.TrimSuffix(strings.TrimPrefix(shown, safetext.Isolate), safetext.PopIsolate)
		for _, r := range inner {
			if r == '<' || r == '>' || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
				t.Fatalf("%U in %q", r, shown)
			}
		}
		if strings.Contains(strings.NewReplacer("&amp;", "", "&lt;", "", "&gt;", "").Replace(inner), "&") {
			t.Fatalf("a bare & in %q", shown)
		}
	})
}

func TestDifferentTextsLookDifferent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyText().Draw(t, "a"), anyText().Draw(t, "b")
		if a != b && safetext.Slack(a) == safetext.Slack(b) {
			t.Fatalf("%q and %q are both shown as %q", a, b, safetext.Slack(a))
		}
	})
}

// anyJSON draws a document whose strings are all secret, with the paths to them.
func anyJSON(t *rapid.T, depth int) any {
	switch kind := rapid.IntRange(0, 3).Draw(t, "kind"); {
	case kind == 0 && depth > 0:
		out := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "members") {
			out[rapid.SampledFrom([]string{"a", "b", "a.b", "0", "c.d.e"}).Draw(t, "key")] = anyJSON(t, depth-1)
		}
		return out
	case kind == 1 && depth > 0:
		var out []any
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			out = append(out, anyJSON(t, depth-1))
		}
		return out
	}

	return "s3cret-" + rapid.StringMatching(`[0-9]{6}`).Draw(t, "secret")
}

// A value that value.Lookup finds at a hidden path must never be shown.
func TestHiddenPathsAreNeverShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := map[string]any{"a": anyJSON(t, 3), "b": anyJSON(t, 2), "a.b": anyJSON(t, 1)}
		path := rapid.SampledFrom([]string{"a", "b", "a.b", "a.b.c", "a.0", "b.0.a", "a.b.a", "c"}).
			Draw(t, "path")
		text, err := json.Marshal(doc)
		must.Do(t, err)
		p := &printer{}
		p.document("Arguments", string(text), policy.Arguments{Redact: []string{path}}.Redaction())
		shown := strings.Join(p.lines, "\n")
		for _, secret := range secretsAt(doc, path) {
			if strings.Contains(shown, secret) || !p.hidden {
				t.Fatalf("%s at %s is shown (hidden: %t):\n%s", secret, path, p.hidden, shown)
			}
		}
	})
}

// secretsAt collects the strings below a path, by both interpretations of value.Lookup. Strings
// that also occur elsewhere can't be distinguished. The generator makes this so unlikely that a
// failure deserves a look.
func secretsAt(doc map[string]any, path string) []string {
	var out []string
	if v, ok := doc[path]; ok {
		out = append(out, secrets(v)...)
	}
	var at any = doc
	for segment := range strings.SplitSeq(path, ".") {
		switch v := at.(type) {
		case map[string]any:
			at = v[segment]
		case []any:
			var i int
			if _, err := fmt.Sscanf(segment, "%d", &i); err != nil || i >= len(v) {
				return out
			}
			at = v[i]
		default:
			return out
		}
	}

	return append(out, secrets(at)...)
}

func secrets(v any) []string {
	var out []string
	switch v := v.(type) {
	case string:
		out = append(out, v)
	case map[string]any:
		for _, m := range v {
			out = append(out, secrets(m)...)
		}
	case []any:
		for _, item := range v {
			out = append(out, secrets(item)...)
		}
	}

	return out
}

func TestUnreadableArguments(t *testing.T) {
	p := &printer{}
	p.document("Arguments", `{"a":`, policy.Redaction{})
	if p.hidden || p.cut || p.lines[1] != `  {"a":` {
		t.Errorf("got %+v", p)
	}
	p = &printer{}
	p.document("Arguments", `{"a":`, policy.Arguments{Redact: []string{"a"}}.Redaction())
	if !p.hidden {
		t.Error("what can't be read can't be shown when parts must be hidden")
	}
}

// hostile returns a request in which every text tries to look like something else.
func hostile() *approval.Request {
	const bad = "x\u202e\n*Approved* <!channel> <https://evil.example|click> :white_check_mark: &lt;\U000e0041 שלום " +
		"![i](http://evil.example/i.png)"
	args, _ := json.Marshal(map[string]any{"cmd": bad, bad: 1, "list": []any{"a", bad}})
	return &approval.Request{
		ID:        "apr_1",
		Tenant:    "acme",
		State:     approval.Pending,
		Agent:     approval.Agent{ID: "agent " + bad},
		Requester: approval.Requester{Runtime: "ci " + bad, Principal: "p " + bad, Session: "s " + bad},
		Stages:    []policy.Stage{{Group: "g " + bad, People: 1}},
		Called:    []string{"c " + bad},
		Revisions: []approval.Revision{
			{Binding: "sha256:" + strings.Repeat("00", 32)},
			{
				Number:  1,
				Author:  "author " + bad,
				Binding: "sha256:" + strings.Repeat("ab", 32),
				Call: resolve.Call{
					Kind:           resolve.Delegation,
					Agent:          "t " + bad,
					Args:           resolve.Raw(string(args)),
					ParentInput:    resolve.Raw(`{"in":1.50}`),
					Remote:         resolve.RemoteYes,
					Annotations:    map[string]bool{"hint " + bad: true},
					ToolDefinition: "sha256:12",
				},
				Decision: resolve.Decision{
					Message: "First line <b>\nAgent: innocent\n" + safetext.Isolate + "שלום" + safetext.PopIsolate,
					Reasons: []resolve.Reason{{
						Source: resolve.FromPolicy,
						Policy: "pol " + bad,
						Rule:   "rule",
						File:   "f " + bad,
						Line:   3,
					}},
				},
			},
		},
	}
}

func TestHostileMessage(t *testing.T) {
	a := &App{cfg: Config{Arguments: true}, inbox: mustURL(t, "https://assent.example")}
	m := a.render(hostile(), "", true)
	if !m.full {
		t.Error("everything is there, but the message says that it is not")
	}
	text, err := json.MarshalIndent(m.blocks, "", " ")
	must.Do(t, err)
	plainText := strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(string(text))
	golden.Equal(
		t,
		"hostile.json",
		strings.NewReplacer(safetext.Isolate, "⟦", safetext.PopIsolate, "⟧").Replace(plainText)+"\n",
	)
	if strings.Contains(m.text, "x") && strings.Contains(m.text, "channel") {
		t.Errorf("the notification shows data: %q", m.text)
	}
}

func TestStatesHaveTheirWords(t *testing.T) {
	for state, want := range map[approval.State]string{
		approval.Pending:   "Approval needed",
		approval.Approved:  "Approved",
		approval.Denied:    "Denied",
		approval.Expired:   "Expired",
		approval.Cancelled: "Cancelled",
		approval.Consumed:  "Approved and run",
		approval.Answered:  "Answered",
	} {
		if got := title(state); got != want {
			t.Errorf("%s: got %q", state, got)
		}
	}

	r := hostile()
	r.State, r.Cause = approval.Approved, approval.ByTimeout
	if got := strings.Join(ending(r), "\n"); !strings.Contains(got, "Approved by nobody, by timeout") {
		t.Errorf("got %q", got)
	}
}

func TestManyStagesRulesAndVotersStayWithinLimits(t *testing.T) {
	r := hostile()
	long := strings.Repeat("\u202e", 3) + strings.Repeat("x", 5000)
	for i := range 200 {
		name := fmt.Sprint(i, long)
		r.Stages = append(r.Stages, policy.Stage{Group: name, People: 1})
		r.Called = append(r.Called, name)
		r.Votes = append(r.Votes, approval.Vote{Person: name, Verdict: approval.Approve, Revision: 1})
		r.Current().Decision.Reasons = append(
			r.Current().Decision.Reasons,
			resolve.Reason{Policy: name, Rule: name, File: name},
		)
	}

	r.State = approval.Approved
	r.By = long
	r.Reason = long
	r.Current().Decision.Message = strings.Repeat("line\n", 5000)
	a := &App{cfg: Config{Arguments: true}, inbox: mustURL(t, "https://assent.example")}
	m := a.render(r, "", true)
	text, err := json.Marshal(m.blocks)
	must.Do(t, err)
	var blocks []struct {
		Text struct{ Text string }
	}
	if err := json.Unmarshal(text, &blocks); err != nil || len(blocks) > 50 {
		t.Fatalf("%d blocks, %v", len(blocks), err)
	}
	total := 0
	for _, b := range blocks {
		total += safetext.SlackLength(b.Text.Text)
		if safetext.SlackLength(b.Text.Text) > 3000 {
			t.Errorf("%d characters: %.80q", safetext.SlackLength(b.Text.Text), b.Text.Text)
		}
	}

	if total > 13_000 {
		t.Errorf("%d characters in all", total)
	}
}

func mustURL(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	must.Do(t, err)
	return u
}
