// Package chromium drives a real browser in tests: tabs, what the
// browser complains about, axe-core and pictures.
package chromium

import (
	"archive/tar"
	"cmp"
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

// Main runs the tests of a package and ends their browser. It returns
// the code to exit with.
func Main(m *testing.M, shared *Browser) int {
	code := m.Run()
	if err := shared.end(); err != nil {
		fmt.Fprintln(os.Stderr, "Chromium did not end:", err)
		code = 1
	}
	return code
}

// Browser is the one real browser of all tests of a package, which the
// first that needs it starts. Each tab is in a profile of its own, so
// that tests can run at the same time. The zero value is ready.
type Browser struct {
	once    sync.Once
	browser context.Context
	stop    context.CancelFunc
	folder  string
	err     error
}

// Context is the browser. It fails when there is none: install the
// package chromium, or name it in ASSENT_CHROMIUM.
func (s *Browser) Context(t *testing.T) context.Context {
	t.Helper()
	s.once.Do(s.start)
	if s.err != nil {
		t.Fatal(s.err)
	}

	return s.browser
}

func (s *Browser) start() {
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
		chromedp.Flag("disable-gpu", true), // which software would emulate, in a process of its own
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

// Tab is one tab. Whatever the browser complains about fails the test.
type Tab struct {
	T   *testing.T
	Ctx context.Context
	// Expected reports whether a complaint is part of the test; nil:
	// none is.
	Expected func(complaint string) bool
}

// NewTab opens a tab. When the test ends, the page at a quiet address
// takes the place of what it shows, and the tab is closed.
func NewTab(t *testing.T, browser context.Context, quiet string) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext(), chromedp.WithNewWindow(true))
	b := &Tab{T: t, Ctx: ctx}
	complaints := chromedp.Console(ctx)
	b.Open("about:blank")
	// As if it had the focus: other tests have tabs, too.
	Call(b, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	t.Cleanup(func() {
		b.complaints(complaints, quiet)
		cancel()
	})

	return b
}

// complaints fails the test for everything that the browser has to
// complain about: violations of the content security policy, errors,
// warnings, exceptions. A last message of our own ends the reading.
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

// Do takes steps.
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

// Click clicks on what a selector finds.
func (b *Tab) Click(selector string) {
	b.T.Helper()
	b.Do(chromedp.Click(chromedp.CSS(selector)))
}

// Press presses keys.
func (b *Tab) Press(keys string) { b.T.Helper(); b.Do(chromedp.KeyEvent(keys)) }

// Size makes the window so large, in pixels.
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

// Look is how a page is shown: a colour scheme, and a width in pixels.
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

// Looks returns two looks at a page, which have both schemes and both
// widths. Its name chooses one of the two such pairs. With
// ASSENT_LOOKS=all (`make long`) all four are returned.
func Looks(page string) []Look {
	all := []Look{{"light", 1280}, {"dark", 390}, {"dark", 1280}, {"light", 390}}
	if os.Getenv("ASSENT_LOOKS") == "all" {
		return all
	}
	if crc32.ChecksumIEEE([]byte(page))%2 == 0 {
		return all[:2]
	}
	return all[2:]
}

// Show shows the page in a window of that look and height.
func (b *Tab) Show(l Look, height int64) {
	b.T.Helper()
	b.Scheme(l.Scheme)
	b.Size(l.Width, height)
}

// Until waits for a script to be true, across pages. It evaluates the
// script many times, so a failure shows textContent: innerText would lay
// out the page each time.
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

// Shoot keeps a picture in the folder that ASSENT_SHOTS names.
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

// Axe runs axe-core, which was put into the page before: every finding
// fails the test. Pages must also not be wider than the window.
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

// AxeSource is axe-core: the file that ASSENT_AXE names, else the npm
// package, fetched once into the user's cache.
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
