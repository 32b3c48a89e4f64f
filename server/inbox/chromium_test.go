package inbox_test

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// TestMain ends the browser that the tests share.
func TestMain(m *testing.M) {
	code := m.Run()
	if err := shared.end(); err != nil {
		fmt.Fprintln(os.Stderr, "Chromium did not end:", err)
		code = 1
	}
	os.Exit(code)
}

// shared is the one real browser of all tests, which the first that
// needs it starts. Each tab is in a profile of its own, so that tests
// can run at the same time.
var shared sharedBrowser

type sharedBrowser struct {
	once    sync.Once
	browser context.Context
	stop    context.CancelFunc
	folder  string
	err     error
}

// chromium is the browser. It fails when there is none: install the package
// chromium, or name it in ASSENT_CHROMIUM.
func chromium(t *testing.T) context.Context {
	t.Helper()
	shared.once.Do(shared.start)
	if shared.err != nil {
		t.Fatal(shared.err)
	}

	return shared.browser
}

func (s *sharedBrowser) start() {
	path := cmp.Or(os.Getenv("ASSENT_CHROMIUM"), "/usr/bin/chromium")
	if _, err := os.Stat(path); err != nil {
		s.err = fmt.Errorf(
			"this test needs Chromium: install the package chromium or set ASSENT_CHROMIUM: %w",
			err,
		)
		return
	}

	if s.folder, s.err = os.MkdirTemp("", "assent-chromium-"); s.err != nil {
		return
	}
	options := append(
		chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.NoSandbox,
		chromedp.UserDataDir(s.folder),
	)
	all, stop := chromedp.NewExecAllocator(context.Background(), options...)
	browser, end := chromedp.NewContext(all)
	s.browser = browser
	s.stop = func() {
		end()
		stop()
	}
	if err := chromedp.Do(s.browser, chromedp.Navigate("about:blank")); err != nil {
		s.err = fmt.Errorf("start Chromium: %w", err)
	}
}

func (s *sharedBrowser) end() error {
	if s.browser == nil {
		return nil
	}
	err := chromedp.Cancel(s.browser)
	s.stop()

	return errors.Join(err, os.RemoveAll(s.folder))
}

// tab is one tab of a signed-in person. Whatever the browser complains
// about fails the test.
type tab struct {
	t   *testing.T
	ctx context.Context
	h   *site
}

func (h *site) tab(t *testing.T, browser context.Context, who string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext(), chromedp.WithNewWindow(true))
	b := &tab{
		t:   t,
		ctx: ctx,
		h:   h,
	}
	complaints := chromedp.Console(ctx)
	b.do(chromedp.Navigate("about:blank"))
	// As if it had the focus: other tests have tabs, too.
	call(b, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	call(b, network.SetCookie, network.SetCookieParams{
		Name:  "who",
		Value: who,
		URL:   h.url,
	})
	t.Cleanup(func() {
		b.complaints(complaints)
		cancel()
	})
	return b
}

// complaints fails the test for everything that the browser has to
// complain about: violations of the content security policy, errors,
// warnings, exceptions. A last message of our own ends the reading.
func (b *tab) complaints(console iter.Seq2[chromedp.ConsoleMessage, error]) {
	const end = "that was all"
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{})
	b.do(chromedp.Navigate(b.h.url + "/assets/icon.svg"))
	eval[chromedp.Void](b, `console.log("`+end+`")`)
	for m, err := range console {
		if err != nil || m.Text == end {
			return
		}
		if m.Type != "debug" && m.Type != "info" && m.Type != "log" || m.Source == "security" {
			b.t.Errorf("the browser complains: %s %s %s", m.Type, m.Text, m.URL)
		}
	}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, 20*time.Second)
	defer stop()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("%v\n%s", err, eval[string](b, "location.href+'\\n'+document.body.innerText"))
	}
}

// eval runs a script of the test in the page.
func eval[T any](b *tab, script string, options ...chromedp.EvaluateOption) T {
	b.t.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script, options...))
	if err != nil {
		b.t.Fatalf("%s: %v", script[:min(200, len(script))], err)
	}
	return out
}

// call sends the browser one command.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, command, params); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) open(path string) { b.t.Helper(); b.do(chromedp.Navigate(b.h.url + path)) }

func (b *tab) click(selector string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(selector)))
}

func (b *tab) press(keys string) { b.t.Helper(); b.do(chromedp.KeyEvent(keys)) }

func (b *tab) size(width, height int64) { b.t.Helper(); b.do(chromedp.EmulateViewport(width, height)) }

func (b *tab) scheme(name string) {
	b.t.Helper()
	call(
		b,
		emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
		},
	)
}

// until waits for a script to be true, across pages.
func (b *tab) until(what, script string) {
	b.t.Helper()
	tick, end := time.NewTicker(20*time.Millisecond), time.After(10*time.Second)
	defer tick.Stop()
	for {
		if ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+script+")")); err == nil && ok {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			b.t.Fatalf("waited for %s:\n%s", what, eval[string](b, "location.href+'\\n'+document.body.innerText"))
		}
	}
}

// armed waits until the page's forms decide, and have taken on the
// colours in which they do.
func (b *tab) armed() {
	b.t.Helper()
	b.until(
		"armed buttons",
		`document.documentElement.classList.contains("scripted") && `+
			`!document.querySelector("[aria-disabled=true]:not([data-after])") && document.getAnimations().length === 0`,
	)
}

// shoot keeps a picture in the folder that ASSENT_SHOTS names.
func (b *tab) shoot(name string) {
	b.t.Helper()
	dir := os.Getenv("ASSENT_SHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// axe runs axe-core, which was put into the page before: every finding
// fails the test. Pages must also not be wider than the window.
func (b *tab) axe(name string) {
	b.t.Helper()
	found := eval[string](
		b,
		`axe.run(document,{resultTypes:["violations"]}).then(r=>JSON.stringify(r.violations.map(v=>({id:v.id,`+
			`help:v.help,nodes:v.nodes.map(n=>n.html+" "+n.failureSummary)}))))`,
		chromedp.EvalAwaitPromise,
	)
	var violations []struct {
		ID, Help string
		Nodes    []string
	}
	if err := json.Unmarshal([]byte(found), &violations); err != nil {
		b.t.Fatal(err)
	}
	for _, v := range violations {
		b.t.Errorf("%s: axe %s: %s\n  %s", name, v.ID, v.Help, strings.Join(v.Nodes, "\n  "))
	}
	if over := eval[float64](
		b,
		"document.documentElement.scrollWidth - document.documentElement.clientWidth",
	); over > 0 {
		b.t.Errorf("%s: the page is %v px wider than the window", name, over)
	}
}

// axeSource is axe-core: the file that ASSENT_AXE names, else the npm
// package, fetched once into the user's cache.
func axeSource(t *testing.T) string {
	t.Helper()
	path := os.Getenv("ASSENT_AXE")
	if path == "" {
		var err error
		if path, err = fetchAxe(t.Context()); err != nil {
			t.Fatalf(
				"this test needs axe-core: set ASSENT_AXE to its axe.min.js, or make `npm pack axe-core@4.14.1` "+
					"work: %v",
				err,
			)
		}
	}

	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("this test needs axe-core: %v", err)
	}
	return string(src)
}

func fetchAxe(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "assent-axe")
	target := filepath.Join(dir, "axe.min.js")
	if _, err := os.Stat(target); err == nil {
		return target, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	pack := exec.CommandContext(ctx, "npm", "pack", "--silent", "axe-core@4.14.1")
	pack.Dir = dir
	out, err := pack.Output()
	if err != nil {
		return "", fmt.Errorf("npm pack: %w", err)
	}
	return target, unpack(filepath.Join(dir, strings.TrimSpace(string(out))), "package/axe.min.js", target)
}

// unpack takes one file out of a package.
func unpack(archive, name, target string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for files := tar.NewReader(z); ; {
		head, err := files.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%s holds no %s", archive, name)
		}
		if err != nil {
			return err
		}
		if head.Name != name {
			continue
		}
		body, err := io.ReadAll(files)
		if err != nil {
			return err
		}
		return os.WriteFile(target, body, 0o644)
	}
}
