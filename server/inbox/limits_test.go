package inbox_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/server/feed"
	"github.com/assent-dev/assent/server/inbox"
	"github.com/assent-dev/assent/server/quota"
	"github.com/assent-dev/assent/store"
)

// TestTheLargestCallGetsItsPage: the page of a call of 2 MiB says that it can't be approved here;
// calls below the limit are shown in full and can be approved.
func TestTheLargestCallGetsItsPage(t *testing.T) {
	h := open(t)
	quotes := func(n int) string { return `{"a":"` + strings.Repeat(`\"`, n/2) + `"}` }
	for name, c := range map[string]struct {
		args string
		says string
	}{
		"2 MiB of quotes":      {quotes(2<<20 - 100), "Too large to approve here."},
		"2 MiB of look-alikes": {`{"a":"` + strings.Repeat("а ", (2<<20-100)/3) + `"}`, "Too large to approve here."},
		"2 MiB of members": {`{"p":"` + strings.Repeat("p", 1<<20) + `",` + members(40_000) + `"z":1}`,
			"Too large to approve here."},
		"1 MiB of quotes": {quotes(1<<20 - 100), "Everything is shown."},
		"1 MiB of look-alikes": {`{"a":"` + strings.Repeat("а ", (1<<20-100)/3) + `"}`,
			"more values and unusual characters than a page can spell out"},
		"49,000 numbers": {`{"a":[` + strings.Repeat("1,", 49_000) + "1]}", "Everything is shown."},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.ask(tool("big", c.args))
			for _, query := range []string{"", "?show=all"} {
				p := h.browser("alice").get("/requests/" + r.ID + query)
				if p.status != http.StatusOK || len(p.body) > 40<<20 {
					t.Fatalf("%s: status %d, %d bytes", query, p.status, len(p.body))
				}
				if text := shortText(p); query != "" && !strings.Contains(text, c.says) {
					t.Errorf("the page does not say %q: %.2000s", c.says, text)
				}
			}
		})
	}

	r := h.ask(tool("big", quotes(1<<20-200)))
	p := h.browser("alice").get("/requests/" + r.ID + "?show=all")
	fields := p.form(t, "/requests/"+r.ID+"/vote", `value="approve"`)
	h.browser("alice").cast(r.ID, fields)
	if got := h.request(r.ID); got.State != approval.Approved {
		t.Errorf("it is %s", got.State)
	}
}

func members(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"m%d":%d,`, i, i)
	}
	return b.String()
}

// shortText returns the text of a large page without the arguments.
func shortText(p page) string {
	var b strings.Builder
	for _, part := range strings.SplitAfter(p.body, ">") {
		if words, _, _ := strings.Cut(part, "<"); len(words) < 200 {
			b.WriteString(words + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// TestListsDoNotLookThroughEverything: prompts and arguments that are expensive to inspect don't
// make the queue slow, which all people open. A batch that is too large to read is refused before
// it is read.
func TestListsDoNotLookThroughEverything(t *testing.T) {
	h := open(t)
	var ids []string
	for i := range 12 {
		prompt := fmt.Sprint(i) + strings.Repeat("а ", 20_000)
		_, err := h.service.Ask(t.Context(), approval.AskInput{
			Tenant: tenant,
			Asker:  approval.Asker{Token: "desk-runtime"},
			Agent:  "trading-desk",
			Key:    fmt.Sprint("k", i),
			Call:   tool("place_order", fmt.Sprintf(`{"quantity":%d}`, i)),
			Question: approval.Question{
				Asker:   "files",
				Prompt:  prompt,
				Choices: []string{"Yes", "No"},
				Groups:  []string{"risk"},
			},
		})
		must.Do(t, err)
	}

	for i := range 12 {
		ids = append(ids, h.ask(tool("big", fmt.Sprintf(`{"n":%d,"a":"%s"}`, i, strings.Repeat("а ", 80_000)))).ID)
	}

	large := h.ask(tool("big", `{"a":"`+strings.Repeat(`\"`, 1_000_000)+`"}`))
	p := h.browser("alice").get("/?tab=open")
	if len(p.body) > 500_000 {
		t.Errorf("the queue has %d bytes", len(p.body))
	}
	p.says(t, "Not all of it was looked through for hidden and look-alike characters", "Large: ",
		"not looked through here: open it", "Look-alike characters in the tool’s words")
	if !strings.Contains(p.body, "/requests/"+large.ID) {
		t.Error("the large one is not listed")
	}
	batch := h.browser("alice").get("/batch?" + url.Values{"id": ids}.Encode())
	if batch.status != http.StatusBadRequest {
		t.Errorf("status %d", batch.status)
	}
	batch.says(t, "Too much for one page", "Choose fewer of them")
	if few := h.browser("alice").get("/batch?" + url.Values{"id": ids[:3]}.Encode()); few.status != http.StatusOK {
		t.Errorf("status %d", few.status)
	}
}

// TestWhoLeavesGetsNoPage: if the browser has disconnected, nothing is written and no turn is held.
func TestWhoLeavesGetsNoPage(t *testing.T) {
	limits := quota.Default(1<<30, 2)
	shares := quota.New(limits)
	h := openWith(t, func(c *inbox.Config) { c.Shares = shares })
	r := h.ask(tool("big", `{"a":"`+strings.Repeat("а ", 200_000)+`"}`))
	ctx, leave := context.WithCancel(t.Context())
	req := httptest.NewRequest("GET", "/requests/"+r.ID+"?show=all", nil).WithContext(ctx)
	req.AddCookie(&http.Cookie{Name: "who", Value: "alice"})
	out := httptest.NewRecorder()
	leave()
	h.handler.ServeHTTP(out, req)
	if out.Body.Len() > 0 {
		t.Errorf("%d bytes were written for nobody", out.Body.Len())
	}
	for i := range limits.Turns.Total {
		if _, err := shares.Turns.Take(t.Context(), quota.Who{Tenant: fmt.Sprint(i)}, 1, 0); err != nil {
			t.Errorf("a turn is still taken: %v", err)
		}
	}
}

// TestStreamsOfOnePerson: one person's streams are limited to their share, other people still get
// streams, and the page says what to do.
func TestStreamsOfOnePerson(t *testing.T) {
	limits := quota.Default(1<<30, 2)
	limits.Streams = quota.Parts{Total: 5, Tenant: 4, Caller: 3}
	h := openWith(t, func(c *inbox.Config) { c.Shares = quota.New(limits) })
	listen := func(who string) (int, func()) {
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "GET", h.url+"/events", nil)
		must.Do(t, err)
		resp, err := h.browser(who).client.Do(req)
		must.Do(t, err)
		return resp.StatusCode, func() {
			cancel()
			resp.Body.Close()
		}
	}
	var leave func()
	for range 3 {
		var status int
		if status, leave = listen("alice"); status != http.StatusOK {
			t.Fatalf("status %d", status)
		}
	}

	p := h.browser("alice").get("/events")
	if p.status != http.StatusTooManyRequests || !strings.Contains(p.body, "as many pages open") {
		t.Errorf("status %d: %s", p.status, p.body)
	}
	if status, _ := listen("bob"); status != http.StatusOK {
		t.Errorf("another person: status %d", status)
	}
	p = h.browser("carol").get("/events")
	if p.status != http.StatusTooManyRequests || !strings.Contains(p.body, "Others keep") {
		t.Errorf("status %d: %s", p.status, p.body)
	}
	leave()
	testwait.Until(t, "the place to be free again", func() bool {
		status, _ := listen("alice")
		return status == http.StatusOK
	})
}

// counted counts how often requests are listed, which happens once per rendered list.
type counted struct {
	store.Store
	lists, leaves atomic.Int64
}

func (c *counted) Requests(ctx context.Context, tenant string, f approval.Filter) (approval.Page, error) {
	c.lists.Add(1)
	return c.Store.Requests(ctx, tenant, f)
}

func (c *counted) Leaves(ctx context.Context, tenant string, from int64, limit int) ([]ledger.SealedEntry, error) {
	c.leaves.Add(1)
	return c.Store.Leaves(ctx, tenant, from, limit)
}

// TestTheLiveListIsMadeOncePerChange: thirty tabs of one person request the list after a change,
// and it is rendered once. Their streams share one reader.
func TestTheLiveListIsMadeOncePerChange(t *testing.T) {
	counts := &counted{}
	h := openWith(t, func(c *inbox.Config) {
		counts.Store = c.Store
		c.Store, c.Feed = counts, feed.New(counts, slog.New(slog.DiscardHandler))
		c.Service = approval.New(counts, nil, c.Directory, time.Now, rand.Reader, approval.Config{}) // it only reads
	})
	for change := range 3 {
		h.ask(tool("place_order", fmt.Sprintf(`{"quantity":%d}`, change)))
		h.seal()
		counts.lists.Store(0)
		var all sync.WaitGroup
		for range 30 {
			all.Go(func() {
				p := h.browser("alice").get("/queue?tab=open")
				if p.status != http.StatusOK || strings.Count(p.body, `class="request"`) != change+1 {
					t.Errorf("status %d: %s", p.status, p.text())
				}
			})
		}

		all.Wait()
		if n := counts.lists.Load(); n != 1 {
			t.Errorf("the list was made %d times", n)
		}
	}

	h.browser("bob").get("/queue?tab=open")
	if n := counts.lists.Load(); n != 2 {
		t.Errorf("somebody else got alice's list: %d were made", n)
	}
}

// TestABrokenCursorIsNoFault: the page says what is wrong, and no error is logged.
func TestABrokenCursorIsNoFault(t *testing.T) {
	var log strings.Builder
	h := openWith(t, func(c *inbox.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	for _, path := range []string{"/?cursor=x", "/queue?cursor=%00", "/?tab=decided&cursor=Zm9v"} {
		p := h.browser("alice").get(path)
		if p.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: status %d", path, p.status)
		}
		p.says(t, "This page can't be shown", "Cursor: expected next of the page before")
	}

	if log.Len() > 0 {
		t.Errorf("logged: %s", log.String())
	}
}
