package slack

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/assent-dev/assent/template"
)

// Slack's limits are in characters; the most that we use leaves room for what Slack counts differently.
const (
	maxText  = 2900 // of 3000 in a section
	maxValue = 200  // of a name or another short fact
)

// plain makes a plain_text object without emoji: ":bomb:" stays what it is. text is ready to show.
func plain(text string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, text, false, false)
}

// section is a block of text that is never folded behind "See more".
func section(text string) slack.Block {
	return slack.NewSectionBlock(plain(text), nil, nil, slack.SectionBlockOptionExpand(true))
}

// entities are the three characters that Slack itself decodes in every text.
var entities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// Unicode's "first strong isolate" keeps right-to-left text from reordering what stands around it (UAX #9).
const (
	isolate    = "\u2068"
	popIsolate = "\u2069"
)

// safe makes a text that came from elsewhere fit for one line of a plain_text object. It loses nothing.
func safe(s string) string {
	shown := entities.Replace(template.Escape(s))
	if strings.IndexFunc(shown, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return shown
	}
	return isolate + shown + popIsolate
}

// length counts what Slack may count: UTF-16 units.
func length(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}

// cut is safe within a limit. What does not fit is left out of the middle, and the text says how much.
func cut(s string, limit int) (shown string, whole bool) {
	if shown = safe(s); length(shown) <= limit {
		return shown, true
	}
	runes := []rune(strings.ToValidUTF8(s, string(utf8.RuneError)))
	const room = 80 // for the words in between
	head := fitting(runes, (limit-room)*2/3, func(n int) []rune { return runes[:n] })
	tail := fitting(runes[head:], (limit-room)/3, func(n int) []rune { return runes[len(runes)-n:] })
	middle := fmt.Sprintf(" … (%d characters are not shown here) … ", len(runes)-head-tail)
	return safe(string(runes[:head])) + middle + safe(string(runes[len(runes)-tail:])), false
}

// fitting returns how many runes of one end can be shown within a limit.
func fitting(runes []rune, limit int, end func(int) []rune) int {
	low, high := 0, min(len(runes), limit)
	for low < high {
		if mid := (low + high + 1) / 2; length(safe(string(end(mid)))) <= limit {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

// short is a fact of a few words.
func short(s string) string {
	shown, _ := cut(s, maxValue)
	return shown
}
