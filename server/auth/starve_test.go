package auth_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/testwait"
)

// posts returns how often the provider was asked to exchange a code.
func (p *idp) posts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls["/token"]
}

// back requests a callback without a browser.
func (h *harness) back(to, cookie, address string) *httptest.ResponseRecorder {
	req := httptest.NewRequestWithContext(testwait.Context(h.t), "GET", to, nil)
	req.RemoteAddr = address
	req.Header.Set("Sec-Fetch-Mode", "navigate")
	if cookie != "" {
		req.AddCookie(&http.Cookie{Name: "__Host-assent-flow", Value: cookie})
	}
	out := httptest.NewRecorder()
	h.serve(out, req)
	return out
}

// begun is a sign-in right before its callback.
type begun struct{ to, cookie string }

// begun begins a sign-in. If code is not empty, the callback has that code instead of the
// provider's.
func (h *harness) begun(code string) begun {
	h.t.Helper()
	b := h.browser()
	to, err := url.Parse(b.begin())
	must(h.t, err)
	q := to.Query()
	if code != "" {
		q.Set("code", code)
	}
	to.RawQuery = q.Encode()
	return begun{to.RequestURI(), b.cookie("-flow")}
}

// TestNoPostForAFlowThatWasNotBegun checks that a cookie that was made up, changed, or
// encrypted for another provider or by another server causes no request to the provider.
func TestNoPostForAFlowThatWasNotBegun(t *testing.T) {
	h := open(t, false)
	f := h.begun("")
	to, err := url.Parse(f.to)
	must(t, err)
	own, err := json.Marshal(map[string]any{
		"provider": "corp",
		"state":    to.Query().Get("state"),
		"nonce":    "n",
		"verifier": strings.Repeat("v", 43),
		"next":     "/",
		"expires":  time.Now().Add(time.Minute),
	})
	must(t, err)
	for name, cookie := range map[string]string{
		"none":     "",
		"unsealed": base64.RawURLEncoding.EncodeToString(own),
		"cut":      f.cookie[:len(f.cookie)-4],
		"longer":   f.cookie + "AAAA",
		"changed":  f.cookie[:30] + "AAAA" + f.cookie[34:],
		"empty":    "AAAA",
	} {
		out := h.back(f.to, cookie, "192.0.2.1:1")
		if out.Code != http.StatusBadRequest || !strings.Contains(out.Body.String(), "Start again") {
			t.Errorf("%s: status %d", name, out.Code)
		}
	}

	ours := h.cfg.Key
	h.cfg.Key = []byte("the key of another server, which it is")
	h.restart()
	if out := h.back(f.to, f.cookie, "192.0.2.1:1"); out.Code != http.StatusBadRequest {
		t.Errorf("sealed elsewhere: status %d", out.Code)
	}
	if n := h.idp.posts(); n != 0 {
		t.Errorf("%d posts to the provider", n)
	}
	h.cfg.Key = ours
	h.restart()
	if out := h.back(f.to, f.cookie, "192.0.2.1:1"); out.Code != http.StatusSeeOther || h.idp.posts() != 1 {
		t.Errorf("on another replica: status %d, %d posts", out.Code, h.idp.posts())
	}
}

// TestAFlowIsUsedOnce checks that a repeated callback, here or to another replica, causes
// no request to the provider.
func TestAFlowIsUsedOnce(t *testing.T) {
	h := open(t, false)
	f := h.begun("made-up")
	if out := h.back(f.to, f.cookie, "192.0.2.1:1"); out.Code != http.StatusForbidden {
		t.Errorf("a made-up code: status %d", out.Code)
	}
	posts := h.idp.posts()
	h.restart()
	for range 3 {
		if out := h.back(f.to, f.cookie, "192.0.2.1:1"); out.Code != http.StatusBadRequest {
			t.Errorf("the flow was used, and used again: status %d", out.Code)
		}
	}
	if n := h.idp.posts(); posts == 0 || n != posts {
		t.Errorf("%d posts to the provider, and then %d", posts, n)
	}
	f = h.begun("")
	h.used.lost = errors.New("the disk is full")
	if out := h.back(f.to, f.cookie, "192.0.2.1:1"); out.Code != http.StatusServiceUnavailable ||
		h.idp.posts() != posts {
		t.Errorf("a use that can't be remembered: status %d, %d posts", out.Code, h.idp.posts())
	}
}

// hold blocks the exchanges of made-up codes until release is called, and keeps waits for
// an exchange from timing out before that. most is the maximal number of concurrent
// exchanges.
func (h *harness) hold() (most *atomic.Int64, release func()) {
	most = &atomic.Int64{}
	var now atomic.Int64
	held := make(chan struct{})
	quick := h.idp.Config.Handler
	h.idp.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" && strings.HasPrefix(r.FormValue("code"), "made-up") {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			<-held
		}
		quick.ServeHTTP(w, r)
	})
	release = sync.OnceFunc(func() { close(held) })
	h.t.Cleanup(release)
	h.cfg.Timeout = time.Hour
	h.restart()
	return most, release
}

// TestStrangersDoNotKeepPeopleFromSigningIn has 150 strangers begin sign-ins from one
// address, and come back at once with made-up codes, none of which the provider answers.
// People who typed a password meanwhile, and people at other addresses, must be able to
// sign in.
func TestStrangersDoNotKeepPeopleFromSigningIn(t *testing.T) {
	h := open(t, false)
	most, release := h.hold()
	typed := []begun{h.begun(""), h.begun("")}
	h.pass(7 * time.Second) // a password
	strangers := make([]begun, 150)
	for i := range strangers {
		strangers[i] = h.begun(fmt.Sprint("made-up-", i))
	}
	elsewhere := []begun{h.begun(""), h.begun("")}
	var all sync.WaitGroup
	for i, s := range strangers {
		all.Go(func() { h.back(s.to, s.cookie, fmt.Sprint("192.0.2.1:", 1000+i)) })
	}
	testwait.Until(t, "the flood", func() bool { return most.Load() >= 4 })

	for name, c := range map[string]struct {
		flows   []begun
		address string
	}{
		"who typed a password, behind the same address": {typed, "192.0.2.1:9"},
		"elsewhere": {elsewhere, "198.51.100.7:9"},
	} {
		for _, f := range c.flows {
			if out := h.back(f.to, f.cookie, c.address); out.Code != http.StatusSeeOther {
				t.Errorf("%s: status %d: %s", name, out.Code, out.Body)
			}
		}
	}

	release()
	all.Wait()
	if n := most.Load(); n > 16 {
		t.Errorf("%d exchanges at a time", n)
	}
}

// TestWhoFindsNoRoomTriesAgain checks that a sign-in that was refused because too many wait
// is not lost: requesting the same page again continues it.
func TestWhoFindsNoRoomTriesAgain(t *testing.T) {
	h := open(t, false)
	flows := make([]begun, 100) // more than may wait
	for i := range flows {
		flows[i] = h.begun("made-up")
	}
	_, release := h.hold()
	var all sync.WaitGroup
	var busy atomic.Int64
	answers := make([]*httptest.ResponseRecorder, len(flows))
	for i, f := range flows {
		all.Go(func() {
			if answers[i] = h.back(f.to, f.cookie, "192.0.2.1:1"); answers[i].Code == http.StatusTooManyRequests {
				busy.Add(1)
			}
		})
	}
	testwait.Until(t, "sign-ins that find no room", func() bool { return busy.Load() > 0 })
	release()
	all.Wait()
	for i, out := range answers {
		switch out.Code {
		case http.StatusForbidden: // the provider did not know the code
		case http.StatusTooManyRequests:
			if out.Header().Get("Retry-After") == "" || out.Header().Get("Set-Cookie") != "" ||
				!strings.Contains(out.Body.String(), "reload this page") {
				t.Errorf("%v: %s", out.Header(), out.Body)
			}
			if again := h.back(flows[i].to, flows[i].cookie, "192.0.2.1:1"); again.Code != http.StatusForbidden {
				t.Errorf("asked again: status %d", again.Code)
			}
		default:
			t.Errorf("status %d", out.Code)
		}
	}

	if h.idp.posts() < len(flows) {
		t.Errorf("%d posts", h.idp.posts())
	}
}
