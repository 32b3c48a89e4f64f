package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/internal/names"
)

// Place is a position in the history of a call. The zero value is its beginning.
type Place struct {
	Events int // events seen or dropped
	Views  int // changes of views seen
}

// String formats a place for ParsePlace.
func (p Place) String() string { return strconv.Itoa(p.Events) + "." + strconv.Itoa(p.Views) }

// placeText matches a place. openapi.yaml has the same pattern.
var placeText = pattern.Of(`^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})$`)

// ErrPlace is returned for a text that is not a place.
var ErrPlace = errors.New("expected the id of an event of this stream, such as 3.1")

// ParsePlace parses a place. It returns ErrPlace if the text is not valid.
func ParsePlace(text string) (Place, error) {
	if !placeText().MatchString(text) {
		return Place{}, ErrPlace
	}
	events, views, _ := strings.Cut(text, ".")
	var p Place
	p.Events, _ = strconv.Atoi(events) // the pattern allows only digits
	p.Views, _ = strconv.Atoi(views)

	return p, nil
}

// View is state that a tool shows to the user, as it sent it. It is not meant for models, and
// must not be interpreted.
type View struct {
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"`
}

// News is one change of a call. One of Call, Lost, Event and View is set.
type News struct {
	At    Place      // the place after this change
	Call  *Call      // the current state of the call
	Lost  int        // number of events dropped before they were read
	Event *rap.Event // an event after the result
	View  *View      // the latest view of its type
}

// Pending is the next change of a call, whose content was not read yet.
type Pending struct {
	Bytes int // size of its content
	news  func(context.Context) (News, error)
}

// Read reads the change. ok is false if it was deleted meanwhile; call Next again then.
func (p *Pending) Read(ctx context.Context) (n News, ok bool, err error) {
	n, err = p.news(ctx)
	if errors.Is(err, approval.ErrNotFound) {
		return n, false, nil
	}

	return n, err == nil, err
}

// Follower returns the changes of one call, at the pace of its caller. It buffers nothing:
// events that are not read in time are dropped as described at Events. It must not be used by
// several goroutines.
type Follower struct {
	r    *Runtime
	key  string
	at   Place
	told callStatus
	seen *call // the record as last read; nil: read it again
}

// callStatus has the fields of a call that a Follower compares between two reads.
type callStatus struct {
	state                              CallState
	question, signIn, host, outOfOrder string
}

func callStatusOf(c *call) callStatus {
	one := publicCall(c)

	return callStatus{
		state:      one.State,
		question:   one.Question,
		signIn:     one.SignIn,
		host:       one.SignInHost,
		outOfOrder: one.Trouble,
	}
}

// Follow returns a Follower that starts at a place: it first returns the state of the call,
// then changes after that place, then new ones. It returns ErrNoCall if there is no such call.
func (t *Threads) Follow(ctx context.Context, thread, id string, from Place) (*Follower, error) {
	c, err := t.kept(ctx, thread, id)
	if err != nil {
		return nil, err
	}

	from.Events = min(from.Events, c.Part.Gone+len(c.Part.Events)) // it may be of an earlier call with the same id
	from.Views = min(from.Views, c.Part.Viewed)

	return &Follower{r: t.r, key: c.Key, at: from, seen: c}, nil
}

// Next waits for the next change. It returns io.EOF after the last one, ErrNoCall if the call
// was deleted meanwhile, or the error of ctx, after which Next may be called again.
func (f *Follower) Next(ctx context.Context) (*Pending, error) {
	for {
		if f.seen == nil {
			if err := f.look(ctx); err != nil {
				return nil, err
			}
		}
		if p := f.pending(f.seen); p != nil {
			return p, nil
		}
		if ended(f.seen) {
			return nil, io.EOF
		}
		f.seen = nil
	}
}

// look waits until the call has a change, and reads it.
func (f *Follower) look(ctx context.Context) error {
	c, err := f.r.engine.Watch(ctx, f.key, func(c *call) bool { return ended(c) || f.pending(c) != nil })
	switch {
	case errors.Is(err, approval.ErrNotFound), err == nil && f.r.expired(c.Expires):
		return ErrNoCall
	case err != nil:
		return fmt.Errorf("follow the call: %w", err)
	}

	f.seen = c

	return nil
}

// ended reports whether no changes can follow those in the record.
func ended(c *call) bool { return c.Over() && !c.Part.Live }

// pending returns the next change in a record, or nil.
func (f *Follower) pending(c *call) *Pending {
	p := &c.Part
	at := f.at
	if now := callStatusOf(c); now != f.told {
		return f.newsAt(at, sizeOf(p.Told.Outcome), func(context.Context) (News, error) {
			f.told = now
			one := publicCall(c)
			return News{Call: &one}, nil
		})
	}

	if i := slices.IndexFunc(p.Views, func(v shownView) bool { return v.Change > at.Views }); i >= 0 {
		at.Views = p.Views[i].Change
		return f.newsAt(at, p.Views[i].Bytes, func(ctx context.Context) (News, error) {
			return f.readView(ctx, p.Views[i].Key)
		})
	}

	if at.Events < p.Gone {
		lost := p.Gone - at.Events
		at.Events = p.Gone
		return f.newsAt(at, 0, func(context.Context) (News, error) { return News{Lost: lost}, nil })
	}
	if i := at.Events - p.Gone; i < len(p.Events) {
		at.Events++
		return f.newsAt(at, p.Events[i].Bytes, func(ctx context.Context) (News, error) {
			return f.readEvent(ctx, p.Events[i].Index)
		})
	}

	return nil
}

// newsAt returns a change. Reading it moves the follower to a place.
func (f *Follower) newsAt(at Place, bytes int, read func(context.Context) (News, error)) *Pending {
	return &Pending{
		Bytes: bytes,
		news: func(ctx context.Context) (News, error) {
			n, err := read(ctx)
			if err == nil || errors.Is(err, approval.ErrNotFound) {
				f.at = at
			}
			n.At = f.at

			return n, err
		},
	}
}

// sizeOf returns the size of an outcome in bytes; o may be nil.
func sizeOf(o *rap.Outcome) int {
	if o == nil {
		return 0
	}
	bytes := len(o.Text) + len(o.DisplayAs)
	for _, c := range o.Content {
		bytes += len(c.Text) + len(c.Image)
	}

	return bytes
}

func (f *Follower) readView(ctx context.Context, key string) (News, error) {
	d, err := f.r.views.Get(ctx, names.ThreadOf(f.key)+"/"+key)
	if err != nil {
		return News{}, fmt.Errorf("read a view: %w", err)
	}

	return News{View: &View{Type: d.Body.Type, Content: d.Body.Content}}, nil
}

func (f *Follower) readEvent(ctx context.Context, index int) (News, error) {
	d, err := f.r.events.Get(ctx, eventKey(names.ThreadOf(f.key), index))
	if err != nil {
		return News{}, fmt.Errorf("read an event: %w", err)
	}

	return News{Event: &d.Body.Event}, nil
}
