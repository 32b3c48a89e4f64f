package server

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/server/feed"
	"github.com/assent-dev/assent/server/openapi"
)

// streamOps are the operations that stream events.
type streamOps struct{ *exchange }

// fromNow means that the watcher wants only new events.
const fromNow = -2

func (x streamOps) watch() error {
	after, err := x.after()
	if err != nil {
		return err
	}
	place, err := x.place(x.cfg.Shares.Streams, "streams")
	if err != nil {
		return err
	}
	defer place.Return()
	s, leave, err := x.events.Join(x.r.Context(), x.tenant())
	if err != nil {
		return err
	}
	defer leave()
	x.metrics.watchers.Inc()
	defer x.metrics.watchers.Dec()
	if after == fromNow {
		after = s.End() - 1
	}
	out := &eventWriter{Writer: feed.NewWriter(x.w, x.cfg.Timing.Slow), next: after + 1}
	if x.r.Method == http.MethodHead {
		return nil
	}
	out.position()
	x.follow(s, out)
	return nil
}

// eventText is the form of an entry's index. openapi.yaml has the same pattern.
var eventText = pattern.Of(`^(-1|[0-9]{1,15})$`)

// after returns the index of the last entry that the watcher has seen.
func (x streamOps) after() (int64, error) {
	text := x.r.Header.Get("Last-Event-ID")
	if text == "" {
		return x.integer("after", -1, mostWhole, fromNow)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || !eventText().MatchString(text) {
		return 0, bad("Last-Event-ID", "expected the index of an entry")
	}
	return n, nil
}

// follow sends events until the watcher, its token or the server ends. A slow watcher
// delays only itself: events that it has not taken yet are read from the ledger.
func (x streamOps) follow(s *feed.Stream, out *eventWriter) {
	ctx := x.r.Context()
	beat := time.NewTicker(x.cfg.Timing.Heartbeat)
	defer beat.Stop()
	for far := false; out.Err() == nil; {
		frames, behind, news := s.From(out.next)
		if behind {
			if frames = x.catchUp(out.next, far); len(frames) == 0 {
				return // the watcher comes back, and says where it was
			}
			far = len(frames) == feed.Batch
		}

		if len(frames) > 0 {
			if x.send(out, frames) != nil {
				return // the watcher comes back, and says where it was
			}
			select {
			case <-beat.C:
				if x.stillMay(openapi.ScopeRead) != nil {
					return
				}
			default:
			}

			continue
		}

		out.Flush()
		select {
		case <-news:
		case <-beat.C:
			if x.stillMay(openapi.ScopeRead) != nil {
				return
			}
			out.Heartbeat()
		case <-x.draining:
			return
		case <-ctx.Done():
			return
		}
	}
}

// catchUp reads events from the ledger that the feed no longer has. Each watcher needs its
// own reads for that, so watchers that are far behind take turns.
func (x streamOps) catchUp(from int64, far bool) []feed.Frame {
	read := func() ([]ledger.SealedEntry, error) {
		return x.cfg.Store.Leaves(x.r.Context(), x.tenant(), from, feed.Batch)
	}
	var entries []ledger.SealedEntry
	var err error
	if far {
		entries, err = x.inTurn(read)
	} else {
		entries, err = read()
	}
	if err != nil {
		return nil
	}
	return feed.Frames(entries)
}

// eventWriter writes events to one watcher. next is the index of its next entry.
type eventWriter struct {
	*feed.Writer
	next int64
}

// position sends the start of the stream, so that a watcher that has received no event can
// reconnect at the same place.
func (e *eventWriter) position() { e.Write(fmt.Appendf(nil, "retry: 1000\nid: %d\n\n", e.next-1)) }

// send sends the frames that the token may read. Access is checked each time, because a
// stream may last long.
func (x streamOps) send(out *eventWriter, frames []feed.Frame) error {
	by, err := x.reader()
	if err != nil {
		return err
	}
	may, err := feed.Readable(x.r.Context(), x.cfg.Service, x.tenant(), by, frames)
	if err != nil {
		return err
	}
	for _, f := range may {
		out.Write(f.Event)
	}
	out.next = frames[len(frames)-1].Index + 1

	return nil
}
