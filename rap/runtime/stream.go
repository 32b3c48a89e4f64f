package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/durable"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/internal/names"
	"github.com/assent-dev/assent/rap/wire"
)

const (
	maxEvents      = 500     // stored events of one call
	maxEventBytes  = 8 << 20 // total size of their texts
	maxViews       = 64      // types of one thread
	maxEventsAsked = 1000    // events in one list
)

// thread is the stored state of a thread, apart from its calls.
type thread struct {
	Next   int  `json:"next,omitempty"` // index of the next event
	Closed bool `json:"closed,omitempty"`
}

// keptNews is a stored event, in a record of its own.
type keptNews struct{ rap.Event }

// keptEvent is an entry of a call for one of its events.
type keptEvent struct {
	Index int `json:"index"`
	Bytes int `json:"bytes"`
}

// shownView is an entry of a call for a type of views that was sent for it.
type shownView struct {
	Key    string `json:"key"`    // of the type
	Change int    `json:"change"` // number of the call's views when it was last sent
	Bytes  int    `json:"bytes"`
}

// keptView is the latest view of a type. Content is opaque.
type keptView struct {
	Type    string `json:"type"`
	Content []byte `json:"content"`
}

// eventKey returns the key of an event, below that of its thread.
func eventKey(thread string, index int) string { return fmt.Sprintf("%s/%016d", thread, index) }

// takeEvent stores an event of a subscription. An event of a call without a live subscription
// is refused.
func (h *callbackHandler) takeEvent(ctx context.Context, c *call, m *wire.Event) error {
	if !c.Over() || !c.Part.Live {
		return &refusal{http.StatusConflict, "an event of no subscription"}
	}
	t, err := h.changeThread(ctx, names.ThreadOf(c.Key), func(t *thread) { t.Next++ })
	if err != nil {
		return err
	}
	index := t.Next - 1
	d := &durable.Doc[keptNews]{Key: eventKey(names.ThreadOf(c.Key), index), Expires: h.now().Add(keepLive)}
	d.Body.Event = rap.Event{
		Index:       index,
		ID:          c.Part.ID,
		Text:        m.Text,
		Associative: m.Associative,
		Final:       m.Final,
	}
	if err := h.events.Put(ctx, d); err != nil {
		return err
	}

	var old []keptEvent
	now, err := h.engine.Change(ctx, c.Key, func(c *call) error {
		if !c.Part.Live { // the thread was closed meanwhile
			return durable.ErrUnchanged
		}
		c.Part.Events = append(c.Part.Events, keptEvent{index, len(m.Text)})
		old = c.Part.oldEvents()
		if m.Final {
			c.Part.Live = false
			c.EndedAt = h.now()
		}
		return nil
	})
	if errors.Is(err, durable.ErrUnchanged) {
		return h.events.Remove(ctx, d)
	}
	h.dropEvents(ctx, names.ThreadOf(c.Key), old)
	h.newEvents.tell(c.Key)
	if err == nil && m.Final {
		h.listings.updateListing(ctx, now)
	}
	return err
}

// mostEventsOf limits the events of a call that are read at once, because they may be large.
const mostEventsOf = 20

// eventsOf returns the next events of a call from an index on, and whether more may come.
func (r *Runtime) eventsOf(ctx context.Context, key string, from int) (events []rap.Event, live bool, err error) {
	c, err := r.engine.Get(ctx, key)
	if errors.Is(err, approval.ErrNotFound) || err == nil && r.expired(c.Expires) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}

	for _, one := range c.Part.Events {
		if one.Index < from || len(events) == mostEventsOf {
			continue
		}
		e, err := r.events.Get(ctx, eventKey(names.ThreadOf(key), one.Index))
		switch {
		case errors.Is(err, approval.ErrNotFound): // dropped
		case err != nil:
			return nil, false, err
		default:
			events = append(events, e.Body.Event)
		}
	}

	return events, c.Part.Live || len(events) == mostEventsOf, nil
}

// oldEvents removes and returns events that exceed the limits.
func (p *part) oldEvents() []keptEvent {
	bytes, keep := 0, 0
	for i, e := range slices.Backward(p.Events) {
		bytes += e.Bytes
		if keep = len(p.Events) - i; keep > maxEvents || bytes > maxEventBytes && keep > 1 {
			old := slices.Clone(p.Events[:i+1])
			p.Events = slices.Delete(p.Events, 0, i+1)
			p.Gone += i + 1
			return old
		}
	}

	return nil
}

func (h *callbackHandler) dropEvents(ctx context.Context, thread string, old []keptEvent) {
	for _, e := range old {
		d, err := h.events.Get(ctx, eventKey(thread, e.Index))
		if err == nil {
			err = h.events.Remove(ctx, d)
		}
		if err != nil && !errors.Is(err, approval.ErrNotFound) {
			h.log.Warn("an old event stays", "error", plainError(err))
		}
	}
}

// Events lists the events of a thread's subscriptions from an index on, in order: at most 1000
// at once. At most 500 events and 8 MiB of text are kept per call.
func (t *Threads) Events(ctx context.Context, thread string, from int) ([]rap.Event, error) {
	r, place := t.r, t.r.names.Thread(t.who, thread)
	after := place + "/"
	if from > 0 {
		after = eventKey(place, from-1)
	}
	ds, err := r.events.List(ctx, place+"/", after, maxEventsAsked)
	if err != nil {
		return nil, err
	}
	out := make([]rap.Event, 0, len(ds))
	for _, d := range ds {
		if !r.expired(d.Expires) {
			out = append(out, d.Body.Event)
		}
	}
	return out, nil
}

// takeView stores the latest view of a type.
func (h *callbackHandler) takeView(ctx context.Context, c *call, m *wire.View) error {
	kind := durable.Hash(m.ViewType)
	key := names.ThreadOf(c.Key) + "/" + kind
	if !c.Over() && c.State != durable.Away {
		if _, err := h.engine.Change(ctx, c.Key, func(c *call) error {
			noteReceived(c)
			return nil
		}); err != nil {
			return err
		}
	}

	_, err := h.views.Edit(ctx, key, func(d *durable.Doc[keptView]) error {
		d.Body, d.Expires = keptView{m.ViewType, m.Content}, h.now().Add(keepLive)
		if d.Version == 0 {
			return h.admitView(ctx, c)
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = h.engine.Change(ctx, c.Key, func(c *call) error {
		c.Part.shows(kind, len(m.ViewType)+len(m.Content))
		return nil
	})

	return err
}

// shows adds a view to the call's entries, as the latest.
func (p *part) shows(kind string, bytes int) {
	p.Viewed++
	p.Views = slices.DeleteFunc(p.Views, func(v shownView) bool { return v.Key == kind })
	p.Views = append(p.Views, shownView{Key: kind, Change: p.Viewed, Bytes: bytes})
}

func (h *callbackHandler) admitView(ctx context.Context, c *call) error {
	ds, err := h.views.List(ctx, names.ThreadOf(c.Key)+"/", "", maxViews)
	if err == nil && len(ds) >= maxViews {
		err = &refusal{http.StatusConflict, fmt.Sprintf("a thread has at most %d types of views", maxViews)}
	}
	return err
}

// Views returns the latest view of each type, as the tools sent them. They are not meant for
// models, and must not be interpreted.
func (t *Threads) Views(ctx context.Context, thread string) (map[string]json.RawMessage, error) {
	r := t.r
	ds, err := r.views.List(ctx, r.names.Thread(t.who, thread)+"/", "", maxViews+1)
	if err != nil {
		return nil, err
	}
	out := make(map[string]json.RawMessage, len(ds))
	for _, d := range ds {
		if !r.expired(d.Expires) {
			out[d.Body.Type] = d.Body.Content
		}
	}
	return out, nil
}
