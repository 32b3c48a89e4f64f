package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"strconv"
	"time"

	"github.com/assent-dev/assent/internal/wait"
)

// silence is how long a stream may bring nothing, not even a heartbeat,
// before it is taken for dead.
const silence = 60 * time.Second

// maxEventLine bounds one line of the stream, in bytes: a leaf and its name.
const maxEventLine = 2 << 20

// Event is one sealed entry of the ledger.
type Event struct {
	Index int64
	Type  string
	Leaf  json.RawMessage
}

// FromNow begins with what happens next; FromStart with the first entry
// there is.
const (
	FromNow   int64 = -2
	FromStart int64 = -1
)

// Events streams what happens after an entry (FromNow, FromStart, or
// the index of the last one seen), in order and without holes: when the
// connection breaks it is made again where it ended. It ends when ctx
// ends, when the loop stops, or with an error that waiting doesn't
// mend.
func (c *Client) Events(ctx context.Context, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for failures := 0; ; {
			before := after
			err := c.stream(ctx, &after, yield)
			switch {
			case errors.Is(err, errStopped):
				return
			case ctx.Err() != nil:
				yield(Event{}, ctx.Err())
				return
			case errors.Is(err, errUnreadable) || !whenRefused.allows(err, 1):
				yield(Event{}, err)
				return
			}

			if failures++; after != before {
				failures = 1
			}
			if wait.Pause(ctx, c.backoff(failures, err)) != nil {
				yield(Event{}, ctx.Err())
				return
			}
		}
	}
}

var (
	errStopped    = errors.New("the loop stopped")
	errUnreadable = errors.New("the stream can't be read")
)

// stream reads one connection to its end, and moves after along.
func (c *Client) stream(ctx context.Context, after *int64, yield func(Event, error) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watchdog := time.AfterFunc(silence, cancel)
	defer watchdog.Stop()
	in := get(nil, "v1", "events")
	if *after != FromNow {
		in.query = url.Values{"after": {strconv.FormatInt(*after, 10)}}
	}
	in.header = map[string]string{"Accept": "text/event-stream"}
	resp, err := c.send(ctx, in)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for e, err := range readEvents(resp.Body, func() { watchdog.Reset(silence) }) {
		if err != nil {
			return err
		}
		*after = e.Index
		if e.Leaf != nil && !yield(e, nil) {
			return errStopped
		}
	}

	return io.ErrUnexpectedEOF
}

// readEvents parses server-sent events. One without a leaf only says
// where the stream stands. alive is called for every line.
func readEvents(r io.Reader, alive func()) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(make([]byte, 0, 64<<10), maxEventLine)
		lines.Split(wholeLines)
		e := nowhere()
		for lines.Scan() {
			alive()
			line := lines.Bytes()
			if len(line) > 0 {
				if err := e.field(line); err != nil {
					yield(Event{}, err)
					return
				}
				continue
			}

			if e.Index != FromNow && !yield(e, nil) {
				return
			}
			e = nowhere()
		}

		if err := lines.Err(); err != nil {
			yield(Event{}, err)
		}
	}
}

// wholeLines splits like bufio.ScanLines, but drops what a broken
// connection left of a line.
func wholeLines(data []byte, atEOF bool) (int, []byte, error) {
	if atEOF && bytes.IndexByte(data, '\n') < 0 {
		return len(data), nil, nil
	}
	return bufio.ScanLines(data, atEOF)
}

// nowhere is an event that has no line yet.
func nowhere() Event { return Event{Index: FromNow} }

// field takes one line of an event: name, colon, value. Comments and
// unknown fields are passed over.
func (e *Event) field(line []byte) error {
	name, text, _ := bytes.Cut(line, []byte(":"))
	text = bytes.TrimPrefix(text, []byte(" "))
	switch string(name) {
	case "id":
		index, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil || index < FromStart {
			return fmt.Errorf("%w: %q is no index", errUnreadable, text)
		}
		e.Index = index
	case "event":
		e.Type = string(text)
	case "data":
		if !json.Valid(text) || e.Index < 0 {
			return fmt.Errorf("%w: the data of entry %d", errUnreadable, e.Index)
		}
		e.Leaf = bytes.Clone(text)
	}

	return nil
}
