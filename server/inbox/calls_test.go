package inbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	browsers "github.com/assent-dev/assent/internal/chromium"
	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/peer"
	"github.com/assent-dev/assent/rap/runtime"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/server/inbox"
)

const scannerFile = `schema_version: "1.0.0"
metadata: {id: trading-desk, name: Desk, version: "1.0.0", description: Scans., namespace: acme.tests}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Work., model: any}}
action_space:
  local_tools: [{alias: scan}]
`

// scanner is a real runtime with a scripted tool server, whose calls an inbox shows.
type scanner struct {
	*site
	runtime *runtime.Runtime
	tool    *httptest.Server

	mu    sync.Mutex
	calls map[string]string // bodies of invocations, by their callback URLs
}

var _ rap.Calls = (*scanner)(nil)

func (s *scanner) CallsOf(ctx context.Context, tenant, person string) ([]rap.AgentCalls, error) {
	calls, more, err := s.runtime.CallsOf(ctx, person)
	if len(calls) == 0 {
		return nil, err
	}

	return []rap.AgentCalls{{Agent: "trading-desk", Calls: calls, More: more}}, err
}

func (s *scanner) Watch(ctx context.Context, _ string, changed func()) {
	s.runtime.Watch(ctx, changed)
}

// newScanner makes an inbox that shows calls of a runtime.
func newScanner(t *testing.T) *scanner {
	t.Helper()
	s := &scanner{calls: map[string]string{}}
	s.site = openWith(t, func(c *inbox.Config) {
		c.Arm = time.Millisecond
		c.Calls = s
	})
	s.tool = httptest.NewServer(s)
	callbacks := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.runtime.ServeHTTP(w, r)
		}),
	)
	t.Cleanup(s.tool.Close)
	t.Cleanup(callbacks.Close)
	agent, findings := schema.Parse("scanner.agf.yaml", []byte(scannerFile))
	if agent == nil {
		t.Fatal(findings)
	}
	plan, err := resolve.Compile(agent, nil, resolve.Options{})
	must.Do(t, err)
	s.plan = plan
	s.runtime, err = runtime.New(runtime.Config{
		Common: rap.Common{
			Records:   s.store,
			Namespace: "scanner",
			Key:       make([]byte, 32),
			Now:       s.now,
			Log:       slog.New(slog.NewTextHandler(t.Output(), nil)),
			Poll:      20 * time.Millisecond,
			People:    hold.Service(s.service, s.store, hold.Place{Tenant: tenant, Agent: "trading-desk"}),
			Plan:      func(context.Context) (*resolve.Plan, error) { return plan, nil },
		},
		CallbackURL: callbacks.URL,
		Servers:     []runtime.Server{{Name: "lab <i>1</i>", Peer: peer.Config{URL: s.tool.URL}}},
		Person: func(ctx context.Context, user string) (string, bool, error) {
			p, known, err := s.people.Person(ctx, tenant, user)
			return p.ID, known, err
		},
	})
	must.Do(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.runtime.Run(ctx) // ends with ctx
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})

	return s
}

// ServeHTTP implements the tool server.
func (s *scanner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(
			w,
			`{"name":"lab","endpoint":"http://%s/run","tools":[{"name":"scan","description":"Scans.",`+
				`"inputSchema":{"type":"object"}}]}`,
			r.Host,
		)
		return
	}

	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path == "/run" {
		s.calls[string(body)] = string(body)
	}
}

// sent is a call as the tool received it.
type sent struct {
	Group     string          `json:"group_id"`
	ID        string          `json:"id"`
	URL       string          `json:"callback_url"`
	Arguments json.RawMessage `json:"arguments"`
}

// scans makes the agent call the tool for a user.
func (s *scanner) scans(id, user string) sent {
	s.t.Helper()
	args, err := json.Marshal(map[string]string{"n": id})
	if err != nil {
		s.t.Fatal(err)
	}
	threads, err := s.runtime.As(approval.Asker{Token: "desk-runtime", Person: "dave@example.com"})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := threads.Invoke(s.t.Context(), runtime.Invocation{
		Thread:    "trip-7",
		ID:        id,
		User:      user,
		Operation: "scan",
		Arguments: args,
	}); err != nil {
		s.t.Fatal(err)
	}

	return testwait.Value(
		s.t,
		"the call of "+user,
		func() (out sent, ok bool) {
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, body := range s.calls {
				_ = json.Unmarshal([]byte(body), &out) // the test wrote it
				var args struct{ N string }
				_ = json.Unmarshal(out.Arguments, &args)
				if args.N == id {
					return out, true
				}
			}

			return out, false
		},
	)
}

// says posts a message about a call.
func (s *scanner) says(c sent, message map[string]any) {
	s.t.Helper()
	message["group_id"] = c.Group
	if message["type"] != "view_update" {
		message["id"] = c.ID
		message["tool_call_id"] = c.ID
	}
	text, err := jsonmsg.Marshal(message)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.Post(c.URL, "application/json", strings.NewReader(string(text)))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%.200s: %d", text, resp.StatusCode)
	}
}

func result(text string) map[string]any {
	return map[string]any{"type": "tool_result", "text": text, "subscription": true}
}

func news(text string) map[string]any {
	return map[string]any{"type": "subscription_event", "text": text}
}

func view(kind string, content map[string]any) map[string]any {
	return map[string]any{"type": "view_update", "view_type": kind, "content": content}
}

// TestCallsAreShownToTheirUser: without JavaScript, the user of a call can read what its tool
// reports and shows. Other people can't.
func TestCallsAreShownToTheirUser(t *testing.T) {
	s := newScanner(t)
	bob := s.browser("bob")
	bob.get("/calls").
		says(t, "No agent calls a tool for you", "0 calls go on")
	c := s.scans("c1", "bob")
	bob.get("/calls").
		says(t, "1 call goes on", "scan", "Running", "call c1 in trip-7")
	s.says(c, map[string]any{
		"type":         "user_choice",
		"prompt":       "How deep?",
		"choices":      []string{"deep", "flat"},
		"default":      1,
		"response_url": s.tool.URL + "/answer",
	})
	var asks page
	testwait.Until(t, "the question", func() bool {
		asks = bob.get("/calls")
		return strings.Contains(asks.body, "What is asked about it")
	})
	asks.says(t, "The tool asks something")
	s.says(c, result("begun"))
	for n := range 12 {
		s.says(c, news(fmt.Sprint("line ", n)))
	}
	s.says(c, view("progress", map[string]any{"done": 3, "of": 12}))
	p := bob.get("/calls")
	inOrder(
		t,
		p.text(),
		"scan",
		"Goes on: its tool tells more",
		"trading-desk at lab <i>1</i>",
		"begun",
		"the latest 10; 2 earlier ones are not shown",
		"line 2",
		"line 11",
		"What the tool shows as",
		"progress",
		`{"done":3,"of":12}`,
	)
	for _, other := range []string{"alice", "erin", "carol", "dave"} {
		s.browser(other).
			get("/calls").
			lacks(t, "scan", "line 1", "progress", "trip-7")
	}

	last := news("Error: gone")
	last["final"] = true
	s.says(c, last)
	bob.get("/calls").says(t, "0 calls go on", "Done", "Error: gone")
	s.pass(2 * time.Hour)
	bob.get("/calls").lacks(t, "scan")
	if p := bob.get("/calls/list"); p.status != http.StatusOK || strings.Contains(p.body, "<html") {
		t.Errorf("%d %s", p.status, p.body)
	}
	s.scans("c2", "") // has no user, so it is the token owner's
	s.browser("dave").get("/calls").says(t, "call c2")
	bob.get("/calls").lacks(t, "call c2")
	none := open(t).browser("bob")
	if p := none.get("/calls"); p.status != http.StatusNotFound || strings.Contains(p.body, `href="/calls"`) {
		t.Errorf("without runtimes: %d", p.status)
	}
}

// TestHostileCallsAreTextAlone: names from an agent and texts from a tool are never markup, load
// nothing, hide nothing and are truncated.
func TestHostileCallsAreTextAlone(t *testing.T) {
	s := newScanner(t)
	evil := "</section><img src=\"https://evil.example/p.png\" onerror=x><script>x</script>\u202e\u200b\x1b[2J" +
		"![](https://evil.example/q.png)"
	c := s.scans(evil, "bob")
	s.says(c, map[string]any{
		"type":         "tool_result",
		"subscription": true,
		"content": []map[string]any{
			{"type": "text", "text": evil},
			{"type": "image", "data": "iVBORw0KGgo=", "mediaType": "image/png"},
		},
	})
	s.says(c, news(evil))
	s.says(c, news(strings.Repeat("y", 1<<20)))
	s.says(c, news(strings.Repeat("\u200b\u202e", 1<<18)))
	s.says(c, view(evil, map[string]any{"html": evil, evil: evil}))
	s.says(c, view("long", map[string]any{"text": strings.Repeat("z", 2<<20)}))
	p := s.browser("bob").get("/calls")
	for _, raw := range []string{"<img", "<script>x", "onerror=x>", "\u202e", "\u200b", "\x1b", "iVBORw0KGgo"} {
		if strings.Contains(p.body, raw) {
			t.Errorf("the page holds %q", raw)
		}
	}
	p.says(
		t,
		`\u{202e}`,
		"evil.example/p.png",
		"an image, 12 bytes of base64, which is not shown",
		"characters not shown",
	)
	if len(p.body) > 2<<20 {
		t.Errorf("the page has %d bytes", len(p.body))
	}
}

// TestCallsAreLiveInChromium: the page follows the calls without reloading, on a wide screen and on
// a phone, light and dark, and axe finds no problems.
func TestCallsAreLiveInChromium(t *testing.T) {
	browser, axe := chromium(t), axeSource(t)
	s := newScanner(t)
	b := s.tab(t, browser, "bob")
	b.open("/calls")
	eval[chromedp.Void](b, `window.kept = true`)
	c := s.scans("c1", "bob")
	b.until("the call", `document.querySelector("#list .card")`)
	s.says(c, result("begun"))
	s.says(c, news("line 1 "+strings.Repeat("long", 100)))
	b.until("the event", `document.querySelector(".told")?.innerText.includes("line 1")`)
	s.says(c, view("diff", map[string]any{"html": "<img src=x>" + strings.Repeat("w", 300)}))
	b.until("the view", `document.querySelector("#list").innerText.includes("What the tool shows as diff")`)
	s.says(c, view("diff", map[string]any{"n": 2}))
	b.until("the view of now", `document.querySelector("#list").innerText.includes('{"n":2}') && window.kept`)
	s.says(c, view("wide", map[string]any{"html": "<img src=x>" + strings.Repeat("w", 300)}))
	b.until("the last view", `document.querySelector("#list").innerText.includes("shows as wide")`)
	eval[chromedp.Void](b, axe+";0")
	for _, look := range browsers.Looks("calls") {
		b.in.Show(look, 844)
		b.shoot("calls-" + look.String())
		b.axe(look.String())
	}
}
