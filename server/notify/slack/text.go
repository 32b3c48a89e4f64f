package slack

import (
	"github.com/slack-go/slack"

	"github.com/assent-dev/assent/internal/safetext"
)

// Slack's limits are in characters; the most that we use leaves room
// for what Slack counts differently.
const (
	maxText  = 2900 // of 3000 in a section
	maxValue = 200  // of a name or another short fact
)

// plain makes a plain_text object without emoji: ":bomb:" stays what it
// is. text is ready to show.
func plain(text string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, text, false, false)
}

// section is a block of text that is never folded behind "See more".
func section(text string) slack.Block {
	return slack.NewSectionBlock(plain(text), nil, nil, slack.SectionBlockOptionExpand(true))
}

// short is a fact of a few words.
func short(s string) string {
	shown, _ := safetext.CutSlack(s, maxValue)
	return shown
}
