package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/server/openapi"
)

// Package server tests the client against a real server. Here a script plays the server, for
// situations that a healthy server does not cause.

// script answers one exchange after the other, and records the requests.
type script struct {
	t       *testing.T
	answers []func() (*http.Response, error)
	seen    []string
	bodies  []string
	keys    []string
	at      []time.Duration
	began   time.Time
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	s.seen = append(s.seen, r.Method+" "+r.URL.RequestURI())
	s.bodies = append(s.bodies, string(body))
	s.keys = append(s.keys, r.Header.Get("Idempotency-Key"))
	s.at = append(s.at, time.Since(s.began))
	if len(s.seen) > len(s.answers) {
		return nil, errors.New("the script is over")
	}
	return s.answers[len(s.seen)-1]()
}

func answer(status int, media, body string, headers ...string) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		h := http.Header{"Content-Type": {media}}
		for i := 0; i < len(headers); i += 2 {
			h.Set(headers[i], headers[i+1])
		}
		return &http.Response{
			Status:     fmt.Sprint(status),
			StatusCode: status,
			Header:     h,
			Body:       io.NopCloser(strings.NewReader(body)),
		}, nil
	}
}

func problem(status int, code openapi.Code, after int) func() (*http.Response, error) {
	return answer(
		status,
		"application/problem+json",
		fmt.Sprintf(
			`{"code":%q,"status":%d,"title":"t","next_action":"retry","type":"x","retry_after":%d}`,
			code,
			status,
			after,
		),
	)
}

func lost() (*http.Response, error) { return nil, errors.New("connection reset") }

func ok(body string) func() (*http.Response, error) { return answer(200, "application/json", body) }

const someRequest = `{"id":"r","state":"consumed","revisions":[{"number":0,"call":{"kind":"tool","args":"{}"},` +
	`"decision":{"outcome":"ask"}}]}`

// scripted runs a test in a synctest bubble, with a client whose server is a script.
func scripted(t *testing.T, answers []func() (*http.Response, error), test func(t *testing.T, c *Client, s *script)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t, answers: answers, began: time.Now()}
		c := must.Get(New("http://assent.test/base/", "assent_secret", Options{HTTP: &http.Client{Transport: s}}))(t)
		test(t, c, s)
	})
}

func TestReadsAreTriedAgain(t *testing.T) {
	type answers = []func() (*http.Response, error)
	unavailable := problem(503, openapi.CodeUnavailable, 3)
	scripted(
		t,
		answers{lost, unavailable, answer(502, "text/html", "<html>"), ok(someRequest)},
		func(t *testing.T, c *Client, s *script) {
			if _, err := c.Request(t.Context(), "r/x"); err != nil || s.seen[3] != "GET /base/v1/requests/r%2Fx" {
				t.Errorf("got %v, %v", err, s.seen)
			}
			if s.at[1] > 200*time.Millisecond+1 || s.at[2]-s.at[1] != 3*time.Second ||
				s.at[3]-s.at[2] > 800*time.Millisecond+1 {
				t.Errorf("tried at %v", s.at)
			}
		},
	)
	for _, refused := range []func() (*http.Response, error){
		problem(404, openapi.CodeNotFound, 0),
		problem(500, openapi.CodeInternal, 0),
		problem(503, openapi.CodeAgentUnusable, 0),
		answer(302, "text/html", "", "Location", "http://evil.test"),
	} {
		scripted(t, answers{refused}, func(t *testing.T, c *Client, s *script) {
			if _, err := c.Request(t.Context(), "r"); err == nil || len(s.seen) != 1 {
				t.Errorf("got %v after %v", err, s.seen)
			}
		})
	}

	scripted(t, answers{lost, lost, lost, lost, lost, lost}, func(t *testing.T, c *Client, s *script) {
		if _, err := c.Request(t.Context(), "r"); err == nil || len(s.seen) != 5 ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v after %v", err, s.seen)
		}
	})
	scripted(
		t,
		answers{problem(503, openapi.CodeUnavailable, 3600), ok(someRequest)},
		func(t *testing.T, c *Client, s *script) {
			if _, err := c.Request(t.Context(), "r"); err != nil || s.at[1] != 10*time.Second {
				t.Errorf("got %v, %v", err, s.at)
			}
		},
	)
}

// All attempts of one Consume have the same key. The next Consume has another.
func TestALostAnswerNeverConsumesTwice(t *testing.T) {
	scripted(
		t,
		[]func() (*http.Response, error){lost, lost, ok(someRequest), ok(someRequest)},
		func(t *testing.T, c *Client, s *script) {
			for range 2 {
				must.Get(c.Consume(t.Context(), "r", []byte(`{"kind":"tool","tool":"x","args":{ "a" : 1.0 }}`), ""))(t)
			}

			if s.bodies[0] != s.bodies[1] || s.bodies[1] != s.bodies[2] || s.bodies[2] == s.bodies[3] ||
				!strings.Contains(s.bodies[0], `{ "a" : 1.0 }`) {
				t.Errorf("got %q", s.bodies)
			}
		},
	)
	scripted(
		t,
		[]func() (*http.Response, error){lost, ok(`{"outcome":"allow","decision":{"outcome":"allow"}}`)},
		func(t *testing.T, c *Client, s *script) {
			if _, err := c.Open(t.Context(), "desk", []byte(`{"kind":"tool","tool":"x"}`), OpenOptions{}); err != nil ||
				s.keys[0] == "" ||
				s.keys[0] != s.keys[1] {
				t.Errorf("got %v, %q", err, s.keys)
			}
		},
	)
}

func TestVotesAreTriedOnceMoreWhenLost(t *testing.T) {
	vote := func(c *Client, t *testing.T) error {
		_, err := c.Vote(t.Context(), "r", 3, openapi.VoteBody{Verdict: approval.Deny, Binding: "b"})
		return err
	}
	scripted(t, []func() (*http.Response, error){lost, lost, lost}, func(t *testing.T, c *Client, s *script) {
		if err := vote(c, t); err == nil || len(s.seen) != 2 {
			t.Errorf("got %v after %v", err, s.seen)
		}
		if strings.Contains(s.bodies[0], "grant") {
			t.Errorf("a vote offers a grant by itself: %s", s.bodies[0])
		}
	})
	scripted(
		t,
		[]func() (*http.Response, error){problem(503, openapi.CodeUnavailable, 1)},
		func(t *testing.T, c *Client, s *script) {
			if err := vote(c, t); Code(err) != openapi.CodeUnavailable || len(s.seen) != 1 {
				t.Errorf("got %v after %v", err, s.seen)
			}
		},
	)
	scripted(t, []func() (*http.Response, error){lost}, func(t *testing.T, c *Client, s *script) {
		if _, err := c.Cancel(t.Context(), "r", ""); err == nil || len(s.seen) != 1 {
			t.Errorf("got %v after %v", err, s.seen)
		}
	})
}

// If the server's responses contradict each other, nothing runs.
func TestDoRunsNothingOnBadAnswers(t *testing.T) {
	run := func(string) error {
		t.Error("it ran")
		return nil
	}
	const pending = `{"outcome":"pending","decision":{"outcome":"ask"},"request":{"id":"r"}}`
	approved := strings.Replace(someRequest, "consumed", "approved", 1)
	for name, answers := range map[string][]func() (*http.Response, error){
		"unknown outcome":        {ok(`{"outcome":"maybe","decision":{"outcome":"allow"}}`)},
		"no outcome":             {ok(`{}`)},
		"two outcomes":           {ok(`{"outcome":"deny","outcome":"allow","decision":{"outcome":"allow"}}`)},
		"no JSON":                {ok(`<html>`)},
		"no request":             {ok(`{"outcome":"pending","decision":{"outcome":"ask"}}`)},
		"a request without call": {ok(pending), ok(`{"id":"r","state":"approved"}`)},
		"not consumed":           {ok(pending), ok(approved), ok(approved)},
		"refused":                {ok(pending), ok(approved), problem(409, openapi.CodeConsumed, 0)},
		"stale twice": {
			ok(pending),
			ok(approved),
			problem(409, openapi.CodeStale, 0),
			ok(pending),
			ok(approved),
			problem(409, openapi.CodeStale, 0),
		},
	} {
		scripted(t, answers, func(t *testing.T, c *Client, s *script) {
			if err := c.Do(t.Context(), "desk", []byte(`{"kind":"tool","tool":"x"}`), run); err == nil ||
				len(s.seen) != len(answers) {
				t.Errorf("%s: got %v after %v", name, err, s.seen)
			}
		})
	}

	c := must.Get(New("https://assent.test", "t", Options{}))(t)
	if err := c.Do(t.Context(), "desk", []byte(`{"kind":"tool"}`), run); err == nil {
		t.Error("a call that can't be read")
	}
}

func TestNew(t *testing.T) {
	for _, bad := range []string{
		"",
		"assent.test",
		"ftp://assent.test",
		"https://",
		"https://u:p@assent.test",
		"https://assent.test?x=1",
		"http://[::1",
	} {
		if _, err := New(bad, "t", Options{}); err == nil {
			t.Errorf("%q is let through", bad)
		}
	}

	if _, err := New("https://assent.test", "a\nb", Options{}); err == nil {
		t.Error("a token of two lines")
	}
	c, err := New("https://assent.test", "assent_secret", Options{})
	if err != nil || strings.Contains(fmt.Sprintf("%v %+v %#v %s", c, c, c, c), "secret") {
		t.Errorf("prints %#v, %v", c, err)
	}
}

// A stream that breaks is resumed where it was. One that can't be read ends.
func TestEventsComeBack(t *testing.T) {
	stream := func(text string) func() (*http.Response, error) { return answer(200, "text/event-stream", text) }
	answers := []func() (*http.Response, error){
		stream("retry: 1000\nid: 6\n\n: still here\n\n"), lost, problem(503, openapi.CodeUnavailable, 1),
		stream(
			"id: 6\n\nid: 7\nevent: a\ndata: {}\n\nid: 8\nevent: b\ndata: {\"half",
		), stream("id: 8\nevent: b\ndata: {}\n\n"), problem(401, openapi.CodeTokenRevoked, 0),
	}
	scripted(t, answers, func(t *testing.T, c *Client, s *script) {
		var got []string
		for e, err := range c.Events(t.Context(), FromNow) {
			got = append(got, fmt.Sprint(e.Index, e.Type, Code(err)))
		}
		if want := "[7a 8b 0token_revoked]"; fmt.Sprint(got) != want {
			t.Errorf("got %v, want %v", got, want)
		}
		if want := "/base/v1/events|?after=6|?after=6|?after=6|?after=7|?after=8"; strings.ReplaceAll(
			strings.Join(s.seen, "|"),
			"GET /base/v1/events?",
			"?",
		) != "GET "+want {
			t.Errorf("asked %v", s.seen)
		}
	})
	scripted(t, []func() (*http.Response, error){stream("id: x\n\n")}, func(t *testing.T, c *Client, s *script) {
		for _, err := range c.Events(t.Context(), FromStart) {
			if !errors.Is(err, errUnreadable) || len(s.seen) != 1 {
				t.Errorf("got %v", err)
			}
		}
	})
	scripted(t, nil, func(t *testing.T, c *Client, s *script) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for _, err := range c.Events(ctx, FromStart) {
			if !errors.Is(err, context.DeadlineExceeded) || len(s.seen) < 8 || len(s.seen) > 80 {
				t.Errorf("got %v after %d attempts", err, len(s.seen))
			}
		}
	})
}

// No stream causes a panic or yields an event without an index.
func FuzzReadEvents(f *testing.F) {
	f.Add([]byte("retry: 1000\nid: 1\nevent: a\ndata: {}\n\n: x\n\nid:2\ndata:{\"a\":1}\n\n"))
	f.Add([]byte("data: {}\n\n"))
	f.Add([]byte("id: -1\n\nid: 99999999999999999999\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for e, err := range readEvents(bytes.NewReader(text), func() {}) {
			if err == nil && (e.Index < FromStart || e.Leaf != nil && e.Index < 0) {
				t.Fatalf("got %+v", e)
			}
		}
	})
}

// The text for the agent is true: an approval that lapsed is not described as a request without
// a decision.
func TestEndingsAreTold(t *testing.T) {
	for cause, want := range map[approval.Cause]string{
		approval.ByDeadline:   "Nobody decided",
		approval.ByLateDeny:   "denied it before it ran: too much. Do not",
		approval.ByPermitAge:  "not used in time",
		approval.ByPlanChange: "the rules changed",
		approval.BySupersede:  "newer request",
		approval.ByRequester:  "taken back",
		"odd":                 "expired (odd)",
	} {
		e := &NotRunError{
			Opened:  &approval.Opened{},
			Request: &approval.Request{State: approval.Expired, Cause: cause, Reason: "too much."},
		}
		if got := e.Error(); !strings.Contains(got, want) ||
			cause != approval.ByDeadline && strings.Contains(got, "Nobody") {
			t.Errorf("%s: %s", cause, got)
		}
	}
}

// errors.Is matches the same errors here as in the server.
func TestProblemsAreErrorsOfTheDomain(t *testing.T) {
	all := openapi.Meanings()
	for _, m := range all {
		err := fmt.Errorf("wrapped: %w", &Problem{openapi.Problem{Code: m.Code}})
		for _, other := range all {
			if other.Err != nil && errors.Is(err, other.Err) != (other.Code == m.Code) {
				t.Errorf("%s and %v: got %v", m.Code, other.Err, errors.Is(err, other.Err))
			}
		}
	}

	if errors.Is(&Problem{openapi.Problem{Code: "of a later version"}}, approval.ErrNotFound) {
		t.Error("an unknown code is an error of the domain")
	}
}
