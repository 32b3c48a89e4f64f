package slack

import (
	"github.com/slack-go/slack"

	"github.com/assent-dev/assent/internal/safetext"
)

// Slack's limits are in characters. Our limits are lower, because Slack may count some
// characters differently.
const (
	maxText  = 2900 // of 3000 in a section
	maxValue = 200  // for a name or another short fact
)

// plain makes a plain_text object without emoji, so that ":bomb:" is shown literally. The text
// must be ready to show.
func plain(text string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, text, false, false)
}

// section returns a block of text that is never collapsed behind "See more".
func section(text string) slack.Block {
	return slack.NewSectionBlock(plain(text), nil, nil, slack.SectionBlockOptionExpand(true))
}

// short returns a fact of a few words.
func short(s string) string {
	shown, _ := safetext.CutSlack(s, maxValue)
	return shown
}
