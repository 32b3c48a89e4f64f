package safetext

import (
	"strings"
	"unicode/utf8"
)

// entities escapes the three characters that Slack decodes in every text.
var entities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// Slack makes a text safe for one line of a Slack plain_text object, without losing anything. A
// text with non-ASCII characters is isolated.
func Slack(s string) string {
	shown := entities.Replace(Escape(s))
	if strings.IndexFunc(shown, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return shown
	}

	return Isolate + shown + PopIsolate
}

// SlackLength counts UTF-16 units, which is how Slack may count.
func SlackLength(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}

	return n
}

// CutSlack is like Slack, with a limit. If the text does not fit, its middle is replaced by a
// note with the number of characters.
func CutSlack(s string, limit int) (shown string, whole bool) {
	if shown = Slack(s); SlackLength(shown) <= limit {
		return shown, true
	}
	const room = 80 // for the note and the isolates
	head, tail, left := ends(s, limit-room, slackCost)

	return Slack(s[:head]) + cutInSlack(left) + Slack(s[tail:]), false
}

// HeadSlack is like Slack, for texts too short for a note about a cut, such as a button.
func HeadSlack(s string, limit int) string {
	if shown := Slack(s); SlackLength(shown) <= limit {
		return shown
	}
	const isolates = 2

	return Slack(s[:fit(s, limit-isolates, slackCost, firstRun)]) + "…"
}

// SlackMessage is like Slack, for a line of a message whose values are already escaped and
// isolated.
func SlackMessage(line string) string {
	shown := rewrite(line, func(r rune, raw string) string {
		if raw == Isolate || raw == PopIsolate {
			return raw
		}
		return string(run{raw, r, 1}.appendEscape(nil))
	})

	return Isolate + entities.Replace(shown) + PopIsolate
}

// slackCost returns the number of UTF-16 units of a run in Slack.
func slackCost(x run) int {
	if c := x.cost(); c != x.n || x.escaped() {
		return c
	}

	return x.n * SlackLength(entities.Replace(x.unit))
}
