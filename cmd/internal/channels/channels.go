// Package channels is the table of all channels.
package channels

import (
	"github.com/assent-dev/assent/server/inbox"
	"github.com/assent-dev/assent/server/notify"
	"github.com/assent-dev/assent/server/notify/slack"
	"github.com/assent-dev/assent/server/notify/webhook"
)

// All lists them. A new one is a folder of server/notify, and a line here.
func All() []notify.Channel {
	return []notify.Channel{
		{Name: inbox.Channel, Answers: true}, // pages of this server; nothing is sent
		webhook.Channel(),
		slack.Channel(),
	}
}
