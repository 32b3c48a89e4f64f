package main

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/assent-dev/assent/internal/chromium"
	"github.com/assent-dev/assent/internal/must"
)

// TestMain makes the playground, which the tests share, and ends their
// browser.
func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "playground-")
	if err == nil {
		err = run("../../..", folder)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the playground can't be made:", errors.Join(err, os.RemoveAll(folder)))
		os.Exit(1)
	}
	made = folder
	code := chromium.Main(m, &shared)
	if err := os.RemoveAll(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

var (
	shared chromium.Browser
	made   string // the folder of the playground
)

// served is a web server with the folder of the playground. It counts the requests.
type served struct {
	url      string
	requests atomic.Int64
}

func serve(t *testing.T, dir string) *served {
	t.Helper()
	s := &served{}
	files := http.FileServer(http.Dir(dir))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Browsers sometimes request this, even if a page names an icon.
		if r.URL.Path == "/favicon.ico" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		s.requests.Add(1)
		if r.URL.Path == "/quiet" {
			fmt.Fprint(w, `<link rel="icon" href="data:,">quiet`) // without it, a browser may request /favicon.ico
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL

	return s
}

// tab is a browser tab with the playground.
type tab struct {
	*chromium.Tab
	s *served
}

// patient gives the page's engine a minute for an answer, for machines
// that are busy with other tests.
func patient(t *testing.T, dir string) {
	t.Helper()
	page := filepath.Join(dir, "index.html")
	text := string(must.Get(os.ReadFile(page))(t))
	changed := strings.Replace(text, `data-limit="5000"`, `data-limit="60000"`, 1)
	if changed == text {
		t.Fatal("the page names no limit")
	}
	must.Do(t, os.WriteFile(page, []byte(changed), 0o600))
}

// open shows the page with a fragment, and waits for the engine.
func (s *served) open(t *testing.T, browser context.Context, fragment string) *tab {
	t.Helper()
	b := &tab{Tab: chromium.NewTab(t, browser, s.url+"/quiet"), s: s}
	b.Open(s.url + "/" + fragment)
	b.Until("the engine", `document.documentElement.dataset.ready === "true"`)
	b.answered()

	return b
}

// answered waits until the engine has answered.
func (b *tab) answered() {
	b.T.Helper()
	b.Until("an answer", `document.documentElement.dataset.busy === "false"`)
}

// run executes a script, which may send a question to the engine.
func (b *tab) run(script string) {
	b.T.Helper()
	chromium.Eval[chromedp.Void](b.Tab, script)
}

// choose opens one of the four tabs.
func (b *tab) choose(name string) {
	b.T.Helper()
	b.Click("#tab-" + name)
	b.answered()
}

// put changes a field as a person does, and waits for the answer.
func (b *tab) put(id, text string) {
	b.T.Helper()
	b.run(fmt.Sprintf(`{const e=document.getElementById(%q);e.value=%q;document.documentElement.dataset.busy="true";`+
		`e.dispatchEvent(new Event("input",{bubbles:true}));e.dispatchEvent(new Event("change",{bubbles:true}))}`, id, text))
	b.answered()
}

// text returns the visible text of a part of the page.
func (b *tab) text(selector string) string {
	b.T.Helper()
	return chromium.Eval[string](b.Tab, fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ""`, selector))
}

// says fails the test unless a part of the page contains every text.
func (b *tab) says(selector string, texts ...string) {
	b.T.Helper()
	got := b.text(selector)
	for _, want := range texts {
		if !strings.Contains(got, want) {
			b.T.Errorf("%s says %q, expected %q", selector, got, want)
		}
	}
}

// TestPage tests the page in a real browser. The program of the page is built once.
func TestPage(t *testing.T) {
	t.Parallel()
	patient(t, made)
	browser := shared.Context(t)
	for name, test := range map[string]func(*testing.T, *tab){
		"answers":        testAnswers,
		"looks":          testLooks,
		"links":          testLinks,
		"guards":         testGuards,
		"nothing leaves": testNothingLeaves,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, serve(t, made).open(t, browser, ""))
		})
	}
}

// testGuards checks the requests that the page refuses, all in one tab. The page still works
// after each of them.
func testGuards(t *testing.T, b *tab) {
	testTimeLimit(t, b)
	testSecrets(t, b)
	testHostileLinks(t, b)
}

func testAnswers(t *testing.T, b *tab) {
	loaded := b.s.requests.Load()
	b.says("#out-check", "No findings", "in 7 files", "4 findings silenced")

	b.put("example", "3")
	b.says("#out-check", "1 error", "agent.agf.yaml:")
	b.Click("#findings .go")
	at := chromium.Eval[string](b.Tab, `{const e=document.activeElement;e.id+" "+e.value.slice(e.selectionStart,e.selectionEnd)}`)
	if !strings.HasPrefix(at, "text ") || len(at) < 8 {
		t.Errorf("the finding leads to %q", at)
	}
	if marked := b.text("#gutter .error"); marked == "" {
		t.Error("no line is marked")
	}

	b.put("example", "0")
	b.choose("decide")
	b.says("#out-decide", "Ask", "Execute a trade of 20000 USD?", "2 people of risk", "30m", "amount gt 15000 is true",
		"policies/trade-controls.policy.yaml:7:5")
	b.put("call", "{\"kind\":\"tool\",\n\"tool\":\"get_quote\"}")
	b.says("#out-decide", "Allow", "nobody is asked")
	b.put("call", `{"kind":"tool","tool":"wire_funds"}`)
	b.says("#out-decide", "Deny", "Cash is moved by treasury")
	b.put("call", `{"kind":"tool"`)
	b.says("#out-decide", "Deny", "unreadable_call")
	b.put("call", "")
	b.says("#out-decide", "Write a call as JSON")

	b.choose("compare")
	b.says("#out-compare", "Mixed", "no longer asks", "10000 < amount ≤ 15000", "first:77")
	b.Click("#changes .go:last-child")
	b.Click("#changes td:last-child .go")
	b.answered()
	b.says("#out-decide", "Allow") // by the second version, which the last click selected

	b.choose("ask")
	b.says("#out-ask", "No", "not one such call runs unasked")
	b.put("where", "amount<500")
	b.says("#out-ask", "Yes", `"execute_trade"`)
	b.put("where", "amount>")
	b.says("#out-ask", "Where")

	testKeyboard(t, b)
	b.choose("check")
	b.put("text", "metadata: [")
	b.says("#out-check", "yaml-syntax")
	b.choose("decide")
	b.says("#out-decide", "The agent agent.agf.yaml can't be used", "yaml-syntax")
	b.choose("compare")
	b.says("#out-compare", "New side: the agent new/agent.agf.yaml can't be compared", "agent.agf.yaml:1:11")
	if n := b.s.requests.Load(); n != loaded {
		t.Errorf("%d requests after the page was loaded", n-loaded)
	}
}

// testLooks runs axe-core on every tab: light and dark, and in the width of a desktop and of a
// phone.
func testLooks(t *testing.T, b *tab) {
	b.run(chromium.AxeSource(t) + ";0")
	for _, look := range chromium.Looks("playground") {
		b.Show(look, 850)
		for _, name := range []string{"check", "decide", "compare", "ask"} {
			b.run(`document.getElementById("tab-` + name + `").click()`)
			b.answered()
			b.Axe(name + " " + look.String())
			b.Shoot("playground-" + name + "-" + look.String())
		}

		b.run(`{const e=document.getElementById("example");e.value="3";e.dispatchEvent(new Event("change"))}`)
		b.run(`document.getElementById("tab-check").click()`)
		b.answered()
		b.Axe("findings " + look.String())
		b.Shoot("playground-findings-" + look.String())
		b.run(`{const e=document.getElementById("example");e.value="0";e.dispatchEvent(new Event("change"))}`)
	}
}

// testKeyboard uses the page without a mouse.
func testKeyboard(t *testing.T, b *tab) {
	b.run(`document.getElementById("tab-check").focus()`)
	b.Press("\u0303") // the right arrow key
	b.answered()
	if got := chromium.Eval[string](b.Tab, `document.activeElement.id`); got != "tab-decide" {
		t.Errorf("the right arrow leads to %q", got)
	}
	b.says("#out-decide", "The decision as JSON")
}

func testLinks(t *testing.T, b *tab) {
	const hostile = `<img src=x onerror="window.hit=1"><script>window.hit=1</script>`
	b.put("text", "# "+hostile+"\n"+chromium.Eval[string](b.Tab, `document.getElementById("text").value`))
	b.choose("decide")
	b.put("call", `{"kind":"tool","tool":"`+strings.ReplaceAll(hostile, `"`, "'")+`"}`)
	b.Click("#share")
	b.Until("a link", `!document.getElementById("shared").hidden`)
	link := chromium.Eval[string](b.Tab, `document.getElementById("link").value`)
	_, fragment, _ := strings.Cut(link, "#")
	if len(fragment) < 1000 || len(fragment) > 8192 {
		t.Fatalf("the link has %d characters", len(fragment))
	}

	other := b.s.open(t, shared.Context(t), "#"+fragment)
	other.says("#said", "This comes from a link")
	other.says("#out-decide", "Deny", "<img src=x")
	got := chromium.Eval[string](other.Tab, `document.getElementById("text").value`)
	if !strings.HasPrefix(got, "# "+hostile) {
		t.Errorf("the file begins with %.80q", got)
	}
	if chromium.Eval[bool](other.Tab, `!!window.hit || document.querySelector("main img, main script") !== null`) {
		t.Error("a text of the link became part of the page")
	}

	b.put("text", strings.Repeat("# "+random(3000)+"\n", 1)+random(9000))
	b.run(`document.getElementById("share").click()`)
	b.Until("a warning", `document.getElementById("anyway")`)
	b.Click("#anyway")
	b.Until("a refusal", `document.getElementById("said").innerText.includes("too much for a link")`)
}

// random returns a text that doesn't compress.
func random(n int) string {
	var b strings.Builder
	x := uint32(1)
	for range n {
		x = x*1664525 + 1013904223
		b.WriteByte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"[x>>16%62])
	}
	return b.String()
}

func testSecrets(t *testing.T, b *tab) {
	b.choose("decide")
	for _, secret := range []string{
		"AKIA" + "IOSFODNN7EXAMPLE",
		"ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789",
		"-----BEGIN RSA " + "PRIVATE KEY-----",
		"xoxb-" + "1234567890-abcdef",
		"https://user:" + "hunter22@db.example",
		"password: " + "correct-horse",
		"Tq7ZkP0vX2mB9sLdRw4NcYf6HgJe1uAo",
	} {
		b.put("call", `{"kind":"tool","tool":"get_quote","args":{"note":"`+secret+`"}}`)
		b.Click("#share")
		b.Until("a warning of "+secret, `document.getElementById("anyway")`)
		if chromium.Eval[bool](b.Tab, `location.hash !== "" || !document.getElementById("shared").hidden`) {
			t.Errorf("%s is in a link before anybody said so", secret)
		}
		b.run(`document.getElementById("said").replaceChildren()`)
	}

	b.Click("#share")
	b.Until("a warning", `document.getElementById("anyway")`)
	b.Click("#anyway")
	b.Until("a link", `!document.getElementById("shared").hidden`)
	for i := range choices() {
		b.put("example", fmt.Sprint(i))
		b.Click("#share")
		b.Until("a link of an example, without a warning", `!document.getElementById("shared").hidden`)
	}
}

// fragment encodes any text as the fragment of a link.
func fragment(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	return "#1." + base64.RawURLEncoding.EncodeToString(b.Bytes())
}

func testHostileLinks(t *testing.T, b *tab) {
	for name, tt := range map[string]struct{ link, want string }{
		"huge":        {"#1." + strings.Repeat("A", 100_000), "at most 8192 are read"},
		"no base64":   {"#1.<script>alert(1)</script>", "no text that this page has written"},
		"no version":  {"#hello", "no text that this page has written"},
		"no deflate":  {"#1.AAAA", "can't be unpacked"},
		"bomb":        {fragment(t, strings.Repeat(" ", 5_000_000)), "unpacks to more than 256 KB"},
		"no JSON":     {fragment(t, "hello"), "holds no JSON"},
		"no object":   {fragment(t, "[1]"), "was not made by this page"},
		"other":       {fragment(t, `{"v":2}`), "was not made by this page"},
		"no files":    {fragment(t, `{"v":1,"files":{}}`), "1 to 40 files"},
		"bad name":    {fragment(t, `{"v":1,"files":{"../x":""}}`), "no usable name"},
		"proto":       {fragment(t, `{"v":1,"files":{"__proto__":""}}`), "no usable name"},
		"no text":     {fragment(t, `{"v":1,"files":{"a.agf.yaml":[1]}}`), "a file is no text"},
		"bad second":  {fragment(t, `{"v":1,"files":{"a.agf.yaml":""},"second":7}`), "1 to 40 files"},
		"not encoded": {"#%00%ff", "no text that this page has written"},
	} {
		b.run(fmt.Sprintf(`document.getElementById("said").replaceChildren();location.hash=%q`, tt.link))
		b.Until(name, `document.getElementById("said").innerText !== ""`)
		got := b.text("#said")
		if !strings.Contains(got, "The link can't be opened") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q", name, got)
		}
	}

	b.run(fmt.Sprintf(`location.hash=%q`, fragment(t, `{"v":1,"files":{"a.agf.yaml":"x"},"tab":"nothing","query":[],"call":{"a":1}}`)))
	b.Until("a page that works", `document.getElementById("out-check").innerText.includes("error")`)
	b.put("example", "0")
	b.says("#out-check", "No findings")
}

// testTimeLimit: a question that takes too long is ended, and the page still works.
func testTimeLimit(t *testing.T, b *tab) {
	loaded := b.s.requests.Load()
	b.run(`document.documentElement.dataset.limit = "0"`)
	b.run(`document.getElementById("tab-compare").click()`)
	b.Until("a sentence", `document.getElementById("out-compare").innerText.includes("stopped and started again")`)
	b.run(`document.documentElement.dataset.limit = "60000"`)
	b.choose("check")
	b.says("#out-check", "No findings")
	if n := b.s.requests.Load(); n != loaded {
		t.Errorf("%d requests after the page was loaded", n-loaded)
	}
}

// testNothingLeaves: the browser itself blocks every request of the page and of its workers.
func testNothingLeaves(t *testing.T, b *tab) {
	b.Expected = func(complaint string) bool {
		return strings.Contains(complaint, "Content Security Policy") || strings.Contains(complaint, "'Trusted")
	}
	before := b.s.requests.Load()
	for name, script := range map[string]string{
		"fetch":    `fetch("/x").then(()=>"sent",()=>"refused")`,
		"beacon":   `new Promise(r=>{addEventListener("securitypolicyviolation",()=>r("refused"),{once:true});navigator.sendBeacon("/x","y")})`,
		"picture":  `new Promise(r=>{const i=new Image();i.onload=()=>r("sent");i.onerror=()=>r("refused");i.src="/x.png"})`,
		"sheet":    `new Promise(r=>{const l=document.createElement("link");l.rel="stylesheet";l.onload=()=>r("sent");l.onerror=()=>r("refused");l.href="https://elsewhere.example/x.css";document.head.append(l)})`,
		"form":     `new Promise(r=>{addEventListener("securitypolicyviolation",()=>r("refused"),{once:true});const f=document.createElement("form");f.action="/x";document.body.append(f);f.submit()})`,
		"markup":   `new Promise(r=>{try{document.body.innerHTML="<b>x</b>";r("sent")}catch{r("refused")}})`,
		"a script": `new Promise(r=>{try{new Worker("playground.js");r("sent")}catch{r("refused")}})`,
	} {
		if got := chromium.Eval[string](b.Tab, `Promise.race([`+script+`,new Promise(r=>setTimeout(r,3000,"no answer"))])`,
			chromedp.EvalAwaitPromise); got != "refused" {
			t.Errorf("%s: %s", name, got)
		}
	}

	if n := b.s.requests.Load(); n != before {
		t.Errorf("%d requests went out", n-before)
	}
}
