// Package webhook delivers events as Standard Webhooks (https://www.standardwebhooks.com):
// a JSON body, signed with a secret that the receiver knows. docs/contracts/webhook.md is
// the contract.
package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/assent-dev/assent/internal/backoff"
	"github.com/assent-dev/assent/internal/guard"
	"github.com/assent-dev/assent/server/notify"
	"github.com/assent-dev/assent/store"
)

// Config configures a webhook. URL and Secrets are required.
type Config struct {
	URL     string           // https; may contain a secret path, so it is never shown
	Secrets []string         // whsec_…; each one signs every message, so that a receiver can change secrets
	Guard   guard.Guard      // the addresses that may be reached
	Timeout time.Duration    // of one exchange; default 10s
	Now     func() time.Time // time.Now
}

// Sender is a notify.Sender that posts to one address.
type Sender struct {
	url    string
	keys   [][]byte
	client *http.Client
	now    func() time.Time
}

// New checks the configuration.
func New(cfg Config) (*Sender, error) {
	if _, err := cfg.Guard.CheckURL(cfg.URL); err != nil {
		return nil, fmt.Errorf("webhook: url: %w", err)
	}
	if len(cfg.Secrets) == 0 {
		return nil, errors.New("webhook: expected at least one secret")
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Sender{url: cfg.URL, client: cfg.Guard.Client(cfg.Timeout), now: cfg.Now}
	for _, secret := range cfg.Secrets {
		key, err := parseSecret(secret)
		if err != nil {
			return nil, err
		}
		s.keys = append(s.keys, key)
	}

	return s, nil
}

// ID returns the webhook-id of a delivery. It is the same for every attempt, and different
// for every other delivery, even in a store that was restored from a backup and repeats
// ids.
func ID(job store.Job) string {
	// can't fail
	text, _ := json.Marshal([]any{job.Tenant, job.ID, job.Created.UnixNano(), job.Target, job.Event, job.Subject})
	sum := sha256.Sum256(text)
	return "msg_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:15]))
}

// Send posts a delivery. A 2xx answer means that it arrived. The answer's body is ignored.
func (s *Sender) Send(ctx context.Context, job store.Job) error {
	r, err := s.request(ctx, job)
	if err != nil {
		return notify.Permanent(errors.New("webhook: the request can't be made"))
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return withoutURL(err)
	}
	_ = answer.Body.Close() // unread: even if a receiver never ends its answer, it has accepted the message
	return s.judge(answer)
}

func (s *Sender) request(ctx context.Context, job store.Job) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(job.Payload))
	if err != nil {
		return nil, err
	}
	id, timestamp := ID(job), strconv.FormatInt(s.now().Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "assent-webhook")
	r.Header.Set(HeaderID, id)
	r.Header.Set(HeaderTimestamp, timestamp)
	r.Header.Set(HeaderSignature, signatures(s.keys, id, timestamp, []byte(job.Payload)))
	return r, nil
}

// judge converts a status to the next step.
func (s *Sender) judge(answer *http.Response) error {
	if answer.StatusCode/100 == 2 {
		return nil
	}
	return &notify.Failure{
		Err: errors.New("the receiver answered " + strconv.Itoa(answer.StatusCode) + " " +
			http.StatusText(answer.StatusCode)),
		Permanent: permanent(answer.StatusCode),
		After:     backoff.RetryAfter(answer.Header, s.now(), notify.MaxBackoff),
	}
}

// permanent reports whether the receiver will never accept the message: it does not
// understand it, or it is gone. Other refusals (401, 404, 5xx…) are often caused by a
// running deployment.
func permanent(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusGone, http.StatusLengthRequired,
		http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusUnsupportedMediaType,
		http.StatusUnprocessableEntity, http.StatusNotImplemented,
		// redirects are not followed: the configured address is wrong
		http.StatusMovedPermanently, http.StatusPermanentRedirect:
		return true
	}

	return false
}

// withoutURL removes the address, which net/http puts into its errors.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
