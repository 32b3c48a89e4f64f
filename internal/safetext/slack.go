package safetext

import (
	"strings"
	"unicode/utf8"
)

// entities are the three characters that Slack itself decodes in every text.
var entities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// Slack makes a text fit for one line of a plain_text object of Slack.
// It loses nothing. Everything beyond ASCII is isolated.
func Slack(s string) string {
	shown := entities.Replace(Escape(s))
	if strings.IndexFunc(shown, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return shown
	}

	return Isolate + shown + PopIsolate
}

// SlackLength counts what Slack may count: UTF-16 units.
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

// CutSlack is Slack within a limit. What does not fit is left out of
// the middle, and the text says how much.
func CutSlack(s string, limit int) (shown string, whole bool) {
	if shown = Slack(s); SlackLength(shown) <= limit {
		return shown, true
	}
	const room = 80 // for the words in between, and for isolates
	head, tail, left := ends(s, limit-room, slackCost)

	return Slack(s[:head]) + cutInSlack(left) + Slack(s[tail:]), false
}

// HeadSlack is Slack for a place that has no room for words about a
// cut, such as a button.
func HeadSlack(s string, limit int) string {
	if shown := Slack(s); SlackLength(shown) <= limit {
		return shown
	}
	const isolates = 2

	return Slack(s[:fit(s, limit-isolates, slackCost, firstRun)]) + "…"
}

// SlackMessage is Slack for one line of a message in which values are
// escaped and isolated already.
func SlackMessage(line string) string {
	shown := rewrite(line, func(r rune, raw string) string {
		if raw == Isolate || raw == PopIsolate {
			return raw
		}
		return string(run{raw, r, 1}.appendEscape(nil))
	})

	return Isolate + entities.Replace(shown) + PopIsolate
}

// slackCost is the number of UTF-16 units that a run takes in Slack.
func slackCost(x run) int {
	if c := x.cost(); c != x.n || x.escaped() {
		return c
	}

	return x.n * SlackLength(entities.Replace(x.unit))
}
