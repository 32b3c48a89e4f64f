package rap_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/assent-dev/assent/internal/must"
)

// TestConformance runs every row against real peers on the loopback interface. Subtests have
// the names of rows: -run Conformance/R15.
func TestConformance(t *testing.T) {
	tests := confTests()
	for _, id := range confTable(t) {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			tests[id](t)
		})
	}
}

// Every row of the table has a test, and every test a row.
func TestConformanceTable(t *testing.T) {
	var want []string
	for _, side := range []string{"R", "T"} {
		for n := range 40 {
			want = append(want, fmt.Sprint(side, n+1))
		}
	}

	table, tests := confTable(t), confTests()
	if !slices.Equal(table, want) || len(tests) != len(want) {
		t.Errorf("%d tests, and the table has %q", len(tests), table)
	}
	for _, id := range table {
		if tests[id] == nil {
			t.Errorf("%s has no test", id)
		}
	}
}

// confTable returns the rows of the table.
func confTable(t *testing.T) (ids []string) {
	text := must.Get(os.ReadFile("testdata/conformance.md"))(t)
	for _, m := range regexp.MustCompile(`(?m)^\| ([RT]\d+) \| .+ \|$`).FindAllStringSubmatch(string(text), -1) {
		ids = append(ids, m[1])
	}
	return ids
}

// confTests returns the tests of the rows: R for a runtime with a scripted tool server, T for a
// gateway with a scripted runtime.
func confTests() map[string]func(*testing.T) {
	return map[string]func(*testing.T){
		"R1": testR1, "R2": testR2, "R3": testR3, "R4": testR4, "R5": testR5, "R6": testR6, "R7": testR7,
		"R8": testR8, "R9": testR9, "R10": testR10, "R11": testR11, "R12": testR12, "R13": testR13,
		"R14": testR14, "R15": testR15, "R16": testR16, "R17": testR17, "R18": testR18, "R19": testR19,
		"R20": testR20, "R21": testR21, "R22": testR22, "R23": testR23, "R24": testR24, "R25": testR25,
		"R26": testR26, "R27": testR27, "R28": testR28, "R29": testR29, "R30": testR30, "R31": testR31,
		"R32": testR32, "R33": testR33, "R34": testR34, "R35": testR35, "R36": testR36, "R37": testR37,
		"R38": testR38, "R39": testR39, "R40": testR40,
		"T1": confT1, "T2": confT2, "T3": confT3, "T4": confT4, "T5": confT5, "T6": confT6, "T7": confT7,
		"T8": confT8, "T9": confT9, "T10": confT10, "T11": confT11, "T12": confT12, "T13": confT13,
		"T14": confT14, "T15": confT15, "T16": confT16, "T17": confT17, "T18": confT18, "T19": confT19,
		"T20": confT20, "T21": confT21, "T22": confT22, "T23": confT23, "T24": confT24, "T25": confT25,
		"T26": confT26, "T27": confT27, "T28": confT28, "T29": confT29, "T30": confT30, "T31": confT31,
		"T32": confT32, "T33": confT33, "T34": confT34, "T35": confT35, "T36": confT36, "T37": confT37,
		"T38": confT38, "T39": confT39, "T40": confT40,
	}
}
