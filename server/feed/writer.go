package feed

import (
	"fmt"
	"net/http"
	"time"
)

// Writer sends server-sent events to one reader, of the API or of a page. The first error
// ends it: a reader that doesn't read is disconnected.
type Writer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	slow    time.Duration
	worst   time.Duration // the longest time that the reader took for one piece
	err     error
}

// NewWriter begins a stream. slow is the time limit for the reader to take a piece.
func NewWriter(w http.ResponseWriter, slow time.Duration) *Writer {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // otherwise nginx would buffer events
	w.WriteHeader(http.StatusOK)

	return &Writer{w: w, control: http.NewResponseController(w), slow: slow}
}

// Write adds events that are already encoded.
func (e *Writer) Write(text []byte) {
	e.timed(func() error {
		_, err := e.w.Write(text)
		return err
	})
}

// Event adds one event. None of its parts may contain a line break.
func (e *Writer) Event(id, kind string, data []byte) {
	e.Write(fmt.Appendf(nil, "id: %s\nevent: %s\ndata: %s\n\n", id, kind, data))
}

// Flush sends the added events.
func (e *Writer) Flush() { e.timed(e.control.Flush) }

// Heartbeat sends a comment, so that the reader knows that the stream is alive.
func (e *Writer) Heartbeat() {
	e.Write([]byte(": still here\n\n"))
	e.Flush()
}

func (e *Writer) timed(do func() error) {
	if e.err != nil {
		return
	}
	began := time.Now()
	_ = e.control.SetWriteDeadline(began.Add(e.slow)) // test recorders have no deadlines
	e.err = do()
	e.worst = max(e.worst, time.Since(began))
}

// Err returns the error that ended the stream.
func (e *Writer) Err() error { return e.err }

// Slow reports whether the reader took so long for one piece that it is about to be
// disconnected.
func (e *Writer) Slow() bool { return e.worst > e.slow/2 }
