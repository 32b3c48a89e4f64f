package mcp_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/mcp/mcptest"
	"github.com/assent-dev/assent/mcp/mcptest/gosdk"
)

func TestMain(m *testing.M) {
	if mcptest.Main() || gosdk.Main() {
		return
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // most of what the tests do is to wait
		panic(err)
	}
	os.Exit(m.Run())
}

// TestConformance runs every row against real servers in processes of
// their own. Rows name themselves: -run Conformance/M15.
func TestConformance(t *testing.T) {
	for id, test := range conformance() {
		t.Run(id, func(t *testing.T) {
			if !measures[id] {
				t.Parallel()
			}
			test(t)
		})
	}
}

// measures are rows that measure this process and so run alone.
var measures = map[string]bool{"M87": true}

// TestConformanceTable compares the tests with the published table: each row has a test, and each
// test a row.
func TestConformanceTable(t *testing.T) {
	text := must.Get(os.ReadFile("testdata/conformance.md"))(t)
	rows := regexp.MustCompile(`(?m)^\| (M\d+) \| .+ \|$`).FindAllStringSubmatch(string(text), -1)
	tests := conformance()
	for i, row := range rows {
		if want := fmt.Sprintf("M%02d", i+1); row[1] != want || tests[want] == nil {
			t.Errorf("row %d is %s, expected %s with its test", i+1, row[1], want)
		}
	}

	if len(rows) != 90 || len(tests) != len(rows) {
		t.Errorf("%d rows, %d tests", len(rows), len(tests))
	}
}

// conformance returns the tests of the rows.
func conformance() map[string]func(*testing.T) {
	return map[string]func(*testing.T){
		"M01": testM01, "M02": testM02, "M03": testM03, "M04": testM04, "M05": testM05,
		"M06": testM06, "M07": testM07, "M08": testM08, "M09": testM09, "M10": testM10,
		"M11": testM11, "M12": testM12, "M13": testM13, "M14": testM14, "M15": testM15,
		"M16": testM16, "M17": testM17, "M18": testM18, "M19": testM19, "M20": testM20,
		"M21": testM21, "M22": testM22, "M23": testM23, "M24": testM24, "M25": testM25,
		"M26": testM26, "M27": testM27, "M28": testM28, "M29": testM29, "M30": testM30,
		"M31": testM31, "M32": testM32, "M33": testM33, "M34": testM34, "M35": testM35,
		"M36": testM36, "M37": testM37, "M38": testM38, "M39": testM39, "M40": testM40,
		"M41": testM41, "M42": testM42, "M43": testM43, "M44": testM44, "M45": testM45,
		"M46": testM46, "M47": testM47, "M48": testM48, "M49": testM49, "M50": testM50,
		"M51": testM51, "M52": testM52, "M53": testM53, "M54": testM54, "M55": testM55,
		"M56": testM56, "M57": testM57, "M58": testM58, "M59": testM59, "M60": testM60,
		"M61": testM61, "M62": testM62, "M63": testM63, "M64": testM64, "M65": testM65,
		"M66": testM66, "M67": testM67, "M68": testM68, "M69": testM69, "M70": testM70,
		"M71": testM71, "M72": testM72, "M73": testM73, "M74": testM74, "M75": testM75,
		"M76": testM76, "M77": testM77, "M78": testM78, "M79": testM79, "M80": testM80,
		"M81": testM81, "M82": testM82, "M83": testM83, "M84": testM84, "M85": testM85,
		"M86": testM86, "M87": testM87, "M88": testM88, "M89": testM89, "M90": testM90,
	}
}
