package runtime

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/growth"
	"github.com/assent-dev/assent/rap/wire"
)

// TestACallbackCostsLittle: a callback costs at most a second of CPU time and 64 MB, whatever it
// contains.
func TestACallbackCostsLittle(t *testing.T) {
	w := newRTWorld(t)
	w.sent("1")
	token := w.kept("1").Part.Token
	part := func(m wire.Callback) string { return strings.TrimSuffix(string(m.Append(nil)), "}") + `,"more":%s}` }
	choice := part(w.choice("1", "a"))
	for _, body := range []string{
		choice,
		strings.Replace(choice, `["Yes","No"]`, "%s", 1),
		strings.Replace(choice, `"Write?"`, "%s", 1),
		part(rtResult("1", "done")),
	} {
		accepted := strings.Count(body, "%s") > 1 // a part that must be a text or a list of texts
		for name, hostile := range growth.HostileJSON(4_000_000) {
			text := strings.ReplaceAll(body, "%s", hostile)
			growth.Within(t, time.Second, 64<<20, func() {
				code := w.posts(token, text)
				accepted = accepted || code == http.StatusOK
				if code >= 500 {
					t.Errorf("answered with %d", code)
				}
			})
			if t.Failed() {
				t.Fatalf("that was %s in %s", name, body)
			}
		}
		if !accepted {
			t.Fatalf("all are refused: %s", body)
		}
	}
}
