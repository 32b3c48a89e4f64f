package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of Standard Webhooks.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// Reasons why Verify refuses a message.
var (
	ErrHeaders = errors.New(
		"webhook: expected one webhook-id, one webhook-timestamp and one webhook-signature header",
	)
	ErrStale     = errors.New("webhook: the timestamp is too far from now")
	ErrSignature = errors.New("webhook: no signature is by this secret")
)

const (
	secretPrefix  = "whsec_"
	version       = "v1,"
	minKey        = 24 // bytes, as Standard Webhooks requires
	maxKey        = 64
	maxSignatures = 16 // that Verify checks
)

// NewSecret returns a new secret to share with one receiver.
func NewSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// parseSecret returns the key of a secret. Its errors don't contain the secret.
func parseSecret(secret string) ([]byte, error) {
	text, ok := strings.CutPrefix(secret, secretPrefix)
	key, err := base64.StdEncoding.Strict().DecodeString(text)
	if !ok || err != nil || len(key) < minKey || len(key) > maxKey {
		return nil, fmt.Errorf(
			"webhook: expected a secret as whsec_ and the base64 of %d to %d bytes",
			minKey,
			maxKey,
		)
	}

	return key, nil
}

func sign(key []byte, id, timestamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return mac.Sum(nil)
}

// signatures returns the header's value: one signature for each key, so that receivers can
// change from one secret to the next.
func signatures(keys [][]byte, id, timestamp string, body []byte) string {
	var all []string
	for _, key := range keys {
		all = append(all, version+base64.StdEncoding.EncodeToString(sign(key, id, timestamp, body)))
	}
	return strings.Join(all, " ")
}

// Verify is for receivers. It returns nil if a message was signed with the secret, is
// unchanged, and is within tolerance of now. body must be exactly the received bytes. A
// receiver must also remember webhook-id values and ignore repeated ones, because
// deliveries arrive at least once. The error is ErrHeaders, ErrStale or ErrSignature, or is
// about an invalid secret.
func Verify(secret string, header http.Header, body []byte, now time.Time, tolerance time.Duration) error {
	key, err := parseSecret(secret)
	if err != nil {
		return err
	}
	id := single(header, HeaderID)
	timestamp := single(header, HeaderTimestamp)
	given := single(header, HeaderSignature)
	if id == "" || timestamp == "" || given == "" {
		return ErrHeaders
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || strconv.FormatInt(seconds, 10) != timestamp {
		return ErrHeaders
	}
	if now.Sub(time.Unix(seconds, 0)).Abs() > tolerance {
		return ErrStale
	}
	if !anyEqual(given, sign(key, id, timestamp, body)) {
		return ErrSignature
	}
	return nil
}

// single returns the value of a header that must occur exactly once.
func single(h http.Header, name string) string {
	if values := h.Values(name); len(values) == 1 {
		return values[0]
	}
	return ""
}

// anyEqual compares want in constant time with each signature of the known version.
func anyEqual(given string, want []byte) bool {
	found := false
	for _, s := range strings.SplitN(given, " ", maxSignatures+1)[:min(maxSignatures, strings.Count(given, " ")+1)] {
		text, ok := strings.CutPrefix(s, version)
		if !ok {
			continue
		}
		if mac, err := base64.StdEncoding.Strict().DecodeString(text); err == nil && hmac.Equal(mac, want) {
			found = true
		}
	}

	return found
}
