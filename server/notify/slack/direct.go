package slack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/internal/safetext"
)

// direct is the place of a question that only one person may answer: the direct messages of the
// app with them. No channel has this id.
const direct = "direct"

// directForm is the format of the id of direct messages.
var directForm = pattern.Of(`^D[A-Z0-9]{1,32}$`)

// recipient returns the Slack user of the only person who may answer a request, in our
// workspace and according to the directory. It returns an empty string if there is none, and
// for a channel.
func (a *App) recipient(ctx context.Context, place string, r *approval.Request) (string, error) {
	if place != direct {
		return "", nil
	}
	p, known, err := a.cfg.People.Person(ctx, a.cfg.Tenant, r.Requester.Principal)
	if err != nil || !known {
		return "", err
	}
	e, err := a.cfg.Voter.Eligible(ctx, r, p.ID)
	if err != nil || !e.Answer {
		return "", err
	}
	return a.userOf(ctx, p.ID)
}

// userOf returns the Slack user of a person in our workspace according to the directory, or an
// empty string.
func (a *App) userOf(ctx context.Context, id string) (string, error) {
	p, known, err := a.cfg.People.Person(ctx, a.cfg.Tenant, id)
	if err != nil || !known || p.ID != id {
		return "", err
	}
	for _, name := range append([]string{p.ID}, p.Also...) {
		user := a.userIn(name)
		if user == "" {
			continue
		}
		// A name that includes the workspace may map the user to a different person.
		whose, known, err := a.person(ctx, &interaction{team: a.cfg.Team, user: user})
		if err != nil || known && whose.ID == p.ID {
			return user, err
		}
	}

	return "", nil
}

// userIn returns the user of our workspace for a name of the directory, or an empty string if
// the name is not such a user.
func (a *App) userIn(name string) string {
	scheme, user, _ := strings.Cut(name, ":")
	if !strings.EqualFold(scheme, "slack") {
		return ""
	}
	user = strings.TrimPrefix(user, a.cfg.Team+":")
	if !userForm().MatchString(user) {
		return ""
	}

	return user
}

// converse opens the direct messages with one user and returns their id. It checks that Slack
// opened them with that user.
func (a *App) converse(ctx context.Context, user string) (string, error) {
	c, _, _, err := a.api.OpenConversationContext(ctx, &slack.OpenConversationParameters{
		Users:    []string{user},
		ReturnIM: true,
	})
	switch {
	case err != nil:
		return "", err
	case c == nil || c.User != user || !directForm().MatchString(c.ID):
		return "", errors.New("the messages that Slack opened are not those with the user " + user)
	}

	return c.ID, nil
}

// unreached reports, once for each question, that the person can't be notified in Slack.
func (a *App) unreached(ctx context.Context, r *approval.Request) error {
	key := "unreached " + r.ID
	if _, err := a.cfg.Values.Value(ctx, a.bucket(), key, a.cfg.Now()); !errors.Is(err, approval.ErrNotFound) {
		return err
	}
	a.cfg.Report(fmt.Errorf(
		"slack: question %s waits in the inbox alone: the directory has no Slack user for %s, who alone may answer; "+
			"write one to their names in people.yaml, such as slack:%s:U0123ABC",
		r.ID, safetext.Line(r.Requester.Principal), a.cfg.Team,
	))

	return a.keep(ctx, key, []byte("reported"), r)
}

// placeOf returns the place in which a message with a button was posted, or an empty string if
// the request is not shown there. private is true if only the person who may answer can read
// it.
func (a *App) placeOf(
	ctx context.Context, r *approval.Request, channel string,
) (place string, private bool, err error) {
	if !r.OnlyUser() {
		if slices.Contains(slices.Collect(maps.Values(a.cfg.Channels)), channel) {
			place = channel
		}

		return place, false, nil
	}

	if !directForm().MatchString(channel) {
		return "", false, nil
	}

	known, err := a.remembered(ctx, direct, r.ID)
	if err != nil {
		return "", false, err
	}
	to, err := a.recipient(ctx, direct, r)
	if err != nil {
		return "", false, err
	}
	if known == nil && to != "" { // posted, but the process was killed before the place was stored
		id, err := a.converse(ctx, to)
		if err != nil {
			return "", false, err
		}
		known = &shown{Channel: id, User: to}
	}

	if known == nil || known.Channel != channel {
		return "", false, nil
	}

	return direct, known.User == to, nil
}
