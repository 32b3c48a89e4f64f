package webhook_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/server/notify/webhook"
)

// The example from the tests of the Standard Webhooks libraries.
const (
	vectorSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	vectorBody   = `{"test": 2432232314}`
)

var vectorTime = time.Unix(1614265330, 0)

func vectorHeader() http.Header {
	h := http.Header{}
	h.Set("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
	h.Set("webhook-timestamp", "1614265330")
	h.Set("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	return h
}

func TestVerify(t *testing.T) {
	good := vectorHeader().Get("webhook-signature")
	other := webhook.NewSecret()
	set := func(name, value string) func(*message) { return func(m *message) { m.header.Set(name, value) } }
	for name, test := range map[string]struct {
		change func(*message)
		want   error
	}{
		"example of the standard":  {func(*message) {}, nil},
		"second of several":        {set("webhook-signature", "v1,AAAA v1a,xyz "+good), nil},
		"at the edge of tolerance": {func(m *message) { m.now = m.now.Add(5 * time.Minute) }, nil},
		"tampered body":            {func(m *message) { m.body += " " }, webhook.ErrSignature},
		"another id":               {set("webhook-id", "msg_other"), webhook.ErrSignature},
		"moved border of id":       {set("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek.1"), webhook.ErrSignature},
		"another time":             {set("webhook-timestamp", "1614265331"), webhook.ErrSignature},
		"another secret":           {func(m *message) { m.secret = other }, webhook.ErrSignature},
		"another version": {
			set("webhook-signature", strings.Replace(good, "v1,", "v2,", 1)),
			webhook.ErrSignature,
		},
		"cut signature": {set("webhook-signature", good[:20]), webhook.ErrSignature},
		"too many signatures": {
			set("webhook-signature", strings.Repeat("v1,AAAA ", 16)+good),
			webhook.ErrSignature,
		},
		"too old": {func(m *message) {
			m.now = m.now.Add(5*time.Minute + time.Second)
		}, webhook.ErrStale},
		"too new": {func(m *message) {
			m.now = m.now.Add(-5*time.Minute - time.Second)
		}, webhook.ErrStale},
		"no time":               {set("webhook-timestamp", "soon"), webhook.ErrHeaders},
		"time in another form":  {set("webhook-timestamp", "+1614265330"), webhook.ErrHeaders},
		"no signature":          {func(m *message) { m.header.Del("webhook-signature") }, webhook.ErrHeaders},
		"no id":                 {func(m *message) { m.header.Del("webhook-id") }, webhook.ErrHeaders},
		"two signature headers": {func(m *message) { m.header.Add("webhook-signature", good) }, webhook.ErrHeaders},
	} {
		m := message{
			secret: vectorSecret,
			header: vectorHeader(),
			body:   vectorBody,
			now:    vectorTime,
		}
		test.change(&m)
		if err := webhook.Verify(m.secret, m.header, []byte(m.body), m.now, 5*time.Minute); !errors.Is(
			err,
			test.want,
		) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
	}
}

type message struct {
	secret string
	header http.Header
	body   string
	now    time.Time
}

func TestSecretsAreChecked(t *testing.T) {
	long := func(n int) string {
		return "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, n))
	}
	for secret, ok := range map[string]bool{
		webhook.NewSecret():                    true,
		long(24):                               true,
		long(64):                               true,
		long(23):                               false,
		long(65):                               false,
		"":                                     false,
		"whsec_":                               false,
		"whsec_*":                              false,
		strings.TrimPrefix(long(32), "whsec_"): false,
	} {
		_, err := webhook.New(webhook.Config{URL: "https://example.com/", Secrets: []string{secret}})
		if (err == nil) != ok {
			t.Errorf("%q: got %v", secret, err)
		}
		if text := strings.TrimPrefix(secret, "whsec_"); err != nil && len(text) > 8 &&
			strings.Contains(err.Error(), text) {
			t.Errorf("the error repeats the secret: %v", err)
		}
	}

	if a, b := webhook.NewSecret(), webhook.NewSecret(); a == b {
		t.Error("two secrets are the same")
	}
}

func FuzzVerify(f *testing.F) {
	h := vectorHeader()
	f.Add(h.Get("webhook-id"), h.Get("webhook-timestamp"), h.Get("webhook-signature"), vectorBody)
	f.Add("", "9223372036854775807", "v1,", "")
	f.Add("a", "-9223372036854775808", " v1,= ", "{}")
	f.Fuzz(func(t *testing.T, id, timestamp, signature, body string) {
		h := http.Header{}
		h.Set("webhook-id", id)
		h.Set("webhook-timestamp", timestamp)
		h.Set("webhook-signature", signature)
		err := webhook.Verify(vectorSecret, h, []byte(body), vectorTime, 5*time.Minute)
		if err == nil &&
			(id != vectorHeader().Get("webhook-id") || body != vectorBody || timestamp != "1614265330") {
			t.Errorf("took a message that nobody signed: %q %q %q %q", id, timestamp, signature, body)
		}
	})
}
