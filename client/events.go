package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"strconv"
	"time"

	"github.com/assent-dev/assent/internal/sse"
	"github.com/assent-dev/assent/internal/wait"
)

// silence is the time without any data, even a heartbeat, after which a stream is considered
// dead.
const silence = 60 * time.Second

// Limits of one line of a stream, in bytes. The first is for a leaf with its name, the second
// for output of tools, in which a line break may take two bytes.
const (
	maxEventLine = 2 << 20
	maxNewsLine  = 32 << 20
)

// Event is one sealed entry of the ledger.
type Event struct {
	Index int64
	Type  string
	Leaf  json.RawMessage
}

// FromNow starts with the next event, FromStart with the first entry of the ledger.
const (
	FromNow   int64 = -2
	FromStart int64 = -1
)

// Events streams the entries after an index (FromNow, FromStart, or the last one seen), in
// order and without gaps: if the connection breaks, it is resumed. The stream ends when ctx
// ends, when the loop stops, or with an error that retrying can't fix.
func (c *Client) Events(ctx context.Context, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		err := c.again(ctx, func() (bool, error) {
			before := after
			err := c.stream(ctx, &after, yield)
			return after != before, err
		})
		if !errors.Is(err, errStopped) {
			yield(Event{}, err)
		}
	}
}

// again reconnects a stream until read returns an error that retrying can't fix. moved means
// that something was received.
func (c *Client) again(ctx context.Context, read func() (moved bool, err error)) error {
	for failures := 0; ; {
		moved, err := read()
		switch {
		case errors.Is(err, errStopped):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errUnreadable) || !whenRefused.allows(err, 1):
			return err
		}

		if failures++; moved {
			failures = 1
		}
		if wait.Pause(ctx, c.backoff(failures, err)) != nil {
			return ctx.Err()
		}
	}
}

var (
	errStopped    = errors.New("the loop stopped")
	errUnreadable = errors.New("the stream can't be read")
)

// stream reads one connection to its end, and updates after.
func (c *Client) stream(ctx context.Context, after *int64, yield func(Event, error) bool) error {
	in := get(nil, "v1", "events")
	if *after != FromNow {
		in.query = url.Values{"after": {strconv.FormatInt(*after, 10)}}
	}
	return c.listen(ctx, in, func(r io.Reader, alive func()) error {
		for e, err := range readEvents(r, alive) {
			if err != nil {
				return err
			}
			*after = e.Index
			if e.Leaf != nil && !yield(e, nil) {
				return errStopped
			}
		}

		return io.ErrUnexpectedEOF
	})
}

// listen opens a stream, and cancels it if alive is not called for too long.
func (c *Client) listen(ctx context.Context, in call, read func(r io.Reader, alive func()) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watchdog := time.AfterFunc(silence, cancel)
	defer watchdog.Stop()
	in.header = map[string]string{"Accept": "text/event-stream"}
	resp, err := c.send(ctx, in)
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	return read(resp.Body, func() { watchdog.Reset(silence) })
}

// readEvents reads entries. One without a leaf only has the current index.
func readEvents(r io.Reader, alive func()) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for s, err := range sse.Read(r, maxEventLine, alive) {
			e := Event{Index: FromNow, Type: s.Kind}
			if err == nil {
				err = e.read(&s)
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
			if e.Index != FromNow && !yield(e, nil) {
				return
			}
		}
	}
}

func (e *Event) read(s *sse.Event) error {
	if s.ID != "" {
		index, err := strconv.ParseInt(s.ID, 10, 64)
		if err != nil || index < FromStart {
			return fmt.Errorf("%w: %q is no index", errUnreadable, s.ID)
		}
		e.Index = index
	}

	if s.Data == nil {
		return nil
	}
	if !json.Valid(s.Data) || e.Index < 0 {
		return fmt.Errorf("%w: the data of entry %d", errUnreadable, e.Index)
	}
	e.Leaf = s.Data

	return nil
}
