package rap_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"
)

// confRow is one row of the conformance tables: a situation and what is
// to be done in it.
type confRow struct {
	ID    string
	Title string // as in testdata/conformance.md
	Run   func(*testing.T)
}

// confProcess names the variable that makes this test binary one of the
// processes that rows about crashes kill.
const confProcess = "ASSENT_RAP_CONFORMANCE_PROCESS"

func TestMain(m *testing.M) {
	processes := map[string]func() error{
		"runtime": runtimeProcess,
		"gateway": gatewayProcess,
		"load":    loadProcess,
	}
	run := processes[os.Getenv(confProcess)]
	if run == nil {
		os.Exit(m.Run())
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestConformance runs every row against real peers on the loopback
// interface. Rows name themselves: -run Conformance/R15.
func TestConformance(t *testing.T) {
	for _, row := range slices.Concat(runtimeRows(), gatewayRows()) {
		t.Run(row.ID, row.Run)
	}
}

// TestConformanceTable holds the rows to the table that people read:
// none is missing here or there.
func TestConformanceTable(t *testing.T) {
	table := confTable(t)
	seen := map[string]bool{}
	for _, row := range slices.Concat(runtimeRows(), gatewayRows()) {
		if seen[row.ID] {
			t.Errorf("%s stands twice", row.ID)
		}
		seen[row.ID] = true
		if table[row.ID] != row.Title {
			t.Errorf("%s is %q, but the table has %q", row.ID, row.Title, table[row.ID])
		}
	}

	for side, rows := range map[string]int{"R": 39, "T": 39} {
		for n := range rows {
			if id := fmt.Sprint(side, n+1); table[id] == "" || !seen[id] {
				t.Errorf("%s is not in the table (%q), or has no test (%t)", id, table[id], seen[id])
			}
		}
	}

	if len(table) != 39+39 {
		t.Errorf("the table has %d rows", len(table))
	}
}

func confTable(t *testing.T) map[string]string {
	text, err := os.ReadFile("testdata/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\| ([RT]\d+) \| (.+) \|$`).FindAllStringSubmatch(string(text), -1) {
		out[m[1]] = m[2]
	}
	return out
}
