package inbox

import (
	"net/http"
	"time"

	"github.com/assent-dev/assent/server/feed"
)

// Times of the event stream. It ends after streamLife, so that a person who signed out or left a
// group gets no more events: the browser reconnects and is authenticated again.
const (
	heartbeat  = 15 * time.Second
	streamLife = 5 * time.Minute
	slowReader = 10 * time.Second
)

// events notifies the page of changes. It sends the types and subjects of new ledger entries, but
// not their content.
func (v recordPages) events() error {
	place, err := v.Shares.Streams.Take(v.ctx(), v.who(), 1, 0)
	if err != nil {
		return err
	}
	defer place.Return()
	news, leave, err := v.Feed.Join(v.ctx(), v.Tenant)
	if err != nil {
		return err
	}
	defer leave()
	out := &stream{
		Writer: feed.NewWriter(v.w, slowReader),
		visit:  v.visit,
		news:   news,
		next:   news.End(),
		calls:  make(chan struct{}, 1),
	}
	if v.r.Method == http.MethodHead {
		return nil
	}
	out.Write([]byte(": hello\nretry: 2000\n\n"))
	out.Flush()
	if out.watching = v.Calls != nil && v.r.URL.Query().Has("calls"); out.watching {
		go out.watchCalls() // until the visit ends
	}
	out.run()
	return nil
}

type stream struct {
	*feed.Writer
	visit *visit
	news  *feed.Stream
	next  int64         // index of the next entry to send
	calls chan struct{} // contains one value if calls changed

	watching bool // the page shows calls
}

// run sends events until the reader has left, is too slow, or the stream is too old. The browser
// then reconnects.
func (s *stream) run() {
	beat, end := time.NewTicker(heartbeat), time.NewTimer(streamLife)
	defer beat.Stop()
	defer end.Stop()
	for s.Err() == nil {
		frames, behind, news := s.news.From(s.next)
		if behind { // the reader's page must be reloaded
			return
		}
		if s.tell(frames); len(frames) > 0 {
			continue
		}
		select {
		case <-news:
		case <-s.calls:
			s.changedCalls()
		case <-beat.C:
			if s.Heartbeat(); s.watching { // other processes change calls, too
				s.changedCalls()
			}
		case <-end.C:
			return
		case <-s.visit.ctx().Done():
			return
		}
	}
}

// changedCalls sends a notification that calls changed, without any details.
func (s *stream) changedCalls() {
	s.Write([]byte("data: {\"type\":\"calls\"}\n\n"))
	s.Flush()
}

// readable returns the frames that the visitor may read now. It returns none if that can't be
// determined.
func (s *stream) readable(frames []feed.Frame) []feed.Frame {
	v := s.visit
	by, err := v.Service.Reader(v.ctx(), v.Tenant, v.Person.ID)
	if err == nil {
		frames, err = feed.Readable(v.ctx(), v.Service, v.Tenant, by, frames)
	}
	if err != nil {
		v.Logger.Error("events can't be read for a page", "error", err)
		return nil
	}
	return frames
}

// tell sends frames at once.
func (s *stream) tell(frames []feed.Frame) {
	var text []byte
	if len(frames) > 0 {
		s.next = frames[len(frames)-1].Index + 1
	}
	for _, f := range s.readable(frames) {
		text = append(text, f.Notice...)
	}
	if len(text) == 0 {
		return
	}
	s.Write(text)
	s.Flush()
}
