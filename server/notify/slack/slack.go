// Package slack shows requests in Slack and accepts answers from there.
//
// A message is a view of the stored request: it is rewritten until it shows the request's
// current state, in whatever order deliveries arrive. Answers are signed interactions (Slack's
// v0 signature). The user who clicked is looked up in the directory as slack:<team>:<user>.
// Membership of a channel gives no permission, and an unmapped user is refused.
//
// A question that only one person may answer is shown only to that person, in direct messages
// with the user that the directory has for them.
//
// Text from an agent, a call or a person is shown in plain_text objects, escaped, never as
// mrkdwn: it can't link, mention, format or preview anything. Buttons exist only below a call
// that the message shows completely.
package slack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/signin"
	"github.com/assent-dev/assent/internal/guard"
	"github.com/assent-dev/assent/internal/pattern"
)

// name is the channel name that is recorded with answers given here.
const name = "slack"

// Voter counts answers, and reports in advance who may answer. It is implemented by
// approval.Service.
type Voter interface {
	Vote(ctx context.Context, in approval.VoteInput) (*approval.Voted, error)
	Eligible(ctx context.Context, r *approval.Request, person string) (approval.Eligibility, error)
	Shortages(ctx context.Context, r *approval.Request) ([]approval.Shortage, error)
}

// Requests reads requests. It is implemented by approval.Service.
type Requests interface {
	Request(ctx context.Context, tenant, id string) (*approval.Request, error)
}

// Values stores which message shows which request. It is implemented by store.Store.
type Values interface {
	SetValue(ctx context.Context, bucket, key string, value []byte, expires time.Time) error
	Value(ctx context.Context, bucket, key string, now time.Time) ([]byte, error)
	DeleteValue(ctx context.Context, bucket, key string) error
}

// Config connects one tenant with one Slack workspace. All fields without a default are
// required.
type Config struct {
	Tenant        string
	Team          string // id of the workspace, T…
	Token         string // the bot's token, xoxb-…
	SigningSecret string // of the app
	// Channels maps each group to the id of the channel that shows its requests. The empty
	// group is the default for all others.
	Channels  map[string]string
	Arguments bool   // show arguments and the author's message, and therefore offer buttons; false by default
	Inbox     string // public address of the inbox

	// API is the base URL of Slack's API, by default https://slack.com/api/. Response URLs on
	// its host are trusted in addition to Slack's own.
	API    string
	Guard  guard.Guard // limits which addresses may be contacted
	Now    func() time.Time
	Report func(error) // called for work that fails after Slack got its acknowledgement; may be nil

	Voter    Voter
	Requests Requests
	People   approval.Directory
	Values   Values
	SignIns  signin.Book // people that tools ask to sign in; if nil, no sign-in is announced
}

// App is both sides of the connection: a notify.Sender for outgoing messages and an
// http.Handler for the app's interactivity URL.
type App struct {
	cfg    Config
	inbox  *url.URL
	base   *url.URL
	api    *slack.Client
	client *http.Client
	seen   replays
	locks  *locks
	slots  chan struct{} // one element for each interaction in progress
	works  sync.WaitGroup
}

const (
	defaultAPI  = "https://slack.com/api/"
	apiTimeout  = 10 * time.Second
	workTimeout = 30 * time.Second
	maxWorks    = 64
)

// The formats of Slack's ids.
var (
	teamForm    = pattern.Of(`^[TE][A-Z0-9]{1,32}$`)
	userForm    = pattern.Of(`^[UW][A-Z0-9]{1,32}$`)
	channelForm = pattern.Of(`^[CGD][A-Z0-9]{1,32}$`)
)

// New checks the configuration and returns an App. It makes no connections.
func New(cfg Config) (*App, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("slack: %w", err)
	}
	if cfg.API == "" {
		cfg.API = defaultAPI
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Report == nil {
		cfg.Report = func(error) {}
	}
	base, err := cfg.Guard.CheckURL(cfg.API)
	if err != nil {
		return nil, fmt.Errorf("slack: api: %w", err)
	}
	if !strings.HasSuffix(base.Path, "/") {
		return nil, errors.New("slack: api: expected a URL that ends in a slash")
	}
	inbox, err := url.Parse(cfg.Inbox)
	if err != nil || inbox.Host == "" || inbox.Scheme != "https" && inbox.Scheme != "http" {
		return nil, errors.New("slack: inbox: expected its public address as an http(s) URL")
	}
	a := &App{
		cfg:    cfg,
		base:   base,
		inbox:  inbox,
		client: bounded(cfg.Guard.Client(apiTimeout)),
		slots:  make(chan struct{}, maxWorks),
		locks:  newLocks(),
	}
	a.api = slack.New(cfg.Token, slack.OptionHTTPClient(a.client), slack.OptionAPIURL(cfg.API))
	return a, nil
}

func (c *Config) check() error {
	switch {
	case c.Tenant == "":
		return errors.New("tenant: expected a name")
	case !teamForm().MatchString(c.Team):
		return errors.New("team: expected the id of the workspace, such as T0123ABC")
	case c.Token == "":
		return errors.New("token: expected the bot's token")
	case c.SigningSecret == "":
		return errors.New("signing secret: expected the app's signing secret: without it anybody could answer")
	case len(c.Channels) == 0:
		return errors.New("channels: expected at least one")
	case c.Voter == nil || c.Requests == nil || c.People == nil || c.Values == nil:
		return errors.New("expected a voter, requests, people and values")
	}

	for group, channel := range c.Channels {
		if !channelForm().MatchString(channel) {
			return fmt.Errorf(
				"channels: group %q: expected the id of a channel, such as C0123ABC, not its name",
				group,
			)
		}
	}

	return nil
}

// bounded limits the size of responses. Slack's responses are much smaller.
func bounded(c *http.Client) *http.Client {
	c.Transport = limited{c.Transport}
	return c
}

type limited struct{ next http.RoundTripper }

const maxAnswer = 1 << 20

// RoundTrip sends one request.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.next.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxAnswer)
	}
	return answer, err
}

// Wait returns when all work started by interactions has ended. Call it after the server has
// stopped accepting requests.
func (a *App) Wait() { a.works.Wait() }
