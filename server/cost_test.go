package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/growth"
	"github.com/assent-dev/assent/internal/testtier"
)

// Limits of the cost of one request, whatever it contains. mostBytes limits all
// allocations, of which only a part is live at the same time.
const (
	mostCPU   = time.Second
	mostBytes = 64 << 20
)

// hostileContexts returns parts of a context that are expensive to check or show.
func hostileContexts() map[string]string {
	each := func(name, unit string, n int) string {
		return fmt.Sprintf(`"%s":"%s"`, name, strings.Repeat(unit, n/len(unit)))
	}
	link := func(rest string) string { return `"link":"https://` + rest + `"` }
	diff := func(hunk string, n int) string {
		return fmt.Sprintf(`"diff":"--- a\n+++ b\n%s"`, strings.Repeat(hunk, n/len(hunk)))
	}
	return map[string]string{
		"plain":          `"text":"x"`,
		"look-alikes":    each("text", "аa ", 60_000),
		"marks":          each("text", "\u0301", 60_000),
		"lines":          each("text", `\n`, 60_000),
		"a long link":    link("x.example/" + strings.Repeat("%41", 600)),
		"many labels":    link(strings.Repeat("a.", 900) + "example"),
		"punycode":       link("xn--" + strings.Repeat("a", 1900) + ".example"),
		"dots":           link("x.example/" + strings.Repeat("../", 600)),
		"small hunks":    diff(`@@ -1 +1 @@\n-a\n+b\n`, 60_000),
		"a lying hunk":   diff(`@@ -1,999999999 +1,999999999 @@\n-a\n`, 60_000),
		"lines removed":  `"diff":"--- a\n+++ b\n@@ -1,12000 +0,0 @@\n` + strings.Repeat(`-ab\n`, 12_000) + `"`,
		"lines replaced": `"diff":"--- a\n+++ b\n@@ -1,6000 +1,6000 @@\n` + strings.Repeat(`-a\n+b\n`, 6_000) + `"`,
	}
}

// TestARequestCostsLittle checks that a request to the API costs at most a second of CPU
// and 64 MB, even if it is refused. Each kind of request is also answered successfully
// once, so that the others are not merely refused for their envelope.
func TestARequestCostsLittle(t *testing.T) {
	const n = 2047 << 10 // nearly the largest arguments
	h := newHarness(t)
	rt, mara := h.runtime(), h.voter("mara")
	tool := func(args string) string { return `{"kind":"tool","tool":"trade","args":` + args + `}` }
	ways := map[string]struct {
		token string
		path  string // with %s for a request
		body  func(hostile string) string
		of    map[string]string
	}{
		"decide": {rt, "/v1/agents/desk/decide", tool, growth.HostileJSON(n)},
		"parent": {rt, "/v1/agents/desk/decide", func(x string) string {
			return `{"kind":"delegation","agent":"x","args":{},"parent":{"input":` + x + `}}`
		}, growth.HostileJSON(n)},
		"open": {rt, "/v1/agents/desk/requests", func(x string) string { return `{"call":` + tool(x) + `}` },
			growth.HostileJSON(n)},
		"report": {rt, "/v1/agents/desk/reports", func(x string) string {
			return `{"call":` + strings.Replace(tool(x), "trade", "quote", 1) + `,"report":"returned"}`
		}, growth.HostileJSON(n)},
		"edit": {mara, "/v1/requests/%s/edits", func(x string) string {
			text, _ := json.Marshal(`{"edited":` + x + `}`) // no call that is asked about already
			return `{"arguments":` + string(text) + `,"binding":"BINDING","shown_fully":true}`
		}, growth.HostileJSON(n)},
		"context": {rt, "/v1/agents/desk/requests", func(x string) string {
			return `{"call":` + tool("{}") + `,"context":[{"label":"x",` + x + `}]}`
		}, hostileContexts()},
		"question": {rt, "/v1/agents/desk/questions", func(x string) string {
			return `{"principal":"mara@example.com","question":{"asker":"b","prompt":"p","schema":` + x + `}}`
		}, growth.HostileForms(n)},
	}
	for what, way := range ways {
		accepted, answer := false, ""
		for name, hostile := range way.of {
			if !strings.Contains(name, "plain") && !testtier.Row(what, name) {
				continue
			}
			r := h.ask(rt, `{"amount":"`+what+" "+name+`"}`)
			path := strings.ReplaceAll(way.path, "%s", r.ID)
			body := strings.ReplaceAll(way.body(hostile), "BINDING", r.Binding())
			growth.Within(t, mostCPU, mostBytes, func() {
				req := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Idempotency-Key", what+" "+name)
				req.Header.Set("If-Match", version(r))
				req.Header.Set("Authorization", "Bearer "+way.token)
				out := httptest.NewRecorder()
				h.srv.ServeHTTP(out, req)
				accepted, answer = accepted || out.Code < 300, out.Body.String()
				if out.Code >= 500 {
					t.Errorf("%s, %s: %d %.200s", what, name, out.Code, out.Body)
				}
			})
			if t.Failed() {
				t.Fatalf("that was %s: %s", what, name)
			}
		}
		if !accepted {
			t.Fatalf("%s: all are refused, the last one with %.300s", what, answer)
		}
	}
}
