package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/growth"
)

// TestARequestCostsLittle: an invocation or an answer costs at most a second of CPU time and 64 MB,
// whatever it contains.
func TestARequestCostsLittle(t *testing.T) {
	g := idle(t)
	for path, body := range map[string]string{
		"/invoke": `{"operation":"write","arguments":%s,"id":"ID","group_id":"t","callback_url":"http://127.0.0.1:2/cb"}`,
		"/answer": `{"id":"c","selected":0,"more":%s}`,
	} {
		accepted := false
		for name, hostile := range growth.HostileJSON(1000 << 10) {
			at := path
			if path == "/answer" {
				_, token := waiting(t, g)
				at += "/" + token
			}
			text := strings.NewReplacer("ID", name, "%s", hostile).Replace(body)
			growth.Within(t, time.Second, 64<<20, func() {
				req := httptest.NewRequest(http.MethodPost, at, strings.NewReader(text))
				req.Header.Set("Content-Type", "application/json")
				req.RemoteAddr, req.Host = "127.0.0.1:1", "127.0.0.1"
				w := httptest.NewRecorder()
				g.ServeHTTP(w, req)
				accepted = accepted || w.Code == http.StatusOK
				if w.Code >= 500 {
					t.Errorf("%d %.200s", w.Code, w.Body)
				}
			})
			if t.Failed() {
				t.Fatalf("that was %s: %s", path, name)
			}
		}
		if !accepted {
			t.Fatalf("%s: all are refused", path)
		}
	}
}
