//go:build bars

package candidate

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/assent-dev/assent/client"
)

// bar is the largest ratio of decision times over HTTP, with a candidate and without, at the
// median and at the 99th percentile.
const bar = 1.25

// TestCandidateIsNotFelt runs two real servers, one of them with a candidate, which decide the
// same calls alternately. Each round gives a ratio, and the result is the median of the rounds.
func TestCandidateIsNotFelt(t *testing.T) {
	const rounds, calls = 41, 400
	bin := filepath.Join(t.TempDir(), "assent")
	run(t, "go", "build", "-C", "../..", "-o", bin, "./cmd/assent")
	desk, err := filepath.Abs("../../examples/trading-desk")
	if err != nil {
		t.Fatal(err)
	}
	plain := serve(t, bin, desk)
	compared := serve(t, bin, desk, "--candidate", filepath.Join(desk, "policies"))

	decide(t, plain, calls)
	decide(t, compared, calls)
	var ratios [2][]float64
	for round := range rounds {
		var a, b []time.Duration
		if round%2 == 0 {
			a, b = decide(t, plain, calls), decide(t, compared, calls)
		} else {
			b, a = decide(t, compared, calls), decide(t, plain, calls)
		}
		for i, q := range []float64{0.5, 0.99} {
			ratios[i] = append(ratios[i], float64(at(b, q))/float64(at(a, q)))
		}
		if round == rounds/2 {
			t.Logf("without: p50 %v, p99 %v; with: p50 %v, p99 %v", at(a, 0.5), at(a, 0.99), at(b, 0.5), at(b, 0.99))
		}
	}

	for i, name := range []string{"p50", "p99"} {
		slices.Sort(ratios[i])
		ratio := ratios[i][rounds/2]
		t.Logf("RESULT %s with a candidate: %.2f times that without", name, ratio)
		if ratio > bar {
			t.Errorf("%s: %.2f times, expected %.2f at most", name, ratio, bar)
		}
	}
}

func at(sorted []time.Duration, q float64) time.Duration {
	return sorted[int(q*float64(len(sorted)-1))]
}

// decide decides calls one after another, and returns the sorted durations.
func decide(t *testing.T, c *client.Client, calls int) (took []time.Duration) {
	for n := range calls {
		call := fmt.Sprintf(
			`{"kind":"tool","tool":"execute_trade","args":{"side":"buy","symbol":"ACME","amount":%d,"currency":"USD"}}`,
			n*50,
		)
		began := time.Now()
		if _, err := c.Decide(t.Context(), "trading-desk", []byte(call)); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
	}

	slices.Sort(took)
	return took
}

// serve starts a server with an example, and returns a client for it.
func serve(t *testing.T, bin, desk string, flags ...string) *client.Client {
	t.Helper()
	dir := t.TempDir()
	store := filepath.Join(dir, "assent.db")
	cmd := exec.Command(bin, append([]string{
		"serve", "--json", "--listen", "127.0.0.1:0", "--store", store, "--key", filepath.Join(dir, "assent.key"),
		"--agents", filepath.Join(desk, "agent.agf.yaml"), "--policies", filepath.Join(desk, "policies"),
		"--people", filepath.Join(desk, "people.yaml"),
	}, flags...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})

	lines := bufio.NewScanner(out)
	lines.Scan()
	var ready struct{ API, URL string }
	if err := json.Unmarshal(lines.Bytes(), &ready); err != nil {
		t.Fatalf("%v: %s", err, lines.Text())
	}
	made := run(t, bin, "token", "create", "--json", "--store", store, "--name", "runtime", "--scopes", "decide")
	var token struct{ Secret string }
	if err := json.Unmarshal(made, &token); err != nil {
		t.Fatalf("%v: %s", err, made)
	}
	c, err := client.New(ready.API, token.Secret, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func run(t *testing.T, command ...string) []byte {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v", command, err)
	}
	return out
}
