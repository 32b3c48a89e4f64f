package slack

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/form"
)

const (
	headerSignature = "X-Slack-Signature"
	headerTimestamp = "X-Slack-Request-Timestamp"

	window  = 5 * time.Minute // maximum distance of a timestamp from now, in both directions
	maxBody = 1 << 20
)

var (
	errUnsigned = errors.New("expected Slack's signature of these bytes")
	errStale    = errors.New("the timestamp is more than five minutes from now")
	errReplayed = errors.New("these bytes were received before")
	errFull     = errors.New("too much at once")
)

// ServeHTTP handles interactions: clicks on our buttons, and the forms for the reason of a
// denial and for the answer to a question. Only signed POST requests have an effect, once each.
// Slack gets its acknowledgement immediately, and the person gets the result through the
// response URL. A form with invalid fields is rejected immediately instead, with the expected
// input for each.
func (a *App) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "expected POST", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "expected a body of at most 1 MiB", http.StatusRequestEntityTooLarge)
		return
	}
	if err := a.authentic(r.Header, body); err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	in, err := parseBody(body)
	if err != nil {
		http.Error(w, "expected an interaction", http.StatusBadRequest)
		return
	}
	wrong, err := a.begin(r, in)
	if err != nil {
		status := http.StatusConflict
		if errors.Is(err, errFull) {
			status = http.StatusServiceUnavailable
		}
		http.Error(w, err.Error(), status)
		return
	}

	if wrong == nil {
		w.WriteHeader(http.StatusOK) // an empty body also closes the form
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(slack.NewErrorsViewSubmissionResponse(wrong))
}

// begin handles an interaction after the acknowledgement, unless it is a replay. A form with
// invalid fields is not handled: then wrong contains the error text for each block.
func (a *App) begin(r *http.Request, in interaction) (wrong map[string]string, err error) {
	select {
	case a.slots <- struct{}{}:
	default:
		return nil, errFull
	}
	if !a.seen.first(r.Header.Get(headerSignature), a.cfg.Now()) {
		<-a.slots
		return nil, errReplayed
	}
	ctx := context.WithoutCancel(r.Context())
	if in.step == stepSubmit {
		if wrong = a.reads(ctx, &in); wrong != nil {
			<-a.slots
			return wrong, nil
		}
	}

	a.works.Go(func() {
		defer func() { <-a.slots }()
		ctx, cancel := context.WithTimeout(ctx, workTimeout)
		defer cancel()
		a.work(ctx, in)
	})

	return nil, nil
}

// readTimeout limits the time for reading a form. Slack waits for three seconds.
const readTimeout = 2 * time.Second

// reads converts the inputs of a form to an answer. It returns error texts if a person who may
// answer filled in the current form incorrectly. All other problems are found when the answer
// is counted.
func (a *App) reads(ctx context.Context, in *interaction) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	r, err := a.cfg.Requests.Request(ctx, a.cfg.Tenant, in.ticket.Request)
	if err != nil || r.Question == nil || r.Question.Form() == nil {
		return nil
	}
	f := r.Question.Form()
	in.data, err = filled(f, in.inputs)
	var problems form.Problems
	if !errors.As(err, &problems) {
		return nil
	}
	person, known, err := a.person(ctx, in)
	if err != nil || !known || a.showsAll(ctx, in) != nil {
		return nil
	}
	e, err := a.cfg.Voter.Eligible(ctx, r, person.ID)
	if err != nil || e.May(approval.Submit) != nil { // only people who may answer learn the form's expectations
		return nil
	}

	return fieldErrors(f, problems)
}

// authentic checks Slack's v0 signature of the unchanged body.
func (a *App) authentic(h http.Header, body []byte) error {
	return verify(a.cfg.SigningSecret, h, body, a.cfg.Now())
}

func verify(secret string, h http.Header, body []byte, now time.Time) error {
	signatures, timestamps := h.Values(headerSignature), h.Values(headerTimestamp)
	if secret == "" || len(signatures) != 1 || len(timestamps) != 1 {
		return errUnsigned
	}
	seconds, err := strconv.ParseInt(timestamps[0], 10, 64)
	text, ok := strings.CutPrefix(signatures[0], "v0=")
	given, broken := hex.DecodeString(text)
	if err != nil || !ok || broken != nil || strconv.FormatInt(seconds, 10) != timestamps[0] {
		return errUnsigned
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + timestamps[0] + ":"))
	mac.Write(body)
	if !hmac.Equal(given, mac.Sum(nil)) {
		return errUnsigned
	}
	if now.Sub(time.Unix(seconds, 0)).Abs() > window {
		return errStale
	}
	return nil
}

// replays stores signatures for as long as their timestamps are valid. Only authentic
// signatures get here, so attackers can't fill it.
type replays struct {
	mu   sync.Mutex
	seen map[string]time.Time // time until which a signature is kept
	next time.Time            // time of the next cleanup
}

// first reports whether a signature is new, and stores it. It ignores the case of hex digits.
func (p *replays) first(signature string, now time.Time) bool {
	signature = strings.ToLower(signature)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = map[string]time.Time{}
	}
	if now.After(p.next) {
		for s, until := range p.seen {
			if now.After(until) {
				delete(p.seen, s)
			}
		}
		p.next = now.Add(window)
	}

	if _, known := p.seen[signature]; known {
		return false
	}
	p.seen[signature] = now.Add(2*window + time.Second) // the timestamp may be one window ahead
	return true
}

// parseBody reads the form that Slack posts: one field that contains JSON.
func parseBody(body []byte) (interaction, error) {
	posted, err := url.ParseQuery(string(body))
	if err != nil || len(posted) != 1 || len(posted["payload"]) != 1 {
		return interaction{}, errPayload
	}
	return parseInteraction([]byte(posted["payload"][0]))
}
