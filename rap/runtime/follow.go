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

// Place is how much of a call somebody has seen. The zero value is its
// beginning.
type Place struct {
	Events int // of the call, that were seen or given up
	Views  int // changes of views
}

// String writes a place so that ParsePlace reads it.
func (p Place) String() string { return strconv.Itoa(p.Events) + "." + strconv.Itoa(p.Views) }

// placeText is a place. openapi.yaml has the same pattern.
var placeText = pattern.Of(`^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})$`)

// ErrPlace says that a text is no place.
var ErrPlace = errors.New("expected the id of an event of this stream, such as 3.1")

// ParsePlace reads a place; ErrPlace.
func ParsePlace(text string) (Place, error) {
	if !placeText().MatchString(text) {
		return Place{}, ErrPlace
	}
	events, views, _ := strings.Cut(text, ".")
	var p Place
	p.Events, _ = strconv.Atoi(events) // it is digits
	p.Views, _ = strconv.Atoi(views)

	return p, nil
}

// View is what a tool shows of its state, as it sent it: not for
// models, and not to be interpreted.
type View struct {
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"`
}

// News is one thing that happened to a call: one of Call, Lost, Event
// and View.
type News struct {
	At    Place      // having seen it
	Call  *Call      // how the call stands now
	Lost  int        // events that were given up before they were seen
	Event *rap.Event // that came after the result
	View  *View      // the latest of its type
}

// Pending is what comes next, before anything of it is read.
type Pending struct {
	Bytes int // that it has
	news  func(context.Context) (News, error)
}

// Read returns what has come. ok is false when it is gone again: look
// at what comes next then.
func (p *Pending) Read(ctx context.Context) (n News, ok bool, err error) {
	n, err = p.news(ctx)
	if errors.Is(err, approval.ErrNotFound) {
		return n, false, nil
	}

	return n, err == nil, err
}

// Follower tells what happens to one call, at the pace of whoever asks
// it: it holds nothing back for them, and what they don't take in time
// is given up as Events says. It is for one goroutine.
type Follower struct {
	r    *Runtime
	key  string
	at   Place
	told standing
	seen *call // as it was read last; nil: it has to be read again
}

// standing is what a Follower compares of two looks at a call.
type standing struct {
	state                              CallState
	question, signIn, host, outOfOrder string
}

func standingOf(c *call) standing {
	one := shown(c)

	return standing{
		state:      one.State,
		question:   one.Question,
		signIn:     one.SignIn,
		host:       one.SignInHost,
		outOfOrder: one.Trouble,
	}
}

// Follow begins to tell about a call, from a place on: first how it
// stands, then what was not seen yet, then what comes. ErrNoCall.
func (t *Threads) Follow(ctx context.Context, thread, id string, from Place) (*Follower, error) {
	c, err := t.kept(ctx, thread, id)
	if err != nil {
		return nil, err
	}

	from.Events = min(from.Events, c.Part.Gone+len(c.Part.Events)) // of a call that was forgotten, maybe
	from.Views = min(from.Views, c.Part.Viewed)

	return &Follower{r: t.r, key: c.Key, at: from, seen: c}, nil
}

// Next waits for what comes next. The error is io.EOF after the last
// of it, ErrNoCall when the call was forgotten meanwhile, or that of
// ctx: then Next may be called again.
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

// look reads the call once something of it is new.
func (f *Follower) look(ctx context.Context) error {
	c, err := f.r.engine.Watch(ctx, f.key, func(c *call) bool { return ended(c) || f.pending(c) != nil })
	switch {
	case errors.Is(err, approval.ErrNotFound), err == nil && f.r.gone(c.Expires):
		return ErrNoCall
	case err != nil:
		return fmt.Errorf("follow the call: %w", err)
	}

	f.seen = c

	return nil
}

// ended reports whether nothing comes after what the record says.
func ended(c *call) bool { return c.Over() && !c.Part.Live }

// pending is what comes next of what a record says; nil: nothing.
func (f *Follower) pending(c *call) *Pending {
	p := &c.Part
	at := f.at
	if now := standingOf(c); now != f.told {
		return f.is(at, sizeOf(p.Told.Outcome), func(context.Context) (News, error) {
			f.told = now
			one := shown(c)
			return News{Call: &one}, nil
		})
	}

	if i := slices.IndexFunc(p.Views, func(v shownView) bool { return v.Change > at.Views }); i >= 0 {
		at.Views = p.Views[i].Change
		return f.is(at, p.Views[i].Bytes, func(ctx context.Context) (News, error) {
			return f.readView(ctx, p.Views[i].Key)
		})
	}

	if at.Events < p.Gone {
		lost := p.Gone - at.Events
		at.Events = p.Gone
		return f.is(at, 0, func(context.Context) (News, error) { return News{Lost: lost}, nil })
	}
	if i := at.Events - p.Gone; i < len(p.Events) {
		at.Events++
		return f.is(at, p.Events[i].Bytes, func(ctx context.Context) (News, error) {
			return f.readEvent(ctx, p.Events[i].Index)
		})
	}

	return nil
}

// is moves on to a place once something is read.
func (f *Follower) is(at Place, bytes int, read func(context.Context) (News, error)) *Pending {
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

// sizeOf is how many bytes an outcome has, which may be nil.
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
