// Package examples_test runs the programs of the examples as separate processes.
package examples_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/assent-dev/assent/agent/internal/replay"
	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testbin"
)

// TestAgents runs the programs as separate processes, in the same way as a reader does.
func TestAgents(t *testing.T) {
	bin := build(t, "a2a", "agui", "custom", "files", "remote", "soup", "standing", "travel")
	files := []string{
		"README.md",
		"a2a/session.txt",
		"agui/session.txt",
		"custom/session.txt",
		"files/session.txt",
		"remote/session.txt",
		"soup/session.txt",
		"standing/session.txt",
		"travel/session.txt",
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) { testSession(t, bin, file) })
	}
	t.Run("once", func(t *testing.T) { testOnce(t, bin) })
	soup, travel := []string{"go run ./examples/soup -model VENDOR:m"}, []string{
		`go run ./examples/travel -model VENDOR:m plan "a trip to Lisbon"`,
		`go run ./examples/travel -model VENDOR:m answer ID-1 yes`,
		`go run ./examples/travel -model VENDOR:m answer ID-2 data '{"name":"Ann Lee"}'`,
	}
	t.Run("soup-openai", func(t *testing.T) { testModel(t, bin, "openai", "/v1", soup) })
	t.Run("soup-anthropic", func(t *testing.T) { testModel(t, bin, "anthropic", "", soup) })
	t.Run("travel-openai", func(t *testing.T) { testModel(t, bin, "openai", "/v1", travel) })
}

// build creates links to the programs in a folder.
func build(t *testing.T, programs ...string) string {
	t.Helper()
	bin := t.TempDir()
	for _, name := range programs {
		must.Do(t, os.Symlink(testbin.Path(t, "agent/examples/"+name), filepath.Join(bin, name)))
	}
	return bin
}

var (
	consoles  = regexp.MustCompile("(?s)```console\n(.*?)```")
	requestID = regexp.MustCompile(`ficc_[\w-]+\.[0-9a-f]{16}`)
	moment    = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d UTC`)
)

// testSession runs the commands of a file one after the other, and compares their output with
// the file. In a page, the commands are in the console blocks.
func testSession(t *testing.T, bin, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &session{home: t.TempDir(), bin: bin}
	var fresh string
	if strings.HasSuffix(file, ".md") {
		fresh = consoles.ReplaceAllStringFunc(string(text), func(block string) string {
			return "```console\n" + s.replay(t, consoles.FindStringSubmatch(block)[1]) + "```"
		})
	} else {
		fresh = s.replay(t, string(text))
	}

	if s.ran < 2 {
		t.Fatalf("%s shows only %d commands", file, s.ran)
	}
	golden.Equal(t, "../"+file, fresh)
}

// session is a series of commands by one person. Request ids are shown as ID-1, ID-2 and so on,
// in their order. All times are shown as the same time.
type session struct {
	home, bin string
	more      []string // environment
	ids       []string
	ran       int
}

func (s *session) replay(t *testing.T, text string) string {
	t.Helper()
	var out strings.Builder
	for _, line := range strings.Split(text, "\n") {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			printed, _ := s.run(t, command)
			out.WriteString(line + "\n" + printed)
		}
	}

	return out.String()
}

// run runs a command, which may exit with 1.
func (s *session) run(t *testing.T, command string) (string, int) {
	t.Helper()
	s.ran++
	printed, code := s.start(t, command)
	return s.shown(printed), code
}

func (s *session) start(t *testing.T, command string) (string, int) {
	t.Helper()
	for i, id := range s.ids {
		command = regexp.MustCompile(fmt.Sprintf(`\bID-%d\b`, i+1)).ReplaceAllString(command, id)
	}
	cmd := exec.Command("bash", "-c", strings.ReplaceAll(command, "go run ./examples/", s.bin+"/"))
	cmd.Env = append(
		[]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "XDG_CACHE_HOME=" + s.home},
		s.more...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Errorf("%s: %v\n%s", command, err, out)
	}
	plain(t, command, out)
	return string(out), cmd.ProcessState.ExitCode()
}

// shown replaces the parts that differ in each run.
func (s *session) shown(printed string) string {
	printed = requestID.ReplaceAllStringFunc(printed, func(id string) string {
		for i, known := range s.ids {
			if known == id {
				return fmt.Sprintf("ID-%d", i+1)
			}
		}
		s.ids = append(s.ids, id)
		return fmt.Sprintf("ID-%d", len(s.ids))
	})
	return moment.ReplaceAllString(printed, "2026-11-21 20:08 UTC")
}

// plain fails the test if the output has characters that control a terminal.
func plain(t *testing.T, command string, printed []byte) {
	t.Helper()
	for _, r := range string(printed) {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar) {
			t.Errorf("%s prints %U", command, r)
		}
	}
}

// testOnce runs the same command in four processes at once. Each process that plans begins a new
// trip. If all four give the same answer, exactly one of them continues the trip.
func testOnce(t *testing.T, bin string) {
	s := &session{home: t.TempDir(), bin: bin}
	s.run(t, `go run ./examples/travel plan "a trip to Lisbon"`)
	if won, printed := s.together(t, `go run ./examples/travel plan "a trip to Rome"`); won != 4 ||
		!strings.Contains(printed, "trip-5") {
		t.Errorf("%d of 4 processes began a trip:\n%s", won, printed)
	}
	for _, command := range []string{
		`go run ./examples/travel answer ID-1 yes`,
		`go run ./examples/travel answer ID-2 data '{"name":"Ann Lee"}'`,
	} {
		won, printed := s.together(t, command)
		if won != 1 {
			t.Fatalf("%s: %d processes went on, want 1:\n%s", command, won, printed)
		}
		s.shown(printed)
	}

	booked, err := os.ReadFile(filepath.Join(s.home, "assent-travel", "bookings.jsonl"))
	if want := `{"flight":"TP 571","price":249,"passenger":{"name":"Ann Lee"}}` + "\n"; err != nil ||
		string(booked) != want {
		t.Errorf("booked %q (%v), want %q", booked, err, want)
	}
}

// together runs a command in four processes at once. It returns how many succeeded, and the
// output of those.
func (s *session) together(t *testing.T, command string) (won int, all string) {
	t.Helper()
	printed, codes := make([]string, 4), make([]int, 4)
	var started sync.WaitGroup
	for i := range codes {
		started.Go(func() { printed[i], codes[i] = s.start(t, command) })
	}
	started.Wait()
	for i, code := range codes {
		if code == 0 {
			won, all = won+1, all+printed[i]
		}
	}
	return won, all
}

// testModel uses a recorded service, which checks every request in full. In the last text of
// the soup example, the model tries to control the terminal and to speak as the guest.
func testModel(t *testing.T, bin, vendor, path string, commands []string) {
	_, name, _ := strings.Cut(t.Name(), "/")
	service := replay.New(t, name+".json")
	prefix := strings.ToUpper(vendor)
	s := &session{
		home: t.TempDir(),
		bin:  bin,
		more: []string{prefix + "_API_KEY=test", prefix + "_BASE_URL=" + service.URL() + path},
	}
	var all strings.Builder
	for _, command := range commands {
		printed, code := s.run(t, strings.ReplaceAll(command, "VENDOR", vendor))
		if code != 0 {
			t.Errorf("%s: exit %d", command, code)
		}
		all.WriteString(printed)
	}

	golden.Equal(t, name+".txt", all.String())
}
