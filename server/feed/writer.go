package feed

import (
	"fmt"
	"net/http"
	"time"
)

// Writer sends server-sent events to one reader: of the API, and of
// pages. The first failure ends it: a reader that doesn't take what it
// is sent is cut off.
type Writer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	slow    time.Duration
	worst   time.Duration // that the reader took for one piece
	err     error
}

// NewWriter begins a stream; slow is how long its reader may take to
// take a piece.
func NewWriter(w http.ResponseWriter, slow time.Duration) *Writer {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would keep events to itself
	w.WriteHeader(http.StatusOK)

	return &Writer{w: w, control: http.NewResponseController(w), slow: slow}
}

// Write adds events as they are written already.
func (e *Writer) Write(text []byte) {
	e.timed(func() error {
		_, err := e.w.Write(text)
		return err
	})
}

// Event adds one event. None of its parts has a line break.
func (e *Writer) Event(id, kind string, data []byte) {
	e.Write(fmt.Appendf(nil, "id: %s\nevent: %s\ndata: %s\n\n", id, kind, data))
}

// Flush sends what was added.
func (e *Writer) Flush() { e.timed(e.control.Flush) }

// Heartbeat says that the stream goes on.
func (e *Writer) Heartbeat() {
	e.Write([]byte(": still here\n\n"))
	e.Flush()
}

func (e *Writer) timed(do func() error) {
	if e.err != nil {
		return
	}
	began := time.Now()
	_ = e.control.SetWriteDeadline(began.Add(e.slow)) // recorders of tests have none
	e.err = do()
	e.worst = max(e.worst, time.Since(began))
}

// Err is what ended the stream.
func (e *Writer) Err() error { return e.err }

// Slow reports whether the reader took one piece so slowly that it is
// about to be cut off.
func (e *Writer) Slow() bool { return e.worst > e.slow/2 }
