//go:build clocks

package crashtest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testbin"
	"github.com/assent-dev/assent/server/openapi"
)

// wrongClock is the variable with the error of a process's clock in seconds. Only a binary of
// buildClock reads it.
const wrongClock = "ASSENT_WRONG_CLOCK"

// TestHookWithAWrongClock: the clocks of hooks are wrong and change from one hook to the next, and
// the clock of the inbox is wrong, too. No call runs without an approval, none runs twice, and a
// denial is final.
func TestHookWithAWrongClock(t *testing.T) {
	bin := buildClock(t)
	day := 24 * time.Hour
	offs := []time.Duration{0, -time.Minute, time.Minute, -day, day, -3650 * day, 3650 * day}
	for _, inbox := range offs {
		t.Run("inbox "+inbox.String(), func(t *testing.T) {
			h := hooksBesideInbox(t, bin, off(inbox))
			n, runs := 0, 0
			for _, first := range offs {
				for _, later := range offs {
					for _, body := range []openapi.VoteBody{
						{Verdict: approval.Approve},
						{Verdict: approval.Deny, Reason: "No."},
					} {
						runs += h.clockRound(t, n, body, first, later)
						n++
					}
				}
			}

			t.Logf("%d of %d calls ran; half of them were denied", runs, n)
			if runs == 0 {
				t.Error("no call ran, whatever its clocks: this shows nothing")
			}
		})
	}
}

// clockRound makes two hooks with wrong clocks ask about call n, and presents the same call by
// hooks with other clocks after it was answered. It returns the number of runs.
func (h *hooks) clockRound(t *testing.T, n int, body openapi.VoteBody, first, later time.Duration) (runs int) {
	t.Helper()
	id, approved := "", false
	for _, by := range []time.Duration{first, later} {
		said := h.hookAt(t, n, by)
		if allows(said) {
			t.Fatalf("call %d, clock off by %s, before anybody answered: %s", n, by, said)
		}
		id = cmp.Or(regexp.MustCompile(`apr_[0-9a-z]+`).FindString(said), id)
	}
	if id != "" { // otherwise the request expired immediately
		h.shows(t, id, first, later)
		outcome, err := answer(t.Context(), h.people, id, body)
		approved = err == nil && outcome == approval.VoteApproved
	}

	for _, by := range []time.Duration{later, first, 0, -first, -later} {
		if allows(h.hookAt(t, n, by)) {
			runs++
		}
	}
	if runs > 1 || runs == 1 && !approved {
		t.Errorf("call %d, clocks off by %s and %s: approved %t, and it ran %d times", n, first, later, approved, runs)
	}

	return runs
}

// shows fails the test if a request was opened by neither of the two clocks, because then no clock
// was wrong and nothing was tested.
func (h *hooks) shows(t *testing.T, id string, clocks ...time.Duration) {
	t.Helper()
	r := must.Get(h.people.Request(t.Context(), id))(t)
	for _, by := range clocks {
		if time.Until(r.Created.Add(-by)).Abs() < 30*time.Second {
			return
		}
	}
	t.Fatalf("%s was opened at %s: by none of the clocks that are off by %s", id, r.Created, clocks)
}

// off returns the environment of a process whose clock is wrong.
func off(by time.Duration) string { return fmt.Sprintf("%s=%d", wrongClock, int64(by.Seconds())) }

// hookAt runs the hook of call n with a wrong clock until it ends, and returns its output.
func (h *hooks) hookAt(t *testing.T, n int, by time.Duration) string {
	t.Helper()
	h.env = []string{off(by)}
	cmd, out := h.begin(t, n)
	var exited *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exited) {
		t.Fatal(err)
	}

	return out.String()
}

// buildClock compiles the binary under test with a standard library whose clock is wrong by the
// value of a variable.
func buildClock(t *testing.T) string {
	t.Helper()
	root := must.Get(exec.Command("go", "env", "GOROOT").Output())(t)
	source := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text := must.Get(os.ReadFile(source))(t)
	const begins = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(text), begins) != 1 {
		t.Fatalf("%s: expected one %q", source, begins)
	}
	changed := strings.Replace(string(text), begins, begins+"\tsec += wrong\n", 1) + `
var wrong = func() (seconds int64) {
	text, _ := syscall.Getenv("` + wrongClock + `")
	negative := len(text) > 0 && text[0] == '-'
	for _, digit := range text {
		if digit >= '0' && digit <= '9' {
			seconds = 10*seconds + int64(digit-'0')
		}
	}
	if negative {
		return -seconds
	}
	return seconds
}()
`
	changed = strings.Replace(changed, "import (\n", "import (\n\t\"syscall\"\n", 1)

	dir := t.TempDir()
	file, overlay := filepath.Join(dir, "time.go"), filepath.Join(dir, "overlay.json")
	list := must.Get(json.Marshal(map[string]any{"Replace": map[string]string{source: file}}))(t)
	must.Do(t, os.WriteFile(file, []byte(changed), 0o600))
	must.Do(t, os.WriteFile(overlay, list, 0o600))
	return testbin.Path(t, "cmd/assent", "-overlay="+overlay)
}
