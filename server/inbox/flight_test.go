package inbox_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testbin"
	"github.com/assent-dev/assent/internal/testwait"
)

// flightTrip runs the example that books a flight as a reader would: with real binaries, and with
// ann in a real browser.
type flightTrip struct {
	t      *testing.T
	dir    string // directory of all files
	server string // URL
	token  string
	ann    *tab
}

// TestFlightIsBookedInChromium: the example asks two questions at once, gets half of the answers,
// and is killed in between.
func TestFlightIsBookedInChromium(t *testing.T) {
	browser := chromium(t)
	f := &flightTrip{t: t, dir: t.TempDir()}
	link := f.serve()
	f.ann = (&site{t: t, url: f.server}).tab(t, browser, "ann")
	f.ann.open(strings.TrimPrefix(link, f.server))
	f.ann.click("form button")
	f.ann.until("the list", `location.pathname === "/"`)

	first := f.start()
	first.says("waits     for 2 of its answers")
	f.opens("Which seat do you want?")
	f.ann.click(`[name="field.0"][value="3A"]`)
	f.ann.click("#answer-form .decide button")
	f.answered()
	first.says("waits     for 1 of its answers")
	first.kill()

	second := f.start()
	f.opens("Book TP 531 to Lisbon for 249 EUR?")
	page := eval[string](f.ann, "document.body.innerText")
	for _, want := range []string{"What the agent says about it", "the last direct flight", "fares.example.com"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
	f.ann.click(`#choose-form button[value="0"]`)
	f.answered()
	f.opens("Anything that the airline should know?")
	f.ann.do(chromedp.SendKeys(chromedp.CSS(`[name="field.0"]`), "vegetarian"))
	f.ann.click("#answer-form .decide button")
	f.answered()
	if err := second.cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, second.out.String())
	}

	shown := "$ go run ./examples/flight Lisbon   # and killed, with half of the answers\n" + first.out.String() +
		"$ go run ./examples/flight Lisbon\n" + second.out.String()
	golden.Equal(t, "../../../agent/examples/flight/session.txt", shown)
	if !strings.Contains(string(must.Get(os.ReadFile("../../agent/examples/README.md"))(t)), shown) {
		t.Error("examples/README.md shows something else")
	}
	ticket := string(must.Get(os.ReadFile(filepath.Join(f.dir, "trips", "ticket-Lisbon.json")))(t))
	want := `{"flight":"TP 531","to":"Lisbon","seat":"3A","bags":1,"price":249,"note":"vegetarian"}` + "\n"
	if ticket != want {
		t.Errorf("the ticket is %s, want %s", ticket, want)
	}
}

// serve starts the service, and returns the link that signs ann in.
func (f *flightTrip) serve() (link string) {
	f.t.Helper()
	at := func(name string) string { return filepath.Join(f.dir, name) }
	cmd := exec.Command(
		testbin.Path(f.t, "cmd/assent"), "serve", "--json", "--listen", "127.0.0.1:0",
		"--store", at("s.db"), "--key", at("s.key"), "--dev", "--dev-person", "ann",
		"--people", "../../agent/examples/flight/people.yaml", "--agents", "../../agent/examples/flight/flight.agf.yaml",
	)
	var log testwait.Buffer
	cmd.Stderr = &log
	out := bufio.NewScanner(must.Get(cmd.StdoutPipe())(f.t))
	must.Do(f.t, cmd.Start())
	f.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
	if !out.Scan() {
		f.t.Fatalf("the service does not answer:\n%s", log.String())
	}
	var ready struct{ URL, Link string }
	must.Do(f.t, json.Unmarshal(out.Bytes(), &ready))
	f.server = ready.URL
	made := must.Get(exec.Command(
		testbin.Path(f.t, "cmd/assent"), "token", "create", "--store", at("s.db"), "--key", at("s.key"),
		"--name", "flight", "--scopes", "request,read", "--json",
	).Output())(f.t)
	f.token = regexp.MustCompile(`assent_[\w-]{43}`).FindString(string(made))

	return ready.Link
}

// flightLife is one process of the program.
type flightLife struct {
	t   *testing.T
	cmd *exec.Cmd
	out *testwait.Buffer
}

func (f *flightTrip) start() *flightLife {
	f.t.Helper()
	cmd := exec.Command(testbin.Path(f.t, "agent/examples/flight"), "-dir", filepath.Join(f.dir, "trips"), "Lisbon")
	cmd.Env = append(os.Environ(), "ASSENT_SERVER="+f.server, "ASSENT_TOKEN="+f.token)
	out := &testwait.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	must.Do(f.t, cmd.Start())
	f.t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended already
	return &flightLife{f.t, cmd, out}
}

func (l *flightLife) says(text string) {
	l.t.Helper()
	testwait.Until(l.t, "the program to say "+text, func() bool { return strings.Contains(l.out.String(), text) })
}

// kill ends the program with SIGKILL.
func (l *flightLife) kill() {
	l.t.Helper()
	must.Do(l.t, l.cmd.Process.Kill())
	_ = l.cmd.Wait() // killed
}

// opens finds a question by its text in ann's inbox, and opens it.
func (f *flightTrip) opens(prompt string) {
	f.t.Helper()
	testwait.Until(f.t, "the question "+prompt, func() bool {
		f.ann.open("/")
		links := eval[[]string](
			f.ann,
			`[...document.querySelectorAll('a[href*="/requests/qst_"]')].map(a => new URL(a.href).pathname)`,
		)
		for _, path := range links {
			f.ann.open(path)
			if strings.Contains(eval[string](f.ann, "document.body.innerText"), prompt) {
				return true
			}
		}

		return false
	})
	f.ann.armed()
}

func (f *flightTrip) answered() {
	f.t.Helper()
	f.ann.until("the outcome", `document.querySelector(".said.good")`)
}
