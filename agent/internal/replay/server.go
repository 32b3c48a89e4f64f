package replay

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Refused is the status of the answer to an unexpected request. Clients don't retry after this
// status.
const Refused = http.StatusTeapot

// Server plays one transcript on a local port.
type Server struct {
	url  string
	http *http.Server

	mu       sync.Mutex
	left     Transcript // what is still to come
	seen     Transcript // what came, in place of what should have
	total    int
	failures []error
}

// Serve starts to play a transcript. The caller has to call Close.
func Serve(t Transcript) (*Server, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	s := &Server{url: "http://" + listener.Addr().String(), left: t, total: len(t)}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.http.Serve(listener) }()
	return s, nil
}

// New plays testdata/file until the test ends. The test fails if requests differ, are missing or
// are too many. With the flag -update (package golden) the actual requests are written to the file
// instead, and the answers are kept.
func New(t testing.TB, file string) *Server {
	t.Helper()
	path := filepath.Join("testdata", filepath.FromSlash(file))
	transcript, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Serve(transcript)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && updating() {
			rewrite(t, path, s.seen)
		} else if err != nil {
			t.Errorf("%s: %v", path, err)
		}
	})
	return s
}

// updating reports whether the test runs with -update. The flag is looked up by name because it
// belongs to another package.
func updating() bool {
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}

func rewrite(t testing.TB, path string, seen Transcript) {
	var out bytes.Buffer
	if err := seen.write(&out); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// URL returns the address of the server, without a slash at the end.
func (s *Server) URL() string { return s.url }

// Close stops the server. It returns an error with every difference between the actual and the
// recorded requests, or nil if there is none.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.left {
		s.fail(fmt.Errorf("missing: %s %s", x.Request.method(), x.Request.Path))
	}
	s.seen = append(s.seen, s.left...)
	s.left = nil
	return errors.Join(s.failures...)
}

// fail records a difference. The caller holds s.mu.
func (s *Server) fail(err error) { s.failures = append(s.failures, err) }

// ServeHTTP answers the next request of the transcript.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "replay: "+err.Error(), Refused)
		return
	}
	answer, err := s.next(r, body)
	if err != nil {
		http.Error(w, "replay: "+err.Error(), Refused)
		return
	}
	answer.send(w)
}

// next takes the next exchange and compares its request.
func (s *Server) next(r *http.Request, body []byte) (Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	number := s.total - len(s.left) + 1
	if len(s.left) == 0 {
		err := fmt.Errorf("surplus: %s %s\n  body %s", r.Method, r.URL.RequestURI(), body)
		s.fail(err)
		return Response{}, err
	}
	x := s.left[0]
	s.left = s.left[1:]
	s.seen = append(s.seen, Exchange{x.Request.as(r, body), x.Response})
	if err := x.Request.compare(r, body); err != nil {
		err = fmt.Errorf("request %d differs:\n%w", number, err)
		s.fail(err)
		if !updating() {
			return Response{}, err
		}
	}

	return x.Response, nil
}

// as returns the actual request in the shape of the expected one.
func (q Request) as(r *http.Request, body []byte) Request {
	out := Request{
		Method:  r.Method,
		Path:    r.URL.RequestURI(),
		Headers: map[string]string{},
	}
	for name := range q.Headers {
		out.Headers[name] = r.Header.Get(name)
	}
	if len(body) > 0 {
		out.Body = body
	}
	return out
}

func (q Request) method() string {
	if q.Method == "" {
		return http.MethodPost
	}
	return q.Method
}

// send writes the answer. A cut answer ends in a broken connection, so that the client can
// distinguish it from a regular end.
func (r Response) send(w http.ResponseWriter) {
	payload, err := r.payload()
	if err != nil {
		http.Error(w, "replay: "+err.Error(), Refused)
		return
	}
	r.sendHeaders(w, len(payload))
	if r.Cut && r.SSE == nil {
		payload = payload[:len(payload)/2]
	}
	_, _ = w.Write(payload)
	if r.Cut {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

func (r Response) sendHeaders(w http.ResponseWriter, length int) {
	switch {
	case r.SSE != nil:
		w.Header().Set("Content-Type", "text/event-stream")
	case r.Body != nil:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(length))
	case r.Text != "":
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", strconv.Itoa(length))
	}

	for name, v := range r.Headers {
		w.Header().Set(name, v)
	}
	if r.Status != 0 {
		w.WriteHeader(r.Status)
	}
}
