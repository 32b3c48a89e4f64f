// Package sse reads server-sent events.
package sse

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"iter"
)

// Event is one event. Missing fields are empty or nil.
type Event struct {
	ID, Kind string
	Data     []byte // lines joined by line feeds
}

// Read parses a stream of events. A line or an event's data longer than the given number of bytes
// ends the stream with an error. An incomplete event at the end of a broken connection is dropped.
// alive is called for every line, including comments.
func Read(r io.Reader, longest int, alive func()) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(make([]byte, 0, min(64<<10, longest)), longest)
		lines.Split(wholeLines)
		var e Event
		for lines.Scan() {
			alive()
			line := lines.Bytes()
			if len(line) > 0 {
				e.field(line)
				if len(e.Data) <= longest {
					continue
				}
				yield(Event{}, fmt.Errorf("an event is longer than %d bytes", longest))
				return
			}

			if !yield(e, nil) {
				return
			}
			e = Event{}
		}

		if err := lines.Err(); err != nil {
			yield(Event{}, err)
		}
	}
}

// wholeLines splits like bufio.ScanLines, but drops an incomplete line at the end of a broken
// connection.
func wholeLines(data []byte, atEOF bool) (int, []byte, error) {
	if atEOF && bytes.IndexByte(data, '\n') < 0 {
		return len(data), nil, nil
	}
	return bufio.ScanLines(data, atEOF)
}

// field parses one line of an event: name, colon, value. It ignores comments and unknown fields.
func (e *Event) field(line []byte) {
	name, text, _ := bytes.Cut(line, []byte(":"))
	text = bytes.TrimPrefix(text, []byte(" "))
	switch string(name) {
	case "id":
		e.ID = string(text)
	case "event":
		e.Kind = string(text)
	case "data":
		if e.Data != nil {
			e.Data = append(e.Data, '\n')
		}
		e.Data = append(e.Data, text...)
		if e.Data == nil {
			e.Data = []byte{}
		}
	}
}
