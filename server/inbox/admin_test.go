package inbox_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/server/administration"
	"github.com/assent-dev/assent/store"
)

var inputPattern = regexp.MustCompile(`(?s)<input[^>]*>|<textarea.*?</textarea>`)

func TestOnlyAdminsFreeze(t *testing.T) {
	h := open(t)
	bob, carol := h.browser("bob"), h.browser("carol")
	bob.get("/freeze").lacks(t, "Freeze now")
	fields := carol.get("/freeze").form(t, "/freeze", "")
	h.pass(time.Second)
	for k, v := range map[string]string{"agent": "trading-desk", "reason": "looks odd"} {
		fields.Set(k, v)
	}
	theirs := url.Values{"seen": bob.get("/grants").form(t, "/auth/sign-out", "")["seen"]}
	if p := bob.post("/freeze", theirs); p.status == http.StatusOK {
		t.Errorf("somebody froze: %s", p.text())
	}
	carol.post("/freeze", fields).says(
		t,
		"Frozen: everything of agent trading-desk is denied from now on",
		"trading-desk is frozen",
		"looks odd",
	)
	bob.get("/").says(t, "everything of agent trading-desk is denied since")
}

func TestAFreezeIsLiftedByTwoAdministrators(t *testing.T) {
	h := open(t)
	carol := h.browser("carol")
	must.Do(t, h.service.Freeze(t.Context(), tenant, "trading-desk", "bob@example.com", "looks odd"))
	thaw := carol.get("/freeze").form(t, "/thaw", "")
	h.pass(time.Second)
	thaw.Set("reason", "all fine")

	carol.post("/thaw", thaw).says(
		t,
		"Another administrator approves this first.",
		"Lifting it waits for another administrator",
		"trading-desk is frozen",
	)
	carol.post("/thaw", thaw).says(t, "waits for another administrator")
	asked, err := h.store.Requests(t.Context(), tenant, approval.Filter{Agent: administration.Agent})
	if err != nil || len(asked.Requests) != 1 {
		t.Fatal(asked, err)
	}

	id := asked.Requests[0].ID
	carol.get("/requests/"+id).lacks(t, "Approve this call")
	erin := h.browser("erin")
	approve := erin.get("/requests/"+id).form(t, "/requests/"+id+"/vote", "approve")
	erin.later("/requests/"+id+"/vote", approve).says(t, "approved")

	now := carol.get("/freeze")
	now.says(t, "Lifting it is approved")
	thaw = now.form(t, "/thaw", "")
	carol.later("/thaw", thaw).
		says(t, "The freeze of everything of agent trading-desk is lifted.", "Nothing is frozen.")
}

// TestNobodyIsAskedToLiftWhatIsNotFrozen: the page asks for approval only if there is a freeze, and
// an approval does not lift a later freeze.
func TestNobodyIsAskedToLiftWhatIsNotFrozen(t *testing.T) {
	h := open(t)
	carol := h.browser("carol")
	must.Do(t, h.service.Freeze(t.Context(), tenant, "trading-desk", "bob@example.com", "looks odd"))
	thaw := carol.get("/freeze").form(t, "/thaw", "")
	h.pass(time.Second)
	thaw.Set("reason", "all fine")
	must.Do(t, h.service.Thaw(t.Context(), tenant, "trading-desk", "bob@example.com", "over"))
	if p := carol.post("/thaw", thaw); p.status != http.StatusNotFound {
		t.Errorf("got %d: %s", p.status, p.text())
	}
	asked, err := h.store.Requests(t.Context(), tenant, approval.Filter{Agent: administration.Agent})
	if err != nil || len(asked.Requests) != 0 {
		t.Errorf("people are asked: %+v, %v", asked, err)
	}
}

// TestTheGroupThatMayFreezeIsTheTenants: a tenant may name another group than the default one,
// which then has no special rights.
func TestTheGroupThatMayFreezeIsTheTenants(t *testing.T) {
	h := open(t)
	h.admins = func(of string) string {
		if of == tenant {
			return "risk"
		}
		return "admins"
	}
	server := httptest.NewServer(h.newHandler())
	defer server.Close()
	h.url = server.URL
	bob, carol := h.browser("bob"), h.browser("carol")
	carol.get("/freeze").lacks(t, "Freeze now")
	carol.get("/freeze").says(t, "Only people in the group risk can freeze and thaw here.")
	fields := bob.get("/freeze").form(t, "/freeze", "")
	h.pass(time.Second)
	fields.Set("reason", "a drill")
	bob.post("/freeze", fields).says(t, "Frozen:")
}

func TestDeadLetters(t *testing.T) {
	ctx := t.Context()
	h := open(t)
	h.ask(tool("place_order", order))
	h.seal()
	jobs, err := h.store.Claim(ctx, "worker", []string{"webhook:ops"}, h.now(), time.Minute, 10)
	if err != nil || len(jobs) != 1 {
		t.Fatal(jobs, err)
	}
	must.Do(t, h.store.Bury(ctx, "worker", jobs[0].ID, "410 Gone\x1b[31m", h.now()))
	carol := h.browser("carol")
	h.browser("bob").get("/deliveries").lacks(t, "Send again")
	p := carol.get("/deliveries")
	p.says(t, "webhook:ops", `410 Gone\u{1b}[31m`)
	fields := p.form(t, "/deliveries/1/redeliver", "")
	carol.later("/deliveries/1/redeliver", fields).says(t, "It will be sent again.", "Everything arrived")
	if jobs, _ := h.store.Jobs(ctx, tenant, store.Waiting, 10); len(jobs) != 1 {
		t.Error(jobs)
	}
	h.seal()
	export := h.browser("carol").get("/ledger").form(t, "/ledger/export", "")
	if p := h.browser("carol").later("/ledger/export", export); !strings.Contains(p.body, `redelivered`) {
		t.Error("the ledger doesn't say that it was sent again")
	}
}

func TestExportVerifies(t *testing.T) {
	h := open(t)
	h.fill()
	fields := h.browser("carol").get("/ledger").form(t, "/ledger/export", "")
	p := h.browser("carol").later("/ledger/export", fields)
	if p.status != http.StatusOK {
		t.Fatal(p.text())
	}
	if _, err := ledger.Verify(
		bytes.NewReader([]byte(p.body)),
		ledger.VerifyOptions{PublicKey: h.signer.PublicKey()},
	); err != nil {
		t.Error(err)
	}

	h.seal()
	h.browser("carol").get("/ledger").says(t, "exported")
}

// TestExportTakesItsTime: the server's deadline for responses does not apply to the export.
func TestExportTakesItsTime(t *testing.T) {
	h := open(t)
	h.fill()
	hurried := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(-time.Second)); err != nil {
				t.Error(err)
			}
		}
		h.handler.ServeHTTP(w, r)
	}))
	defer hurried.Close()
	h.url = hurried.URL
	fields := h.browser("carol").get("/ledger").form(t, "/ledger/export", "")
	p := h.browser("carol").later("/ledger/export", fields)
	if _, err := ledger.Verify(
		strings.NewReader(p.body),
		ledger.VerifyOptions{PublicKey: h.signer.PublicKey()},
	); err != nil {
		t.Error(err)
	}
}

func TestEventsTellTypeAndSubjectOnly(t *testing.T) {
	h := open(t)
	req, _ := http.NewRequestWithContext(testwait.Context(t), http.MethodGet, h.url+"/events", nil)
	resp, err := h.browser("bob").client.Do(req)
	must.Do(t, err)
	defer resp.Body.Close()
	r := h.ask(tool("place_order", order))
	h.seal()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var got map[string]any
		if err := json.Unmarshal([]byte(data), &got); err != nil || len(got) != 2 || got["subject"] != r.ID ||
			got["type"] != approval.EventOpened {
			t.Fatalf("%s %v", data, err)
		}
		return
	}

	t.Fatal("no event came", lines.Err())
}

func TestEventsEndWithTheReader(t *testing.T) {
	h := open(t)
	ctx, stop := context.WithCancel(t.Context())
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/events", nil)
	req.AddCookie(&http.Cookie{Name: "who", Value: "bob"})
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.handler.ServeHTTP(httptest.NewRecorder(), req)
	}()
	stop()
	testwait.Receive(t, "the stream to end with its reader", done)
}

// TestFavicon: browsers request the icon on their own, signed in or not, and log an error if it is
// missing.
func TestFavicon(t *testing.T) {
	h := open(t)
	resp, err := http.Get(h.url + "/favicon.ico")
	must.Do(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "image/svg+xml" ||
		!bytes.Contains(body, []byte("<svg")) {
		t.Errorf("got %d %v %s, %v", resp.StatusCode, resp.Header, body, err)
	}
}

func TestAssets(t *testing.T) {
	h := open(t)
	body := h.browser("bob").get("/").body
	for _, name := range []string{"inbox.css", "inbox.js", "icon.svg"} {
		at := regexp.MustCompile(`/assets/` + regexp.QuoteMeta(name) + `\?v=[0-9a-f]{12}`).FindString(body)
		for path, cache := range map[string]string{
			at:                           "immutable",
			"/assets/" + name:            "no-cache",
			"/assets/" + name + "?v=old": "no-cache",
		} {
			resp, err := http.Get(h.url + path)
			must.Do(t, err)
			resp.Body.Close()
			if resp.StatusCode != 200 || !strings.Contains(resp.Header.Get("Cache-Control"), cache) {
				t.Errorf("%s: %d %s", path, resp.StatusCode, resp.Header.Get("Cache-Control"))
			}
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+path, nil)
			req.Header.Set("If-None-Match", resp.Header.Get("ETag"))
			again, err := http.DefaultClient.Do(req)
			must.Do(t, err)
			again.Body.Close()
			if again.StatusCode != http.StatusNotModified {
				t.Errorf("%s again: %d", path, again.StatusCode)
			}
		}
	}

	if p := h.browser("bob").get("/assets/..%2finbox.go"); p.status != http.StatusNotFound {
		t.Errorf("%d", p.status)
	}
}

// TestNothingInlineOrRemote: the files contain nothing that the content security policy would
// block.
func TestNothingInlineOrRemote(t *testing.T) {
	bad := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|<script(?:[^>]*)>[^<]` +
		`|javascript:|https?://|@import|url\(|innerHTML|eval\(`)
	names, err := filepath.Glob("*/*.*")
	if err != nil || len(names) < 10 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "testdata") || strings.HasSuffix(name, ".svg") {
			continue
		}
		src, err := os.ReadFile(name)
		must.Do(t, err)
		if m := bad.FindString(string(src)); m != "" {
			t.Errorf("%s holds %q", name, m)
		}
		if lines := strings.Count(string(src), "\n"); name == "assets/inbox.js" && lines >= 340 {
			t.Errorf("the script has %d lines, at most 340 were agreed", lines)
		}
	}
}

func TestLists(t *testing.T) {
	h := open(t)
	h.fill()
	bob := h.browser("bob")
	bob.get("/?target="+url.QueryEscape("tool pay")).says(t, "1 waiting for you", "pay iban hidden amount 1200")
	bob.get("/?agent=nobody").says(t, "Nothing waits for you.", "The list is filtered.")
	bob.get("/?tab=decided").says(t, "Denied", "as discussed")
	for i := range 27 {
		h.ask(tool("big", `{"n":`+strings.Repeat("1", i+1)+`}`))
	}
	p := bob.get("/?tab=open")
	next := regexp.MustCompile(`href="([^"]*cursor=[^"]*)"`).FindStringSubmatch(p.body)
	if strings.Count(p.body, `class="request"`) != 25 || next == nil {
		t.Fatal(p.text())
	}
	if p := bob.get(strings.ReplaceAll(next[1], "&amp;", "&")); strings.Count(p.body, `class="request"`) == 0 {
		t.Error(p.text())
	}
	if p := bob.get("/?cursor=broken"); p.status == 200 {
		t.Error("a broken cursor was taken")
	}
	if p := bob.get("/requests/apr_none"); p.status != http.StatusNotFound {
		t.Error(p.status)
	}
	if p := h.browser("alice").get("/queue"); strings.Contains(p.body, "<html") ||
		!strings.Contains(p.body, `class="request"`) {
		t.Error("the fragment is no fragment")
	}
}
