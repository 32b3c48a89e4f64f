package diag

import (
	"encoding/xml"
	"io"
	"strconv"
	"strings"
)

// NewJUnit prints the XML that build servers read as test results: a testsuite for each file,
// and a testcase with a unique name for each finding. Findings at or above Options.FailOn fail;
// lower ones pass with their text as output; suppressed findings are skipped with their reason.
// A file without findings is one testcase that passes.
func NewJUnit(w io.Writer, o Options) Writer { return &junitWriter{output: newOutput(w, o)} }

type junitWriter struct {
	output
	open bool
}

func (j *junitWriter) File(r Report) error {
	j.begin()
	list := entries(r, true)
	failures, skipped := 0, 0
	for _, e := range list {
		switch {
		case e.suppressed:
			skipped++
		case e.Severity >= j.opt.FailOn:
			failures++
		}
	}

	j.print(
		"  <testsuite",
		attr("name", r.File),
		attr("tests", strconv.Itoa(max(1, len(list)))),
		attr("failures", strconv.Itoa(failures)),
		attr("errors", "0"),
		attr("skipped", strconv.Itoa(skipped)),
		">\n",
	)
	if len(list) == 0 {
		j.print("    <testcase", attr("classname", r.File), attr("name", "no findings"), "/>\n")
	}
	names := map[string]int{}
	for _, e := range list {
		j.testcase(e, names)
	}
	j.print("  </testsuite>\n")
	return j.done()
}

func (j *junitWriter) begin() {
	if !j.open {
		j.print("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n")
		j.open = true
	}
}

// testcase prints one finding. Consumers identify cases by class and name, so repeated names
// are numbered.
func (j *junitWriter) testcase(e entry, names map[string]int) {
	name := e.Rule
	if e.Range.Start.Line > 0 {
		name += " at " + strings.TrimPrefix(place("", e.Range), ":")
	}
	key := e.File + "\x00" + name
	if names[key]++; names[key] > 1 {
		name += " (" + strconv.Itoa(names[key]) + ")"
	}
	j.print("    <testcase", attr("classname", e.File), attr("name", name), ">\n      ")
	body := place(e.File, e.Range) + ": " + e.sentence()
	switch {
	case e.suppressed:
		j.print("<skipped", attr("message", e.reason), "/>")
	case e.Severity < j.opt.FailOn:
		j.print("<system-out>", escapeXML(body), "</system-out>")
	default:
		j.print(
			"<failure",
			attr("type", e.Severity.String()),
			attr("message", e.Message),
			">",
			escapeXML(body),
			"</failure>",
		)
	}

	j.print("\n    </testcase>\n")
}

// Close ends the document.
func (j *junitWriter) Close(Summary) error {
	j.begin()
	j.print("</testsuites>\n")
	return j.done()
}

func attr(name, value string) string { return " " + name + `="` + escapeXML(Printable(value)) + `"` }

func escapeXML(s string) string {
	var b strings.Builder
	xml.EscapeText(&b, []byte(s)) // a strings.Builder does not fail
	return b.String()
}
