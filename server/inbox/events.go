package inbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/assent-dev/assent/ledger"
)

// Times of the event stream. It ends after a while so that whoever signed out or lost a group isn't told more: the browser comes
// back and is asked who it is.
const (
	heartbeat  = 15 * time.Second
	streamLife = 5 * time.Minute
	slowReader = 10 * time.Second
	eventBatch = 200
)

// events tells the page that something changed: types and subjects of new ledger entries, nothing of what they say.
func (v *visit) events() error {
	next, _, err := v.Store.Checkpoint(v.ctx(), v.Tenant)
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	if v.r.Method == http.MethodHead {
		return nil
	}
	out := &stream{visit: v, control: http.NewResponseController(v.w), next: next}
	if err := out.send(": hello\nretry: 2000\n\n"); err != nil {
		return nil
	}
	out.run()
	return nil
}

type stream struct {
	*visit
	control *http.ResponseController
	next    int64 // index of the next entry to tell
}

// run ends when the reader is gone or too slow, when the stream is old, or when the store can't be read: the browser comes back.
func (s *stream) run() {
	beat, end := time.NewTicker(heartbeat), time.NewTimer(streamLife)
	defer beat.Stop()
	defer end.Stop()
	for {
		changed := s.Store.Changed(s.Tenant)
		if err := s.tellNew(); err != nil {
			return
		}
		select {
		case <-changed:
		case <-beat.C:
			if s.send(": still here\n\n") != nil {
				return
			}
		case <-end.C:
			return
		case <-s.ctx().Done():
			return
		}
	}
}

func (s *stream) tellNew() error {
	for {
		list, err := s.Store.Leaves(s.ctx(), s.Tenant, s.next, eventBatch)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, e := range list {
			s.next = e.Index + 1
			leaf, err := ledger.ParseLeaf(e.Leaf)
			if err != nil {
				return err
			}
			data, err := json.Marshal(map[string]string{"type": leaf.Type, "subject": leaf.Subject})
			if err != nil {
				return err
			}
			if err := s.send(fmt.Sprintf("id: %d\ndata: %s\n\n", e.Index, data)); err != nil {
				return err
			}
		}
	}
}

func (s *stream) send(text string) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(slowReader)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}
