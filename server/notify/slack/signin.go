package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/slack-go/slack"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/signin"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/server/notify"
)

// maxButtonURL is the longest address that Slack takes for a button.
const maxButtonURL = 3000

// signInMessage is the direct message about a sign-in.
type signInMessage struct {
	Channel string    `json:"channel"`
	TS      string    `json:"ts"`    // "": it was about to be posted, and may be there
	User    string    `json:"user"`  // to whom
	Since   time.Time `json:"since"` // of the link that it shows
}

// sendSignIn makes the direct message about a sign-in agree with how it
// stands: there is one, to the Slack user of the person who may see it,
// while the sign-in is open. As show does, it reads again after it
// wrote.
func (a *App) sendSignIn(ctx context.Context, id string, again bool) error {
	if a.cfg.SignIns == nil {
		return notify.Permanent(errors.New("slack: nothing here asks people to sign in"))
	}
	unlock, err := a.lock(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	const most = 5
	for range most {
		done, err := a.stepSignIn(ctx, id, again)
		if err != nil {
			return classify(fmt.Errorf("slack: sign-in %s: %w", id, err), err)
		}
		if done {
			return nil
		}
		again = false
	}

	return fmt.Errorf("slack: sign-in %s: it keeps changing", id)
}

// stepSignIn does one thing for it, and reports whether nothing was to
// do.
func (a *App) stepSignIn(ctx context.Context, id string, again bool) (done bool, err error) {
	asked, to, err := a.openSignIn(ctx, id)
	if err != nil {
		return false, err
	}
	now, err := a.rememberedSignIn(ctx, id)
	switch {
	case err != nil:
		return false, err
	case now == nil && to == "":
		return true, nil
	case now != nil && now.User != to: // over, or not theirs any more
		return false, a.closeSignIn(ctx, id, now)
	case now == nil || now.TS == "":
		return false, a.postSignIn(ctx, &asked, to)
	case now.Since.Equal(asked.Since) && !again:
		return true, nil
	}

	_, _, _, err = a.api.UpdateMessageContext(ctx, now.Channel, now.TS, a.signInOptions(&asked)...)
	if code(err) == "message_not_found" { // somebody deleted it
		return true, a.cfg.Values.DeleteValue(ctx, a.bucket(), signInKey(id))
	}
	if err != nil {
		return false, err
	}
	now.Since = asked.Since

	return false, a.rememberSignIn(ctx, id, now)
}

// postSignIn posts the message, and remembers it before and after: what
// a crash leaves in between is taken back by a message of its own.
func (a *App) postSignIn(ctx context.Context, asked *signin.Asked, to string) error {
	channel, err := a.converse(ctx, to)
	if err != nil {
		return err
	}
	next := signInMessage{Channel: channel, User: to, Since: asked.Since}
	if err := a.rememberSignIn(ctx, asked.ID, &next); err != nil {
		return err
	}
	next.Channel, next.TS, err = a.api.PostMessageContext(ctx, channel, a.signInOptions(asked)...)
	if err != nil {
		return err
	}

	return a.rememberSignIn(ctx, asked.ID, &next)
}

func (a *App) rememberSignIn(ctx context.Context, id string, m *signInMessage) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}

	return a.cfg.Values.SetValue(ctx, a.bucket(), signInKey(id), text, a.cfg.Now().Add(kept))
}

// openSignIn is a sign-in that is open, and the Slack user who may be
// told of it; "" while there is none.
func (a *App) openSignIn(ctx context.Context, id string) (asked signin.Asked, to string, err error) {
	asked, person, err := a.cfg.SignIns.SignIn(ctx, a.cfg.Tenant, id)
	if errors.Is(err, approval.ErrNotFound) {
		return asked, "", nil
	}
	if err == nil {
		to, err = a.userOf(ctx, person)
	}

	return asked, to, err
}

// closeSignIn takes back what a message asks, link and all; of one that
// is only about to be there it says so in another.
func (a *App) closeSignIn(ctx context.Context, id string, now *signInMessage) error {
	const text = "Sign-in no longer needed"
	over := []slack.MsgOption{
		slack.MsgOptionText(text, true),
		slack.MsgOptionBlocks(section(safetext.Slack(text + ": the call went on, or has ended."))),
		slack.MsgOptionDisableLinkUnfurl(),
		slack.MsgOptionDisableMediaUnfurl(),
	}

	var err error
	if now.TS == "" {
		_, _, err = a.api.PostMessageContext(ctx, now.Channel, over...)
	} else {
		_, _, _, err = a.api.UpdateMessageContext(ctx, now.Channel, now.TS, over...)
	}
	if err != nil && code(err) != "message_not_found" {
		return err
	}

	return a.cfg.Values.DeleteValue(ctx, a.bucket(), signInKey(id))
}

// signInOptions is the message: the host first, and the link where the
// rule of package signin has one.
func (a *App) signInOptions(asked *signin.Asked) []slack.MsgOption {
	words, _ := safetext.CutSlack(asked.Words(), maxText)
	blocks := []slack.Block{section(words)}
	if warning := asked.Warning(); warning != "" {
		blocks = append(blocks, section(safetext.Slack(warning)))
	}
	blocks = append(blocks, section(safetext.Slack("Until "+clock(asked.Until))))
	button := slack.NewButtonBlockElement(actionOpen, "", plain("Open in the inbox")).
		WithURL(a.inbox.JoinPath("/").String())
	if asked.Link != "" && a.cfg.Arguments && len(asked.Link) <= maxButtonURL {
		const most = 75 // that Slack takes of a button
		button = slack.NewButtonBlockElement(actionOpen, "", plain(safetext.HeadSlack("Sign in at "+asked.Host, most))).
			WithURL(asked.Link)
	}

	return []slack.MsgOption{
		slack.MsgOptionText("A tool asks you to sign in", true),
		slack.MsgOptionBlocks(append(blocks, slack.NewActionBlock("", button))...),
		slack.MsgOptionDisableLinkUnfurl(),
		slack.MsgOptionDisableMediaUnfurl(),
	}
}

func signInKey(id string) string { return "signed " + id }

// rememberedSignIn is the message about a sign-in, nil when there is none.
func (a *App) rememberedSignIn(ctx context.Context, id string) (*signInMessage, error) {
	return recall[signInMessage](ctx, a, signInKey(id), "sign-in "+id)
}
