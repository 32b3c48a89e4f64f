package main

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/lint/listing"
)

func TestPostureContractNamesEveryFlagAndFormat(t *testing.T) {
	testfiles.CheckFlags(t, "posture.md", planning{}.postureCommand().Flags().FlagUsages())
	page := testfiles.Contract(t, "posture.md")
	for _, format := range listing.Formats() {
		if !strings.Contains(page, "`"+format+"`") {
			t.Errorf("%s is not in docs/contracts/posture.md", format)
		}
	}
}

// TestPostureContractNamesEveryColumn: the page documents every column of the table that scripts
// read.
func TestPostureContractNamesEveryColumn(t *testing.T) {
	out, errOut, _ := inRoot(t, "posture", "--format", "csv", "examples/trading-desk")
	head, _, _ := strings.Cut(out, "\n")
	page := testfiles.Contract(t, "posture.md")
	if head == "" {
		t.Fatal(errOut)
	}
	for _, column := range strings.Split(head, ",") {
		if !strings.Contains(page, "| "+column+" |") && !strings.Contains(page, column+", ") &&
			!strings.Contains(page, ", "+column) {
			t.Errorf("the column %s is not in docs/contracts/posture.md", column)
		}
	}
}
