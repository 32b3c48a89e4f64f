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

// direct is the place of a question that one person alone may answer:
// their direct messages with the app. No channel has such an id.
const direct = "direct"

// directForm is that of the id of direct messages.
var directForm = pattern.Of(`^D[A-Z0-9]{1,32}$`)

// recipient is the Slack user of the one person who may answer, in our
// workspace and as the directory has it; "" when it has none, and in a
// channel.
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

// userOf is the Slack user of a person, in our workspace and as the
// directory has it; "" when it has none.
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
		// a name with the workspace in it may give the user to somebody else
		whose, known, err := a.person(ctx, &interaction{team: a.cfg.Team, user: user})
		if err != nil || known && whose.ID == p.ID {
			return user, err
		}
	}

	return "", nil
}

// userIn is the user of our workspace that a name of the directory
// stands for, "" when it is another name.
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

// converse opens the direct messages with one user, and returns their
// id. Slack must say that they are theirs.
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

// unreached reports, once for each question, that nobody is told of it
// in Slack.
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

// placeOf is the place of a request that a message with a button stood
// in, "" when the request is not shown there. private says that nobody
// but the one person who may answer reads it.
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
	if known == nil && to != "" { // posted, and the process was killed before it remembered
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
