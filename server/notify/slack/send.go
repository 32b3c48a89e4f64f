package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/slack-go/slack"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/signin"
	"github.com/assent-dev/assent/internal/guard"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/server/notify"
	"github.com/assent-dev/assent/store"
)

// shown records the message that shows a request, and which version of the request it shows.
type shown struct {
	Channel string `json:"channel"`
	TS      string `json:"ts"`
	Version int64  `json:"version"`
	User    string `json:"user,omitempty"` // the only reader of a direct message
}

// kept is the time for which a message can be rewritten after the deadline of its request.
const kept = 30 * 24 * time.Hour

// Send updates every message about the job's request, and posts missing ones while the request
// is pending. A reminder is an additional message in the thread of the first one.
func (a *App) Send(ctx context.Context, job store.Job) error {
	if job.Tenant != a.cfg.Tenant {
		return notify.Permanent(errors.New("slack: this workspace belongs to another tenant"))
	}
	if job.Event == signin.EventAsked || job.Event == signin.EventOver {
		return signIns{a}.sendSignIn(ctx, job.Subject, job.Attempt > 1)
	}
	r, err := a.cfg.Requests.Request(ctx, job.Tenant, job.Subject)
	if errors.Is(err, approval.ErrNotFound) {
		return notify.Permanent(fmt.Errorf("slack: request %s: %w", job.Subject, err))
	}
	if err != nil {
		return fmt.Errorf("slack: read request %s: %w", job.Subject, err)
	}
	var failures []error
	for _, place := range a.places(r) {
		err := a.show(ctx, place, r.ID, job.Attempt > 1)
		if err == nil && job.Event == approval.EventReminded {
			err = a.remind(ctx, place, r, job.ID)
		}
		if err != nil {
			failures = append(failures, classify(fmt.Errorf("slack: channel %s: %w", place, err), err))
		}
	}

	return join(failures)
}

// places returns the places in which a request is shown: the channels of the groups that may
// answer, or only the direct messages with the person if one person alone may answer.
func (a *App) places(r *approval.Request) []string {
	if r.OnlyUser() {
		return []string{direct}
	}
	var out []string
	for _, group := range notify.Groups(r) {
		channel, ok := a.cfg.Channels[group]
		if !ok {
			channel = a.cfg.Channels[""]
		}
		if channel != "" && !slices.Contains(out, channel) {
			out = append(out, channel)
		}
	}

	return out
}

// show makes the message in one place match the request. The request may change in the
// meantime, and other replicas may write the same message, so show reads the state again after
// each write until the message matches. With again it rewrites the message in any case, since a
// previous attempt may have written it without storing that.
func (a *App) show(ctx context.Context, place, id string, again bool) error {
	unlock, err := a.lock(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	const most = 5
	for range most {
		r, err := a.cfg.Requests.Request(ctx, a.cfg.Tenant, id)
		if err != nil {
			return err
		}
		now, err := a.remembered(ctx, place, id)
		switch {
		case err != nil:
			return err
		case now == nil && r.State != approval.Pending: // no one needs to act, and there is no message to update
			return nil
		case now != nil && now.Version == r.Version && !again:
			return nil
		}

		to, err := a.recipient(ctx, place, r)
		if err != nil {
			return err
		}
		if now == nil && place == direct && to == "" {
			return a.unreached(ctx, r)
		}
		if again, err = false, a.write(ctx, place, to, r, now); err != nil {
			return err
		}
	}

	return errors.New("the request keeps changing")
}

// write posts or rewrites one message and stores its place. to is the only user who reads it,
// or empty for a channel.
func (a *App) write(ctx context.Context, place, to string, r *approval.Request, now *shown) error {
	next := shown{Version: r.Version, User: to}
	var err error
	if now == nil {
		next.Channel, next.TS, err = a.post(ctx, place, to, r)
	} else {
		next.User = now.User
		next.Channel, next.TS, _, err = a.api.UpdateMessageContext(
			ctx, now.Channel, now.TS, a.options(ctx, r, now.User == to)...,
		)
	}

	if code(err) == "message_not_found" && now != nil {
		return a.cfg.Values.DeleteValue(ctx, a.bucket(), messageKey(place, r.ID)) // it was deleted in Slack
	}
	if err != nil {
		return err
	}
	return a.remember(ctx, messageKey(place, r.ID), next, r)
}

// post posts a message whose place is not stored.
func (a *App) post(ctx context.Context, place, to string, r *approval.Request) (channel, ts string, err error) {
	channel = place
	if place == direct {
		if channel, err = a.converse(ctx, to); err != nil {
			return "", "", err
		}
	}

	return a.api.PostMessageContext(ctx, channel, a.options(ctx, r, true)...)
}

func (a *App) options(ctx context.Context, r *approval.Request, private bool) []slack.MsgOption {
	shortages, err := a.cfg.Voter.Shortages(ctx, r)
	if err != nil {
		// the message is sent without the shortages
		a.cfg.Report(fmt.Errorf("slack: who can fill request %s: %w", r.ID, err))
	}
	text, _ := safetext.CutSlack(approval.ShortageWords(shortages), maxText/2)
	m := a.render(r, text, private)
	return []slack.MsgOption{
		slack.MsgOptionText(m.text, true), slack.MsgOptionBlocks(m.blocks...),
		slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl(),
	}
}

// remind posts into the thread of the message, once for each delivery.
func (a *App) remind(ctx context.Context, channel string, r *approval.Request, job int64) error {
	first, err := a.remembered(ctx, channel, r.ID)
	if err != nil || first == nil || r.State != approval.Pending {
		return err
	}
	key := "reminded " + strconv.FormatInt(job, 10) + " " + channel
	if _, err := a.cfg.Values.Value(ctx, a.bucket(), key, a.cfg.Now()); !errors.Is(err, approval.ErrNotFound) {
		return err
	}
	text := "Still waiting for people: request " + r.ID + ", until " + clock(r.Deadline)
	_, ts, err := a.api.PostMessageContext(
		ctx,
		first.Channel,
		slack.MsgOptionText(text, true),
		slack.MsgOptionTS(first.TS),
		slack.MsgOptionBroadcast(),
		slack.MsgOptionBlocks(section(safetext.Slack(text))),
		slack.MsgOptionDisableLinkUnfurl(),
		slack.MsgOptionDisableMediaUnfurl(),
	)
	if err != nil {
		return err
	}
	return a.remember(ctx, key, shown{Channel: first.Channel, TS: ts, Version: r.Version}, r)
}

func (a *App) bucket() string { return "slack:" + a.cfg.Tenant }

func messageKey(channel, id string) string { return "message " + id + " " + channel }

func (a *App) remember(ctx context.Context, key string, s shown, r *approval.Request) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return a.keep(ctx, key, text, r)
}

// keep stores a value for as long as the messages about a request are kept.
func (a *App) keep(ctx context.Context, key string, text []byte, r *approval.Request) error {
	until := a.cfg.Now()
	if r.Deadline.After(until) {
		until = r.Deadline
	}
	return a.cfg.Values.SetValue(ctx, a.bucket(), key, text, until.Add(kept))
}

// remembered returns the stored message of a request in a channel, or nil.
func (a *App) remembered(ctx context.Context, channel, id string) (*shown, error) {
	return recall[shown](ctx, a, messageKey(channel, id), "request "+id)
}

// recall returns the value that is stored under a key, or nil. of is a description for errors.
func recall[T any](ctx context.Context, a *App, key, of string) (*T, error) {
	text, err := a.cfg.Values.Value(ctx, a.bucket(), key, a.cfg.Now())
	if errors.Is(err, approval.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	kept := new(T)
	if err := json.Unmarshal(text, kept); err != nil {
		return nil, fmt.Errorf("read what was remembered of %s: %w", of, err)
	}
	return kept, nil
}

// locks prevent two deliveries of this process from posting the same message. Other replicas
// are handled by show, which reads again after each write.
type locks struct {
	seed    maphash.Seed
	stripes [64]chan struct{}
}

func newLocks() *locks {
	l := &locks{seed: maphash.MakeSeed()}
	for i := range l.stripes {
		l.stripes[i] = make(chan struct{}, 1)
	}
	return l
}

func (a *App) lock(ctx context.Context, id string) (unlock func(), err error) {
	stripe := a.locks.stripes[maphash.String(a.locks.seed, id)%uint64(len(a.locks.stripes))]
	select {
	case stripe <- struct{}{}:
		return func() { <-stripe }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// code returns the name of a Slack error, or an empty string for other errors.
func code(err error) string {
	if e, ok := errors.AsType[slack.SlackErrorResponse](err); ok {
		return e.Err
	}
	return ""
}

// classify converts an error of Slack's API to a *notify.Failure. text is the error for
// operators. Most named errors are mistakes in our code or in the configuration, which retries
// don't fix.
func classify(text, err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		text = fmt.Errorf("slack: %w", e.Err)
	}
	f := &notify.Failure{Err: text}
	if e, ok := errors.AsType[*slack.RateLimitedError](err); ok {
		f.After = e.RetryAfter
	}
	_, f.Permanent = errors.AsType[*guard.Refusal](err)
	switch code(err) {
	case "", "ratelimited", "rate_limited", "internal_error", "fatal_error", "service_unavailable",
		"request_timeout", "team_added_to_org":
	default:
		f.Permanent = true
	}

	if e, ok := errors.AsType[slack.StatusCodeError](err); ok {
		f.Permanent = e.Code/100 == 3 || e.Code == http.StatusNotFound
	}
	return f
}

// join combines the failures of several channels. If one of them may still succeed, the job is
// tried again.
func join(failures []error) error {
	if len(failures) == 0 {
		return nil
	}
	all := &notify.Failure{Err: errors.Join(failures...), Permanent: true}
	for _, err := range failures {
		if f, ok := errors.AsType[*notify.Failure](err); ok {
			all.Permanent, all.After = all.Permanent && f.Permanent, max(all.After, f.After)
		}
	}
	return all
}
