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

// signIns sends the links by which people sign in to tools.
type signIns struct{ *App }

// maxButtonURL is the longest URL that Slack accepts for a button.
const maxButtonURL = 3000

// signInMessage is the direct message about a sign-in.
type signInMessage struct {
	Channel string    `json:"channel"`
	TS      string    `json:"ts"`    // empty if it was about to be posted, so it may exist
	User    string    `json:"user"`  // recipient
	Since   time.Time `json:"since"` // of the link that it shows
}

// sendSignIn makes the direct message match the state of a sign-in: while the sign-in is open
// there is one message, to the Slack user of the person who may see it. As in show, it reads
// the state again after each write.
func (a signIns) sendSignIn(ctx context.Context, id string, again bool) error {
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

// stepSignIn does one step towards that, and reports whether nothing was left to do.
func (a signIns) stepSignIn(ctx context.Context, id string, again bool) (done bool, err error) {
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
	case now != nil && now.User != to: // ended, or no longer this user's
		return false, a.closeSignIn(ctx, id, now)
	case now == nil || now.TS == "":
		return false, a.postSignIn(ctx, &asked, to)
	case now.Since.Equal(asked.Since) && !again:
		return true, nil
	}

	_, _, _, err = a.api.UpdateMessageContext(ctx, now.Channel, now.TS, a.signInOptions(&asked)...)
	if code(err) == "message_not_found" { // it was deleted in Slack
		return true, a.cfg.Values.DeleteValue(ctx, a.bucket(), signInKey(id))
	}
	if err != nil {
		return false, err
	}
	now.Since = asked.Since

	return false, a.rememberSignIn(ctx, id, now)
}

// postSignIn posts the message, and stores it before and after. If a crash happens in between,
// closeSignIn posts a second message that cancels the first.
func (a signIns) postSignIn(ctx context.Context, asked *signin.Asked, to string) error {
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

func (a signIns) rememberSignIn(ctx context.Context, id string, m *signInMessage) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}

	return a.cfg.Values.SetValue(ctx, a.bucket(), signInKey(id), text, a.cfg.Now().Add(kept))
}

// openSignIn returns an open sign-in and the Slack user who may see it, or an empty user if
// there is none.
func (a signIns) openSignIn(ctx context.Context, id string) (asked signin.Asked, to string, err error) {
	asked, person, err := a.cfg.SignIns.SignIn(ctx, a.cfg.Tenant, id)
	if errors.Is(err, approval.ErrNotFound) {
		return asked, "", nil
	}
	if err == nil {
		to, err = a.userOf(ctx, person)
	}

	return asked, to, err
}

// closeSignIn replaces the message, including its link. If it is not known whether the message
// was posted, it posts another one instead.
func (a signIns) closeSignIn(ctx context.Context, id string, now *signInMessage) error {
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

// signInOptions returns the message: the host first, and the link if the rules of package
// signin allow it.
func (a signIns) signInOptions(asked *signin.Asked) []slack.MsgOption {
	words, _ := safetext.CutSlack(asked.Words(), maxText)
	blocks := []slack.Block{section(words)}
	if warning := asked.Warning(); warning != "" {
		blocks = append(blocks, section(safetext.Slack(warning)))
	}
	blocks = append(blocks, section(safetext.Slack("Until "+clock(asked.Until))))
	button := slack.NewButtonBlockElement(actionOpen, "", plain("Open in the inbox")).
		WithURL(a.inbox.JoinPath("/").String())
	if asked.Link != "" && a.cfg.Arguments && len(asked.Link) <= maxButtonURL {
		const most = 75 // Slack's limit for a button
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

// rememberedSignIn returns the stored message about a sign-in, or nil.
func (a signIns) rememberedSignIn(ctx context.Context, id string) (*signInMessage, error) {
	return recall[signInMessage](ctx, a.App, signInKey(id), "sign-in "+id)
}
