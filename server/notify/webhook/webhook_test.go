package webhook_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/guard"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/server/notify"
	"github.com/assent-dev/assent/server/notify/webhook"
	"github.com/assent-dev/assent/store"
)

var sentAt = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func delivery() store.Job {
	return store.Job{
		ID:      7,
		Tenant:  "acme",
		Attempt: 1,
		Created: sentAt.Add(-time.Minute),
		Delivery: approval.Delivery{
			Target:  "webhook:ops",
			Event:   approval.EventOpened,
			Subject: "req_1",
			Payload: `{"type":"request_opened","data":{}}`,
		},
	}
}

// trusting returns a guard that allows a test server.
func trusting(s *httptest.Server) guard.Guard {
	g := guard.Guard{Loopback: true}
	if s.Certificate() != nil {
		roots := x509.NewCertPool()
		roots.AddCert(s.Certificate())
		g.TLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return g
}

func newSender(t *testing.T, s *httptest.Server, secrets ...string) *webhook.Sender {
	t.Helper()
	return impatient(t, s, time.Hour, secrets...)
}

// impatient returns a sender with a short time limit.
func impatient(t *testing.T, s *httptest.Server, timeout time.Duration, secrets ...string) *webhook.Sender {
	t.Helper()
	if len(secrets) == 0 {
		secrets = []string{vectorSecret}
	}
	out, err := webhook.New(webhook.Config{
		URL:     s.URL + "/secret-path",
		Secrets: secrets,
		Guard:   trusting(s),
		Timeout: timeout,
		Now:     func() time.Time { return sentAt },
	})
	must.Do(t, err)
	return out
}

func receiver(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	return s
}

func TestReceiverCanVerify(t *testing.T) {
	before := webhook.NewSecret()
	next := webhook.NewSecret()
	stranger := webhook.NewSecret()
	var header http.Header
	var body []byte
	s := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		header = r.Header.Clone()
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusNoContent)
	})
	job := delivery()
	must.Do(t, newSender(t, s, next, before).Send(t.Context(), job))
	for _, secret := range []string{before, next} { // while secrets change, a receiver has either of them
		if err := webhook.Verify(secret, header, body, sentAt, time.Minute); err != nil {
			t.Errorf("one of our secrets: %v", err)
		}
	}
	if err := webhook.Verify(stranger, header, body, sentAt, time.Minute); !errors.Is(err, webhook.ErrSignature) {
		t.Errorf("a stranger's secret: got %v", err)
	}
	if string(body) != job.Payload || header.Get("Content-Type") != "application/json" ||
		header.Get("webhook-id") != webhook.ID(job) {
		t.Errorf("got %q with %v", body, header)
	}
}

func TestIDIsStableAndDistinct(t *testing.T) {
	again := delivery()
	again.Attempt = 5
	again.Problem = "refused"
	again.RunAt = sentAt
	if webhook.ID(again) != webhook.ID(delivery()) {
		t.Error("another attempt has another id")
	}
	for name, change := range map[string]func(*store.Job){
		"number": func(j *store.Job) { j.ID++ },
		"tenant": func(j *store.Job) { j.Tenant = "b" },
		"time":   func(j *store.Job) { j.Created = j.Created.Add(1) },
		"target": func(j *store.Job) { j.Target = "b" },
	} {
		other := delivery()
		change(&other)
		if webhook.ID(other) == webhook.ID(delivery()) {
			t.Errorf("another %s has the same id", name)
		}
	}
}

func TestAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		status    int
		after     string
		permanent bool
		wait      time.Duration
	}{
		"error":             {status: 500},
		"not there yet":     {status: 404},
		"unauthorized":      {status: 401},
		"too many, seconds": {status: 429, after: "120", wait: 2 * time.Minute},
		"too many, date": {
			status: 429,
			after:  sentAt.Add(time.Minute).Format(http.TimeFormat),
			wait:   time.Minute,
		},
		"too many, past":        {status: 429, after: sentAt.Add(-time.Minute).Format(http.TimeFormat)},
		"too many, long":        {status: 429, after: "99999999999", wait: time.Hour},
		"too many, negative":    {status: 429, after: "-5"},
		"too many, nonsense":    {status: 429, after: "soon"},
		"unavailable, with ask": {status: 503, after: "30", wait: 30 * time.Second},
		"gone":                  {status: 410, permanent: true},
		"not understood":        {status: 400, permanent: true},
		"moved for good":        {status: 308, permanent: true},
		"moved for now":         {status: 302},
	} {
		var hits atomic.Int32
		s := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
			hits.Add(1)
			w.Header().Set("Location", "/elsewhere")
			if test.after != "" {
				w.Header().Set("Retry-After", test.after)
			}
			w.WriteHeader(test.status)
			_, _ = io.WriteString(w, "<b>body of the receiver</b>")
		})
		err := newSender(t, s).Send(t.Context(), delivery())
		failure, ok := errors.AsType[*notify.Failure](err)
		if !ok || failure.Permanent != test.permanent || failure.After != test.wait || hits.Load() != 1 {
			t.Errorf("%s: got %#v after %d requests", name, err, hits.Load())
		}
		if err != nil && strings.Contains(err.Error(), "body of the receiver") {
			t.Errorf("%s: the error repeats the body: %v", name, err)
		}
	}
}

func TestHangingAndBrokenReceivers(t *testing.T) {
	release := make(chan struct{})
	for name, h := range map[string]http.HandlerFunc{
		"hangs":         func(http.ResponseWriter, *http.Request) { <-release },
		"cuts the line": func(w http.ResponseWriter, _ *http.Request) { hijack(t, w).Close() },
		"talks nonsense": func(w http.ResponseWriter, _ *http.Request) {
			c := hijack(t, w)
			_, _ = io.WriteString(c, "ho ho\r\n\r\n")
			c.Close()
		},
		"endless header": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 1<<20))
			w.WriteHeader(http.StatusOK)
		},
	} {
		s, timeout := receiver(t, h), time.Hour
		if name == "hangs" {
			timeout = 50 * time.Millisecond
		}
		err := impatient(t, s, timeout).Send(t.Context(), delivery())
		if failure, ok := errors.AsType[*notify.Failure](err); err == nil || ok && failure.Permanent {
			t.Errorf("%s: got %v, want an error that is tried again", name, err)
		} else if strings.Contains(err.Error(), "secret-path") {
			t.Errorf("%s: the error repeats the address: %v", name, err)
		}
	}

	close(release)
}

func hijack(t *testing.T, w http.ResponseWriter) net.Conn {
	t.Helper()
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
	}
	return c
}

// TestEndlessAnswerIsIgnored checks that a 2xx answer means success, whatever its body is.
func TestEndlessAnswerIsIgnored(t *testing.T) {
	const most = 16 << 20 // far more than what waits in the connection
	s := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		for range most >> 16 {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
		t.Errorf("the sender read %d bytes", most)
	})
	if err := newSender(t, s).Send(t.Context(), delivery()); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	inner := receiver(t, func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") })
	s := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inner.URL, http.StatusTemporaryRedirect)
	})
	if err := newSender(t, s).Send(t.Context(), delivery()); err == nil {
		t.Error("want an error")
	}
}

func TestPlainHTTPToThisMachine(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	if err := newSender(t, s).Send(t.Context(), delivery()); err != nil {
		t.Error(err)
	}
	_, err := webhook.New(webhook.Config{URL: s.URL, Secrets: []string{vectorSecret}})
	if err == nil {
		t.Error("plain http needs its own setting")
	}
}

func TestUntrustedCertificateIsRefused(t *testing.T) {
	s := receiver(t, func(http.ResponseWriter, *http.Request) { t.Error("the message was sent") })
	sender, err := webhook.New(webhook.Config{
		URL:     s.URL,
		Secrets: []string{vectorSecret},
		Guard:   guard.Guard{Loopback: true},
	})
	must.Do(t, err)
	if err := sender.Send(t.Context(), delivery()); err == nil {
		t.Error("want an error")
	}
}
