package runtime

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/internal/names"
)

// Limits of CallsOf.
const (
	maxListed      = 100 // entries that are read
	maxShownCalls  = 20
	maxShownEvents = 10 // of a call, the latest
	maxShownViews  = 8  // of a call, the latest
	maxShownText   = 4 << 10
)

// listEnded is the time for which an ended call is listed for its user.
const listEnded = time.Hour

// listed is the record by which a person finds a call. Its keys sort the newest first.
type listed struct {
	Call  string    `json:"call"`
	Since time.Time `json:"since"`
}

// reader identifies who wants to read a call: an asker, or a person of the directory.
type reader struct {
	asker  approval.Asker
	person string
}

// listings keeps the listings by which people find their calls.
type listings struct {
	*base
	users *durable.Vault[listed]
}

// mayRead reports whether a reader may read a call. Askers may read their own calls. A person
// may read calls that are made for them or, if no user is named, with their token.
func (l *listings) mayRead(ctx context.Context, c *call, by reader) (bool, error) {
	if l.expired(c.Expires) {
		return false, nil
	}
	if by.person == "" {
		return c.Asker.Same(by.asker), nil
	}
	user, err := l.userOf(ctx, c)

	return err == nil && user == by.person, err
}

// listingKey returns the key under which the user of a new call finds it, or an empty string.
func (l *listings) listingKey(ctx context.Context, c *call) string {
	if l.cfg.Person == nil {
		return ""
	}
	user, err := l.userOf(ctx, c)
	if err != nil {
		l.log.Warn("a call is not listed for its user", "call", callName(c.Key), "error", plainError(err))
	}
	if user == "" {
		return ""
	}
	newest := math.MaxInt64 - l.now().UnixMicro()

	return fmt.Sprintf("%s/%019d/%.16s", l.names.Person(user), newest, durable.Hash(c.Key))
}

// updateListing stores the listing of a call for its user, with its expiry. If that fails, it
// is only logged, and the call continues.
func (l *listings) updateListing(ctx context.Context, c *call) {
	if c.Part.Listed == "" {
		return
	}
	_, err := l.users.Edit(ctx, c.Part.Listed, func(d *durable.Doc[listed]) error {
		if d.Version == 0 {
			d.Body = listed{Call: c.Key, Since: l.now()}
		}
		switch {
		case !c.Over():
			d.Expires = c.Deadline.Add(keepLive) // people may extend the deadline
		case c.Part.Live:
			d.Expires = l.now().Add(keepLive)
		default:
			d.Expires = c.EndedAt.Add(listEnded)
		}

		return nil
	})
	if err != nil {
		l.log.Warn("a call is not listed for its user", "call", callName(c.Key), "error", plainError(err))
	}
}

// CallsOf lists the calls of a person of the directory, the newest first: those in progress,
// and those that ended within the last hour. It returns at most 20; more means that there may
// be others.
func (r *Runtime) CallsOf(ctx context.Context, person string) (calls []rap.Watched, more bool, err error) {
	if person == "" {
		return nil, false, nil
	}
	entries, err := r.listings.users.List(ctx, r.names.Person(person)+"/", "", maxListed)
	if err != nil {
		return nil, false, fmt.Errorf("list the calls of a person: %w", err)
	}
	for _, d := range entries {
		if len(calls) == maxShownCalls {
			return calls, true, nil
		}
		if r.expired(d.Expires) {
			continue
		}
		one, ok, err := r.listings.watched(ctx, d, reader{person: person})
		if err != nil {
			return nil, false, fmt.Errorf("list the calls of a person: %w", err)
		}
		if ok {
			calls = append(calls, one)
		}
	}

	return calls, len(entries) == maxListed, nil
}

func (l *listings) watched(ctx context.Context, d *durable.Doc[listed], by reader) (rap.Watched, bool, error) {
	c, err := l.engine.Get(ctx, d.Body.Call)
	if errors.Is(err, approval.ErrNotFound) {
		return rap.Watched{}, false, nil
	}
	if err != nil {
		return rap.Watched{}, false, err
	}
	if may, err := l.mayRead(ctx, c, by); err != nil || !may || c.Part.Listed != d.Key {
		return rap.Watched{}, false, err
	}
	if ended(c) && l.expired(c.EndedAt.Add(listEnded)) { // its process died before it updated the listing
		return rap.Watched{}, false, nil
	}

	one := publicCall(c)
	out := rap.Watched{
		Server:    one.Server,
		Operation: one.Operation,
		Thread:    one.Thread,
		ID:        one.ID,
		State:     string(one.State),
		Question:  one.Question,
		Failed:    one.Failed,
		Why:       string(one.Why),
		Since:     d.Body.Since,
		Result:    shownResult(one.Outcome),
	}
	if ended(c) {
		out.Ended = c.EndedAt
	}
	if out.Events, err = l.latestEvents(ctx, c); err != nil {
		return rap.Watched{}, false, err
	}
	out.Lost = c.Part.Gone + len(c.Part.Events) - len(out.Events)
	out.Views, err = l.latestViews(ctx, c)

	return out, err == nil, err
}

func (l *listings) latestEvents(ctx context.Context, c *call) (out []rap.Event, err error) {
	latest := c.Part.Events[max(0, len(c.Part.Events)-maxShownEvents):]
	for _, one := range latest {
		e, err := l.events.Get(ctx, eventKey(names.ThreadOf(c.Key), one.Index))
		if errors.Is(err, approval.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		shown := e.Body.Event
		shown.Text = cut(firstBytes(shown.Text, maxShownText), maxShownText, len(shown.Text))
		out = append(out, shown)
	}

	return out, nil
}

// latestViews reads one view at a time, because they may be large.
func (l *listings) latestViews(ctx context.Context, c *call) (out []rap.ShownView, err error) {
	latest := slices.Clone(c.Part.Views[max(0, len(c.Part.Views)-maxShownViews):])
	slices.Reverse(latest)
	for _, one := range latest {
		v, err := l.views.Get(ctx, names.ThreadOf(c.Key)+"/"+one.Key)
		if errors.Is(err, approval.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		text := string(v.Body.Content)
		out = append(out, rap.ShownView{
			Type: cut(firstBytes(v.Body.Type, maxLabel), maxLabel, len(v.Body.Type)),
			Text: cut(firstBytes(text, maxShownText), maxShownText, len(text)),
		})
	}

	return out, nil
}

// shownResult returns the outcome of a call as text for its user.
func shownResult(o *rap.Outcome) string {
	if o == nil {
		return ""
	}
	texts := []string{o.Text}
	if len(o.Content) > 0 {
		texts = nil
	}
	for _, c := range o.Content[:min(len(o.Content), maxShownEvents)] {
		if c.MediaType != "" {
			texts = append(texts, fmt.Sprintf("[an image, %d bytes of base64, which is not shown]", len(c.Image)))
			continue
		}
		texts = append(texts, firstBytes(c.Text, maxShownText))
	}

	if left := len(o.Content) - maxShownEvents; left > 0 {
		texts = append(texts, fmt.Sprintf("[%d more]", left))
	}
	all := strings.Join(texts, "\n")

	return cut(firstBytes(all, maxShownText), maxShownText, len(all))
}

// Watch calls changed after this process changed any call, until ctx ends. A change while
// changed runs leads to another call.
func (r *Runtime) Watch(ctx context.Context, changed func()) {
	news, leave := r.engine.Changes()
	for {
		select {
		case <-ctx.Done():
			leave()
			return
		case <-news:
		}

		news, leave = r.engine.Changes() // before changed, so that no change meanwhile is missed
		changed()
	}
}
