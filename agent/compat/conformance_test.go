package compat_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// TestConformance runs every case file of testdata/conformance, of the folders and files that
// ASSENT_CASES lists, and of the folder that maintainers keep next to the repository, if it
// exists. It prints the result of each file. A case that it can't run counts as failed.
func TestConformance(t *testing.T) {
	files, err := conformanceFiles(os.Getenv("ASSENT_CASES"))
	if err != nil {
		t.Error(err)
	}
	var total tally
	if err != nil {
		total.failed++
	}
	for _, file := range files {
		var one tally
		runCaseFile(t, file, &one)
		report(t, file, one)
		total.passed, total.failed = total.passed+one.passed, total.failed+one.failed
	}

	report(t, "total", total)
}

// tally counts runs. A case has one run for each of its modes.
type tally struct{ passed, failed int }

func report(t *testing.T, what string, n tally) {
	line := fmt.Sprintf("conformance: %s: %d passed, %d failed", what, n.passed, n.failed)
	t.Log(line)
	fmt.Println(line)
}

// conformanceFiles lists the case files. It returns an error if a named place contains none.
func conformanceFiles(named string) ([]string, error) {
	files, err := caseFilesIn(filepath.Join("testdata", "conformance"))
	if err != nil {
		return nil, err
	}
	if shared, err := caseFilesIn(filepath.Join("..", "..", "..", "shared", "conformance")); err == nil {
		files = append(files, shared...)
	}
	for _, place := range filepath.SplitList(named) {
		if place == "" {
			continue
		}
		more, err := caseFilesIn(fromRoot(place))
		if err != nil {
			return files, fmt.Errorf("ASSENT_CASES: %w", err)
		}
		files = append(files, more...)
	}

	return files, nil
}

// fromRoot interprets a relative path from the root of the repository if it doesn't exist in
// the current directory.
func fromRoot(place string) string {
	if _, err := os.Stat(place); err != nil && !filepath.IsAbs(place) {
		return filepath.Join("..", "..", place)
	}
	return place
}

func caseFilesIn(place string) ([]string, error) {
	info, err := os.Stat(place)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{place}, nil
	}
	files, err := filepath.Glob(filepath.Join(place, "*.json"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: there are no cases", place)
	}
	return files, err
}

// runCaseFile runs the cases of a file. A file that can't be read or contains no case is one
// failure.
func runCaseFile(t *testing.T, file string, n *tally) {
	data, err := os.ReadFile(file)
	var cases []*conformanceCase
	var errs []error
	if err == nil {
		cases, errs, err = decodeCases(data)
	}
	if err == nil && len(cases) == 0 {
		err = fmt.Errorf("there are no cases")
	}
	if err != nil {
		n.failed++
		t.Errorf("%s: %v", file, err)
		return
	}
	for i, c := range cases {
		runModes(t, filepath.Base(file)+"/"+c.Name, c, errs[i], n)
	}
}

// runModes runs a case in each mode that it names.
func runModes(t *testing.T, name string, c *conformanceCase, unreadable error, n *tally) {
	modes := c.Modes
	if len(modes) == 0 {
		modes = []string{""}
	}
	for _, mode := range modes {
		ok := t.Run(strings.TrimSuffix(name+"/"+mode, "/"), func(t *testing.T) {
			if unreadable != nil {
				t.Fatal(unreadable)
			}
			runCase(t, c, mode)
		})
		if ok {
			n.passed++
		} else {
			n.failed++
		}
	}
}

var layers = []string{
	"approval_response_binding",
	"approval_not_required_bypass",
	"invocable_bypass",
	"standing_approval_agent",
}

func runCase(t *testing.T, c *conformanceCase, mode string) {
	switch {
	case c.Component == "content_json" && mode == "":
		runContentCase(t, c)
	case mode != "streaming" && mode != "non_streaming":
		t.Fatalf("there is no mode %q of the component %q", mode, c.Component)
	case c.Component == "function_invocation_loop":
		runLoopCase(t, c, mode == "streaming")
	case slices.Contains(layers, c.Component):
		runLayerCase(t, c, mode == "streaming")
	default:
		t.Fatalf("there is no runner for the component %q", c.Component)
	}
}

// TestConformanceRefuses checks that the runner fails for cases that it doesn't understand.
func TestConformanceRefuses(t *testing.T) {
	for _, bad := range []string{
		`[{"name":"a","component":"function_invocation_loop","something_new":1}]`,
		`[{"name":"a","options":{"something_new":1}}]`,
		`[{"name":"a","tools":[{"name":"f","something_new":1}]}]`,
		`[{"name":"a","input_messages":[{"role":"user","contents":[{"type":"something_new"}]}]}]`,
		`[{"name":"a","input_messages":[{"role":"user","contents":[{"type":"text","something_new":1}]}]}]`,
		`[{"name":"a","input_messages":[{"role":"user","contents":[{"type":"approval_request","request_id":"x"}]}]}]`,
	} {
		if _, errs, err := decodeCases([]byte(bad)); err == nil && errs[0] == nil {
			t.Errorf("%s was read", bad)
		}
	}

	if _, err := conformanceFiles(t.TempDir()); err == nil {
		t.Error("an ASSENT_CASES folder without cases went unnoticed")
	}
	if _, err := conformanceFiles(filepath.Join(t.TempDir(), "nowhere")); err == nil {
		t.Error("an ASSENT_CASES folder that is not there went unnoticed")
	}
}

func TestJoinApart(t *testing.T) {
	var updates []*agent.Update
	for _, id := range []string{"", "", "x", "x", "", "y", ""} {
		updates = append(updates, &agent.Update{Role: content.ToolRole, MessageID: id,
			Contents: []content.Content{&content.FunctionResult{}}})
	}

	var got []string
	for _, m := range joinApart(updates) {
		got = append(got, fmt.Sprint(m.ID, len(m.Contents)))
	}
	if want := []string{"2", "x2", "1", "y1", "1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
