package main

import (
	"encoding/json"
	"html"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/channels"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/internal/testwait"
)

// view is a channel from the perspective of people.
type view struct {
	// shows returns the text of a request that people read, without markup. It is nil if the
	// channel carries no text of a call.
	shows func(t *testing.T, w *entrances, r *approval.Request) string
	// answers are the ways to answer a request. It is nil if the channel takes no answers.
	answers []func(t *testing.T, w *entrances, who string, r *approval.Request) string
	// submits answers a question that requires a text. It is nil if the channel can't.
	submits func(t *testing.T, w *entrances, who string, r *approval.Request) string
	// cuts is the note with which the channel marks a shortened message.
	cuts string
}

// views returns all channels of the product: those of the table, the terminal, and the API below
// it.
func views() map[string]view {
	type answer = func(t *testing.T, w *entrances, who string, r *approval.Request) string
	return map[string]view{
		"inbox": {
			shows:   page,
			answers: []answer{votesInInbox, votesOnBatch},
			submits: votesInInbox,
			cuts:    "characters not shown",
		},
		"webhook": {},
		"slack": {
			shows:   slackMessage,
			answers: []answer{clicksApprove, clicksDeny},
			submits: submitsText,
			cuts:    "the message is not shown here",
		},
		"terminal": {
			shows:   onTerminal,
			answers: []answer{onCommandLine},
			submits: onCommandLine,
			cuts:    "characters not shown",
		},
		"HTTP API": {
			shows:   overAPI,
			answers: []answer{votesOverHTTP},
			submits: votesOverHTTP,
			cuts:    "characters not shown",
		},
	}
}

// hostileText contains attacks on the display of each channel. Its last words show that all of it
// was displayed.
const hostileText = "pay\u202egnp.exe\u2066x\u2069 zero\u200bwidth\ufeff" +
	"\x1b[2J\x1b]0;title\x07 \u009b31m red\r\nAgent: innocent\t|" +
	" *bold* _it_ ~no~ `code` <!channel> <https://evil.example|click> :bomb: &lt;b&gt; <script>alert(1)</script>" +
	" \U000e0041\U000e0042 mark\u0301\u0302\u0303\u0304\u0305\u0306 1\u0338 \u2800\u3164\ufe0f \ue000 \u2028 " +
	"\\u{202e} שלום \xff end-of-text"

// spelledOut are the escapes that every channel must write for invisible characters.
var spelledOut = []string{
	`\u{202e}`,
	`\u{2066}`,
	`\u{2069}`,
	`\u{200b}`,
	`\u{feff}`,
	`\u{9b}`,
	`\u{e0041}`,
	`\u{305}`,
	`\u{338}`,
	`\u{2800}`,
	`\u{3164}`,
	`\u{fe0f}`,
	`\u{e000}`,
	`\u{2028}`,
	"end-of-text",
	"שלום",
	"<script>",
	"<!channel>",
	"<https://evil.example|click>",
	":bomb:",
}

// TestEveryChannelOfTheTableIsWalked: every channel is tested, and no client may use the name of a
// channel by which people answer.
func TestEveryChannelOfTheTableIsWalked(t *testing.T) {
	all := views()
	for _, c := range channels.All() {
		v, walked := all[c.Name]
		if !walked {
			t.Errorf("views() lacks the channel %q", c.Name)
		}
		if c.Answers != (v.answers != nil) {
			t.Errorf("people answer by %s: %v, and the walk answers: %v", c.Name, c.Answers, v.answers != nil)
		}
	}

	contract, err := os.ReadFile("../../server/openapi/openapi.yaml")
	must.Do(t, err)
	reserved := "not: {enum: [" + strings.Join(votingChannels(), ", ") + "]}"
	if n := strings.Count(string(contract), reserved); n != 2 {
		t.Errorf("openapi.yaml says %d times of votes and edits: %s", n, reserved)
	}
}

// TestOneTextIsShownAlikeOnEveryChannel: invisible characters are escaped, markup stays text, and
// shortened texts are marked.
func TestOneTextIsShownAlikeOnEveryChannel(t *testing.T) {
	t.Parallel()
	w := newEntrances(t)
	hostile := w.asksAbout(t, strings.ToValidUTF8(hostileText, "\ufffd"))
	long := w.asksAbout(t, strings.Repeat("very long ", 1000)+"end-of-text")
	message := plainly(hostile.Current().Decision.Message)
	for name, v := range views() {
		if v.shows == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			shown := v.shows(t, w, hostile)
			if i := strings.IndexFunc(shown, undrawable); i >= 0 {
				t.Errorf("%q is drawn", shown[max(0, i-20):min(len(shown), i+20)])
			}
			if text := plainly(shown); !strings.Contains(text, message) {
				t.Errorf("it shows another message than\n%s\nin\n%s", message, text)
			}
			for _, want := range spelledOut {
				if !strings.Contains(shown, want) {
					t.Errorf("%s is not to be read", want)
				}
			}
			if shown := v.shows(t, w, long); !strings.Contains(shown, v.cuts) {
				t.Errorf("a cut is not announced by %q in\n%s", v.cuts, shown)
			}
		})
	}

	t.Run("webhook", func(t *testing.T) {
		for _, r := range []*approval.Request{hostile, long} {
			if body := w.hooks.about(t, r); strings.Contains(body, "end-of-text") ||
				strings.Contains(body, "innocent") {
				t.Errorf("it carries text of the call: %s", body)
			}
		}
	})
}

// TestOnePersonIsRefusedAlikeOnEveryChannel: the reason is the same, whichever channel they use.
func TestOnePersonIsRefusedAlikeOnEveryChannel(t *testing.T) {
	t.Parallel()
	w := newEntrances(t)
	refused := regexp.MustCompile(
		approval.ErrNotEligible.Error() + ": " + approval.WhyPrincipal +
			`|You may not answer this: the agent acts for you\.`)
	refuses := func(name string, way wayToAsk, answer func(*testing.T, *entrances, string, *approval.Request) string) {
		r := w.asks(t, way, aliasOfZoe, 1)
		for _, who := range []string{"ben", "zoe"} { // zoe's page has no form, so she sends what ben's has
			opensPage(t, w, who, r)
		}
		if told := answer(t, w, "zoe", r); !refused.MatchString(told) {
			t.Errorf("%s: told %s", name, told)
		}
		if now := w.request(t, r.ID); now.State != approval.Pending || len(now.Votes) > 0 {
			t.Errorf("%s: the answer counts: %s, %+v", name, now.State, now.Votes)
		}
	}
	for name, v := range views() {
		for _, answer := range v.answers {
			refuses(name, waysToAsk()[0], answer)
		}
		if v.submits != nil {
			refuses(name+", a text", waysToAsk()[2], v.submits)
		}
	}
}

// agentSays returns context items that imitate the facts above them, each with a mark.
func agentSays() []info.Item {
	text := strings.ToValidUTF8(hostileText, "\ufffd") + "\nBinding  sha256:marked\nApproved by marked"

	return []info.Item{
		{Label: "Needs: 0 of marked", Text: text},
		{Label: "Asked by marked", Diff: "Approved by marked\n--- a\n+++ b\n@@ -1 +1 @@\n-x\n+marked\u202egnp.exe\n"},
		{Label: "Link marked", Link: "https://marked.example/approve"},
	}
}

// TestNoContextChangesWhatStandsAbove: the agent's own texts, and the texts of a form, are shown
// below the verified facts in a separate section. Slack and webhooks report how much of it there
// is.
func TestNoContextChangesWhatStandsAbove(t *testing.T) {
	t.Parallel()
	w := newEntrances(t)
	calls, questions := w.call(aliasOfZoe, 1), w.call(aliasOfZoe, 1)
	runtime := w.client(t, "rt-mara")
	opt := client.OpenOptions{Context: agentSays()}
	if _, err := runtime.Open(t.Context(), "desk", calls.text("restart"), opt); err != nil {
		t.Fatal(err)
	}
	q := approval.Question{
		Asker:  "notes-server",
		Prompt: "marked\nMay answer: marked",
		Schema: []byte(`{"type":"object","title":"May answer: marked","properties":{"Binding  sha256:marked":{"type":"string",
			"title":"Approved by marked","description":"x\nApproved by marked"},
			"o":{"type":"string","enum":["May answer: marked"]}}}`),
		Groups: []string{"ops"},
	}
	if _, err := runtime.Ask(
		t.Context(), "desk", questions.text("restart"), q, client.AskOptions{Context: agentSays()},
	); err != nil {
		t.Fatal(err)
	}

	call, question := w.asked(t, calls), w.asked(t, questions)
	const says = "What the agent says about it"
	for name, shows := range map[string]func(*testing.T, *entrances, *approval.Request) string{
		"inbox": page, "terminal": onTerminal,
	} {
		for _, r := range []*approval.Request{call, question} {
			shown := shows(t, w, r)
			if i := strings.IndexFunc(shown, undrawable); i >= 0 {
				t.Errorf("%s: %q is drawn", name, shown[max(0, i-20):min(len(shown), i+20)])
			}
			above, below, there := strings.Cut(shown, says)
			if !there || strings.Contains(above, "marked") || strings.Count(below, "marked") < 8 {
				t.Errorf("%s: what the agent says does not stand below what is known:\n%s", name, shown)
			}
			for _, want := range []string{`\u{202e}`, "end-of-text", "marked.example"} {
				if !strings.Contains(below, want) {
					t.Errorf("%s: %s is not to be read", name, want)
				}
			}
		}
	}

	for _, r := range []*approval.Request{call, question} {
		shown := slackMessage(t, w, r)
		above, _, _ := strings.Cut(shown, "says, in words of its own")
		if strings.Contains(above, "marked") || strings.Contains(shown, "end-of-text") ||
			!strings.Contains(above, says+": 3 items, in the inbox") {
			t.Errorf("Slack shows\n%s", shown)
		}
		if body := w.hooks.about(t, r); strings.Contains(body, "marked") || !strings.Contains(body, `"context":3`) {
			t.Errorf("a webhook carries %s", body)
		}
	}
}

// undrawable reports whether a character must not reach a reader. Line
// breaks and isolates are the channel's own.
func undrawable(r rune) bool {
	return safetext.Hidden(r) && r != '\n' && !strings.ContainsRune(safetext.Isolate+safetext.PopIsolate, r)
}

// plainly removes what a channel adds around and into text: white space, quotation bars at the
// beginning of lines, and isolates, which terminals escape.
func plainly(text string) string {
	text = regexp.MustCompile(`(?m)^\s*\| `).ReplaceAllString(text, "")
	return strings.NewReplacer(
		safetext.Isolate, "", safetext.PopIsolate, "", `\u{2068}`, "", `\u{2069}`, "", " ", "", "\n", "", "│", "",
	).Replace(text)
}

// asksAbout asks people about a call with a text.
func (w *entrances) asksAbout(t *testing.T, text string) *approval.Request {
	t.Helper()
	c := w.call(aliasOfZoe, 1)
	call := mustJSON(t, map[string]any{
		"kind":      "tool",
		"tool":      "restart",
		"principal": c.principal,
		"args": map[string]any{
			"word":  c.word,
			"seats": 1,
			"text":  text,
		},
	})
	if _, err := w.client(t, "rt-mara").Open(t.Context(), "desk", call, client.OpenOptions{}); err != nil {
		t.Fatal(err)
	}

	return w.asked(t, c)
}

var (
	markup = regexp.MustCompile(`<[^>]*>`)
	note   = regexp.MustCompile(`<span class="note"[^>]*>[^<]*</span>`) // words of the page about the text before
	styles = regexp.MustCompile("\x1b\\[[0-9;]*m")                      // of the terminal's own
)

func page(t *testing.T, w *entrances, r *approval.Request) string {
	shown := w.visitor(t, "ben").get("/requests/" + r.ID)

	return html.UnescapeString(markup.ReplaceAllString(note.ReplaceAllString(shown, ""), ""))
}

func onTerminal(t *testing.T, w *entrances, r *approval.Request) string {
	return styles.ReplaceAllString(w.commands(t, "ben", "show", "--all", r.ID), "")
}

func overAPI(t *testing.T, w *entrances, r *approval.Request) string {
	read, err := w.client(t, "ben-cli").Request(t.Context(), r.ID)
	must.Do(t, err)

	return read.Current().Decision.Message
}

// slackMessage returns the text of all blocks of a message, as Slack shows them.
func slackMessage(t *testing.T, w *entrances, r *approval.Request) string {
	t.Helper()
	var blocks []struct {
		Text struct{ Type, Text string }
	}
	testwait.Until(t, "the message of "+r.ID, func() bool {
		w.slack.mu.Lock()
		defer w.slack.mu.Unlock()
		posted := slices.AppendSeq(slices.Clone(w.slack.posted), maps.Values(w.slack.direct))
		i := slices.IndexFunc(posted, func(m string) bool { return strings.Contains(m, r.ID) })
		return i >= 0 && json.Unmarshal([]byte(posted[i]), &blocks) == nil
	})
	var text strings.Builder
	for _, b := range blocks {
		if b.Text.Type == "mrkdwn" {
			t.Errorf("a block is markup: %s", b.Text.Text)
		}
		text.WriteString(b.Text.Text + "\n")
	}

	return html.UnescapeString(text.String()) // the three entities that Slack decodes
}

func clicksDeny(t *testing.T, w *entrances, who string, r *approval.Request) string {
	return w.clicks(t, who, "assent_deny", r)
}

// about waits for the notification about a request.
func (k *keeper) about(t *testing.T, r *approval.Request) string {
	t.Helper()

	return testwait.Value(t, "a webhook about "+r.ID, func() (string, bool) {
		all := k.bodies()
		i := slices.IndexFunc(all, func(b string) bool { return strings.Contains(b, r.ID) })
		if i < 0 {
			return "", false
		}
		return all[i], true
	})
}
