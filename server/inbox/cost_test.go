package inbox_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/growth"
)

// TestAPageCostsLittle: a page of a request, and the preview of an edit, cost at most a second of CPU
// time and 64 MB, whatever the arguments contain.
func TestAPageCostsLittle(t *testing.T) {
	h := open(t)
	bob := h.browser("bob")
	plain := h.ask(tool("big", `{"a":1}`))
	edit := "/requests/" + plain.ID + "/edit"
	change := bob.get("/requests/"+plain.ID+"?show=all").form(t, edit, "arguments")
	h.pass(time.Second)
	change.Set("step", "preview")
	shown, previewed := false, false
	for name, hostile := range growth.HostileJSON(700 << 10) {
		ways := map[string]url.Values{"/": nil}
		out, err := h.service.Open(t.Context(), approval.OpenInput{
			Tenant: tenant, Asker: approval.Asker{Token: "desk-runtime"}, Agent: "trading-desk",
			Call: tool("big", hostile),
		})
		if err == nil && out.Request != nil {
			ways["/requests/"+out.Request.ID], ways["/requests/"+out.Request.ID+"?show=all"] = nil, nil
		}
		change.Set("arguments", hostile)
		ways[edit] = change
		for path, fields := range ways {
			growth.Within(t, time.Second, 64<<20, func() {
				req := httptest.NewRequest(http.MethodGet, path, nil)
				if fields != nil {
					req = httptest.NewRequest(http.MethodPost, path, strings.NewReader(fields.Encode()))
					req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				}
				req.AddCookie(&http.Cookie{Name: "who", Value: "bob"})
				w := httptest.NewRecorder()
				h.handler.ServeHTTP(w, req)
				shown = shown || strings.Contains(path, "?show=all") && w.Code == http.StatusOK
				previewed = previewed || fields != nil && w.Code == http.StatusOK
				if w.Code >= 500 {
					t.Errorf("%d %.200s", w.Code, w.Body)
				}
			})
			if t.Failed() {
				t.Fatalf("that was %s: %s", path, name)
			}
		}
	}
	if !shown || !previewed {
		t.Errorf("shown in full: %v, previewed: %v", shown, previewed)
	}
}
