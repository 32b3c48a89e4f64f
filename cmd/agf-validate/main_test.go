package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/golden"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"agf-validate": main, testfiles.PeakCommand: testfiles.PeakMain})
}

// TestScripts drives the real main through the scripts in testdata.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		UpdateScripts:       golden.Update(),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// TestAuthorsLearnOfStagesThatNobodyCanFill: --people reports the groups and stages of policies for
// which there are not enough people.
func TestAuthorsLearnOfStagesThatNobodyCanFill(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/people",
		UpdateScripts:       golden.Update(),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}
