package editor

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/sourcegraph/jsonrpc2"
)

// These are the limits of one message, in bytes.
const (
	mostMessage = 32 << 20
	mostHeader  = 4 << 10 // of one line
)

// stream reads and writes messages with the headers of the protocol. It answers malformed input
// with an error without an id, and continues to read.
type stream struct {
	in   *bufio.Reader
	lost bool // the last line was no header, and the error was sent
	mu   sync.Mutex
	out  io.Writer
}

func newStream(in io.Reader, out io.Writer) *stream {
	return &stream{in: bufio.NewReaderSize(in, mostHeader), out: out}
}

// ReadObject reads the next message. It only returns errors of the input.
func (s *stream) ReadObject(into any) error {
	for {
		body, wrong, err := s.next()
		if err != nil {
			return err
		}
		code := int64(jsonrpc2.CodeParseError)
		if wrong == nil && !json.Valid(body) {
			wrong = errors.New("the message is no JSON")
		}
		if wrong == nil {
			code = jsonrpc2.CodeInvalidRequest
			if wrong = json.Unmarshal(body, into); wrong == nil {
				return nil
			}
		}

		if err := s.complain(code, wrong); err != nil {
			return err
		}
	}
}

// next reads one message; wrong describes what is wrong with its headers.
func (s *stream) next() (body []byte, wrong, err error) {
	length, wrong, err := s.headers()
	if wrong != nil || err != nil {
		return nil, wrong, err
	}
	var b bytes.Buffer
	_, err = io.CopyN(&b, s.in, length) // grows with what comes, not with what is announced
	return b.Bytes(), nil, err
}

// headers reads up to the blank line before a message.
func (s *stream) headers() (length int64, wrong, err error) {
	for {
		line, err := s.line()
		switch {
		case err != nil:
			return 0, nil, err
		case line == "" && s.lost:
			s.lost = false
			continue
		case line == "" && length == 0:
			return 0, errors.New("the message has no Content-Length"), nil
		case line == "":
			return length, nil, nil
		}

		length, wrong = header(line, length)
		if s.lost = wrong != nil; s.lost {
			return 0, wrong, nil
		}
	}
}

// header reads one header; known is the length from an earlier header.
func header(line string, known int64) (length int64, wrong error) {
	at := strings.LastIndex(strings.ToLower(line), "content-length:")
	if at < 0 {
		if strings.Contains(line, ": ") {
			return known, nil // another header
		}
		return 0, errors.New("there is no header of a message")
	}

	text := strings.TrimSpace(line[at+len("content-length:"):])
	length, err := strconv.ParseInt(text, 10, 64)
	if err != nil || length <= 0 || length > mostMessage {
		return 0, fmt.Errorf("Content-Length must be from 1 to %d", mostMessage)
	}
	return length, nil
}

// line reads a line without its end. If the line is too long, it returns the last part, because a
// header may follow malformed input on the same line.
func (s *stream) line() (string, error) {
	var last []byte
	for {
		part, err := s.in.ReadSlice('\n')
		last = append(last[max(0, len(last)-mostHeader):], part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return strings.TrimRight(string(last), "\r\n"), err
		}
	}
}

// complain sends an error for malformed input.
func (s *stream) complain(code int64, wrong error) error {
	return s.WriteObject(map[string]any{
		"jsonrpc": "2.0",
		"id":      nil,
		"error":   jsonrpc2.Error{Code: code, Message: wrong.Error()},
	})
}

// WriteObject writes one message.
func (s *stream) WriteObject(object any) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	return jsonrpc2.VSCodeObjectCodec{}.WriteObject(s.out, object)
}

// Close does nothing, because the streams belong to the caller of Serve.
func (*stream) Close() error { return nil }
