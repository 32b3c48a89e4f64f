package slack

import (
	_ "embed"

	"github.com/assent-dev/assent/internal/guard"
	"github.com/assent-dev/assent/server/notify"
)

//go:embed settings.schema.json
var schema []byte

// Settings configures a tenant's Slack workspace.
type Settings struct {
	notify.Route
	Team              string            `doc:"team"`
	TokenFile         string            `doc:"token_file"`
	SigningSecretFile string            `doc:"signing_secret_file"`
	Channels          map[string]string `doc:"channels"`  // by group; the empty key is the default
	Arguments         bool              `doc:"arguments"` // show arguments, and therefore offer buttons
	API               string            `doc:"api"`       // base URL of Slack's API; by default https://slack.com/api/
	Loopback          bool              `doc:"loopback"`  // allow addresses on this machine, including plain http
}

// Channel describes the channel.
func Channel() notify.Channel {
	return notify.Channel{
		Name:    name,
		Answers: true,
		SignIns: true,
		Register: notify.Registered{
			For:   "slack_interactivity_url",
			Words: "interactivity URL for the Slack app",
		},
		Settings: notify.NewSettings("slack", schema, (*Settings).receivers),
	}
}

// receivers returns the workspace, if one is configured.
func (s *Settings) receivers() []notify.Receiver {
	if s == nil {
		return nil
	}

	return []notify.Receiver{{
		Route: s.Route,
		Check: func(read notify.Secrets) []error {
			_, token := read(s.TokenFile)
			_, signing := read(s.SigningSecretFile)
			return []error{token, signing}
		},
		Open: s.open,
	}}
}

func (s *Settings) open(h notify.Host) (notify.Sender, error) {
	token, err := h.Secrets(s.TokenFile)
	if err != nil {
		return nil, err
	}
	signing, err := h.Secrets(s.SigningSecretFile)
	if err != nil {
		return nil, err
	}

	return New(Config{
		Tenant:        h.Tenant,
		Team:          s.Team,
		Token:         token,
		SigningSecret: signing,
		Channels:      s.Channels,
		Arguments:     s.Arguments,
		Inbox:         h.Inbox,
		API:           s.API,
		Guard:         guard.Guard{Loopback: s.Loopback},
		Report:        h.Warn,
		Voter:         h.Service,
		Requests:      h.Service,
		People:        h.People,
		Values:        h.Store,
		SignIns:       h.SignIns,
	})
}
