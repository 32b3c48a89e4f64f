// Package chromium drives a real browser in tests: it opens tabs, collects the browser's
// complaints, runs axe-core and takes screenshots.
package chromium

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/assent-dev/assent/internal/testwait"
)

// Main runs the tests of a package and stops their browser. It returns the exit code.
func Main(m *testing.M, shared *Browser) int {
	code := m.Run()
	if err := shared.end(); err != nil {
		fmt.Fprintln(os.Stderr, "Chromium did not end:", err)
		code = 1
	}
	return code
}

// Browser is the real browser that all tests of a package share. The first test that needs it
// starts it. Each tab has its own profile, so that tests can run in parallel. The zero value is
// ready to use.
type Browser struct {
	once    sync.Once
	browser context.Context
	stop    context.CancelFunc
	folder  string
	err     error
}

// Context returns the context of the browser. It fails the test if there is no browser: install the
// package chromium-headless-shell or chromium, or set ASSENT_CHROMIUM to its path.
func (s *Browser) Context(t *testing.T) context.Context {
	t.Helper()
	s.once.Do(s.start)
	if s.err != nil {
		t.Fatal(s.err)
	}

	return s.browser
}

func (s *Browser) start() {
	path := os.Getenv("ASSENT_CHROMIUM")
	if path == "" {
		// The same browser without a window of its own takes less than half of the processor time. The command of this
		// name in /usr/bin is a script that starts it as a child, which would outlive the script.
		path = "/usr/lib/chromium/chromium-headless-shell"
		if _, err := os.Stat(path); err != nil {
			path = "/usr/bin/chromium"
		}
	}
	if _, err := os.Stat(path); err != nil {
		s.err = fmt.Errorf(
			"this test needs Chromium: install chromium-headless-shell or chromium, or set ASSENT_CHROMIUM: %w",
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
		chromedp.Flag("disable-gpu", true), // which software would emulate, in a process of its own
		// A new window would load the parts of the browser's own window that are pages, and start a process for the
		// next page, each time.
		chromedp.Flag("disable-features", "Translate,BlinkGenPropertyTrees,PreloadTopChromeWebUI,"+
			"SpareRendererForSitePerProcess,MediaRouter,OptimizationHints"),
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

func (s *Browser) end() error {
	if s.browser == nil {
		return nil
	}
	err := chromedp.Cancel(s.browser)
	s.stop()

	return errors.Join(err, os.RemoveAll(s.folder))
}

// Tab is one tab. Every complaint of the browser fails the test.
type Tab struct {
	T   *testing.T
	Ctx context.Context
	// Expected reports whether a complaint is part of the test. If it is nil, no complaints are
	// expected.
	Expected func(complaint string) bool
}

// NewTab opens a tab. When the test ends, the tab is navigated to the quiet address and closed.
func NewTab(t *testing.T, browser context.Context, quiet string) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext(), chromedp.WithNewWindow(true))
	b := &Tab{T: t, Ctx: ctx}
	complaints := chromedp.Console(ctx)
	b.Open("about:blank")
	// Emulate focus, because other tests have tabs, too.
	Call(b, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	t.Cleanup(func() {
		b.complaints(complaints, quiet)
		cancel()
	})

	return b
}

// complaints fails the test for every complaint of the browser: violations of the content security
// policy, errors, warnings and exceptions. It writes a message of its own to mark the end of the
// console.
func (b *Tab) complaints(console iter.Seq2[chromedp.ConsoleMessage, error], quiet string) {
	const end = "that was all"
	Call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{})
	b.Open(quiet)
	Eval[chromedp.Void](b, `console.log("`+end+`")`)
	for m, err := range console {
		if err != nil || m.Text == end {
			return
		}
		if b.Expected != nil && b.Expected(m.Text) {
			continue
		}
		if m.Type != "debug" && m.Type != "info" && m.Type != "log" || m.Source == "security" {
			b.T.Errorf("the browser complains: %s %s %s", m.Type, m.Text, m.URL)
		}
	}
}

// Do runs steps.
func (b *Tab) Do(steps ...chromedp.Action[chromedp.Void]) {
	b.T.Helper()
	ctx, stop := context.WithCancel(b.Ctx)
	defer stop()
	defer context.AfterFunc(testwait.Context(b.T), stop)()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.T.Fatalf("%v\n%s", err, Eval[string](b, "location.href+'\\n'+document.body.innerText"))
	}
}

// Eval runs a script of the test in the page.
func Eval[T any](b *Tab, script string, options ...chromedp.EvaluateOption) T {
	b.T.Helper()
	out, err := chromedp.Run(b.Ctx, chromedp.Evaluate[T](script, options...))
	if err != nil {
		b.T.Fatalf("%s: %v", script[:min(200, len(script))], err)
	}
	return out
}

// Call sends the browser one command.
func Call[P, R any](b *Tab, command cdp.Command[P, R], params P) {
	b.T.Helper()
	if _, err := chromedp.Call(b.Ctx, command, params); err != nil {
		b.T.Fatal(err)
	}
}

// Open shows the page of an address.
func (b *Tab) Open(url string) { b.T.Helper(); b.Do(chromedp.Navigate(url)) }

// Click clicks the element of a selector.
func (b *Tab) Click(selector string) {
	b.T.Helper()
	b.Do(chromedp.Click(chromedp.CSS(selector)))
}

// Press presses keys.
func (b *Tab) Press(keys string) { b.T.Helper(); b.Do(chromedp.KeyEvent(keys)) }

// Size sets the size of the window in pixels.
func (b *Tab) Size(width, height int64) { b.T.Helper(); b.Do(chromedp.EmulateViewport(width, height)) }

// Scheme sets the colour scheme that pages see: light or dark.
func (b *Tab) Scheme(name string) {
	b.T.Helper()
	Call(
		b,
		emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
		},
	)
}

// Look is a way to display a page: a colour scheme, and a width in pixels.
type Look struct {
	Scheme string
	Width  int64
}

func (l Look) String() string {
	if l.Width < 600 {
		return l.Scheme + "-narrow"
	}
	return l.Scheme + "-wide"
}

// Looks returns the look that the name of the page selects. With ASSENT_LOOKS=all (`make long`) it returns all four.
func Looks(page string) []Look {
	all := []Look{{"light", 1280}, {"dark", 390}, {"dark", 1280}, {"light", 390}}
	if os.Getenv("ASSENT_LOOKS") == "all" {
		return all
	}
	one := crc32.ChecksumIEEE([]byte(page)) % uint32(len(all))
	return all[one : one+1]
}

// Show shows the page in a window of that look and height.
func (b *Tab) Show(l Look, height int64) {
	b.T.Helper()
	b.Scheme(l.Scheme)
	b.Size(l.Width, height)
}

// Until waits until a script returns true, even if the page changes. It evaluates the script many
// times, so a failure shows textContent: innerText would compute the layout of the page each time.
func (b *Tab) Until(what, script string) {
	b.T.Helper()
	script = "(" + script + `) ? "" : location.href + "\n" + document.body.textContent.slice(0, 20_000)`
	testwait.Value(b.T, what, func() (page string, holds bool) {
		page, err := chromedp.Run(b.Ctx, chromedp.Evaluate[string](script))
		if err != nil {
			return err.Error(), false // between two pages
		}
		return page, page == ""
	})
}

// Shoot stores a screenshot in the directory ASSENT_SHOTS.
func (b *Tab) Shoot(name string) {
	b.T.Helper()
	dir := os.Getenv("ASSENT_SHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.Ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.T.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		b.T.Fatal(err)
	}
}

// Axe runs axe-core, which must have been loaded into the page. Every finding fails the test. The
// page must also not be wider than the window.
func (b *Tab) Axe(name string) {
	b.T.Helper()
	found := Eval[string](
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
		b.T.Fatal(err)
	}
	for _, v := range violations {
		b.T.Errorf("%s: axe %s: %s\n  %s", name, v.ID, v.Help, strings.Join(v.Nodes, "\n  "))
	}
	if over := Eval[float64](
		b,
		"document.documentElement.scrollWidth - document.documentElement.clientWidth",
	); over > 0 {
		b.T.Errorf("%s: the page is %v px wider than the window", name, over)
	}
}

// AxeSource returns the source of axe-core: the file ASSENT_AXE, or the npm package, which is
// downloaded once to the user's cache.
func AxeSource(t *testing.T) string {
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

// unpack extracts one file of a package.
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
