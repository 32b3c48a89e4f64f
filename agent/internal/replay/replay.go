// Package replay plays recorded wire traffic to a client of an HTTP
// service, and checks the client's requests: they must arrive in order
// and must equal the recorded ones as JSON, including the text of
// numbers. Tests and examples use it in place of the service.
//
// A transcript is a JSON array of exchanges:
//
//	[{"request":  {"method": "POST", "path": "/v1/things?x=1", "headers": {…}, "body": {…}},
//	  "response": {"status": 200, "headers": {"x-request-id": "r1"}, "body": {…}}}]
//
// In place of a body a response may have "text", sent unchanged, or
// "sse", the events of a stream: {"event": "name", "data": {…}} or
// strings that are sent unchanged, such as ": comment". With "cut" the
// connection breaks in the middle of the body, or after the last event.
package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/assent-dev/assent/value"
)

// Transcript is recorded traffic in the order in which it must be repeated.
type Transcript []Exchange

// Exchange is one request and the answer to it.
type Exchange struct {
	Request  Request  `json:"request"`
	Response Response `json:"response"`
}

// Request is an expected request.
type Request struct {
	Method string `json:"method"` // "" means POST
	Path   string `json:"path"`   // with the query
	// Headers must have exactly these values. A header with an empty value must be absent. Other
	// headers are ignored.
	Headers map[string]string `json:"headers,omitempty"`
	Body    json.RawMessage   `json:"body,omitempty"` // nil: there must be none
}

// Response is the answer to a request. At most one of Body, Text and SSE is set.
type Response struct {
	Status  int               `json:"status,omitempty"` // 0 means 200
	Headers map[string]string `json:"headers,omitempty"`
	Body    json.RawMessage   `json:"body,omitempty"`
	Text    string            `json:"text,omitempty"`
	SSE     []json.RawMessage `json:"sse,omitempty"`
	Cut     bool              `json:"cut,omitempty"`
}

// Load reads the transcript of a file.
func Load(file string) (Transcript, error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the transcript: %w", err)
	}
	t, err := Parse(src)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

// Parse parses a transcript. Unknown members are errors, so that a misspelt expectation can't be
// ignored.
func Parse(src []byte) (Transcript, error) {
	if _, err := value.Parse(src, value.Limits{}); err != nil {
		return nil, fmt.Errorf("the transcript: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.DisallowUnknownFields()
	var t Transcript
	if err := dec.Decode(&t); err != nil {
		return nil, fmt.Errorf("the transcript: %w", err)
	}
	return t, t.check()
}

func (t Transcript) check() error {
	for i, x := range t {
		if err := x.check(); err != nil {
			return fmt.Errorf("exchange %d: %w", i+1, err)
		}
	}
	return nil
}

func (x Exchange) check() error {
	if x.Request.Path == "" {
		return errors.New("the request has no path")
	}
	answers := 0
	for _, has := range []bool{x.Response.Body != nil, x.Response.Text != "", x.Response.SSE != nil} {
		if has {
			answers++
		}
	}
	if answers > 1 {
		return errors.New("the response has more than one of body, text and sse")
	}
	_, err := x.Response.payload()
	return err
}

// payload returns the text of the answer.
func (r Response) payload() ([]byte, error) {
	switch {
	case r.SSE != nil:
		var out []byte
		for i, e := range r.SSE {
			text, err := event(e)
			if err != nil {
				return nil, fmt.Errorf("event %d: %w", i+1, err)
			}
			out = append(out, text...)
		}

		return out, nil
	case r.Body != nil:
		return r.Body, nil
	}

	return []byte(r.Text), nil
}

// event returns one event in wire format, with the empty line that ends it.
func event(raw json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text + "\n\n", nil
	}
	var e struct {
		Event string          `json:"event"`
		Data  json.RawMessage `json:"data"`
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		return "", err
	}
	var data bytes.Buffer
	if err := json.Compact(&data, e.Data); err != nil {
		return "", fmt.Errorf("the data: %w", err)
	}
	if e.Event == "" {
		return "data: " + data.String() + "\n\n", nil
	}
	return "event: " + e.Event + "\ndata: " + data.String() + "\n\n", nil
}

// write writes the transcript in its file format.
func (t Transcript) write(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(t)
}
