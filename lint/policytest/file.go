// Package policytest runs the tests that authors write for an agent and its policies
// (`*.test.yaml`, docs/contracts/tests.md): calls with the expected decision, and votes with the
// expected state of the request. It uses the same packages that decide at run time, and measures
// which parts of the rules the calls exercised.
//
// It opens no files by itself: the caller reads the files that a test file names.
package policytest

import (
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/jsonschema"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
	"github.com/assent-dev/assent/value"
)

// Suffix ends the name of a test file.
const Suffix = ".test.yaml"

//go:embed test.schema.json
var testSchema string

// compiled is our JSON Schema, compiled on first use.
var compiled = jsonschema.Embedded("test.schema.json", testSchema)

// JSON returns our JSON Schema (2020-12) of a test file, for editors
// and other validators.
func JSON() []byte { return []byte(testSchema) }

// File is one read test file. Paths are as the file writes them.
type File struct {
	Path      string
	Text      []byte
	Doc       *yamldoc.Document
	Agent     string       `doc:"agent"`
	Parents   []string     `doc:"parents"`
	Policies  []string     `doc:"policies"` // nil: those of Decisions
	Decisions string       `doc:"decisions"`
	People    string       `doc:"people"`
	Calls     []CallTest   `doc:"calls"`
	Never     []Invariant  `doc:"never"`
	Always    []Invariant  `doc:"always"`
	Cases     []PeopleTest `doc:"people_cases"`
}

// CallTest is one call with the expected decision.
type CallTest struct {
	Name   string `doc:"name"`
	Call   *resolve.Call
	Expect Expect `doc:"expect"`
	node   *yamldoc.Node
}

// Expect is the expected decision. Fields that are not set may have any value.
type Expect struct {
	Outcome string   `doc:"outcome"`
	Message *string  `doc:"message"`
	Reasons []Reason `doc:"reasons"`     // these, and perhaps others
	All     []Reason `doc:"all_reasons"` // these, and no others
}

// Reason selects reasons by their fields. An empty field matches any value.
type Reason struct {
	Source string `doc:"source"`
	Policy string `doc:"policy"`
	Rule   string `doc:"rule"`
	Code   string `doc:"code"`
}

// PeopleTest is one call that asks, with votes and the expected state of the request.
type PeopleTest struct {
	Name    string `doc:"name"`
	Call    *resolve.Call
	AskedBy struct {
		Token  string `doc:"token"`
		Person string `doc:"person"`
	} `doc:"asked_by"`
	Votes  []Vote        `doc:"votes"`
	Until  time.Duration `doc:"until"` // since the call was asked; 0: the last vote
	Expect struct {
		Outcome string `doc:"outcome"`
	} `doc:"expect"`
	node *yamldoc.Node
}

// Vote is one answer of a person.
type Vote struct {
	Person  string        `doc:"person"`
	Vote    string        `doc:"vote"`    // approve or deny
	After   time.Duration `doc:"after"`   // since the call was asked
	Reason  string        `doc:"reason"`  // the text that they give
	Refused string        `doc:"refused"` // why it must not count; empty: it must
	node    *yamldoc.Node
}

// Tests returns the number of tests in the file.
func (f *File) Tests() int { return len(f.tests()) }

// Parse reads one test file. It returns nil exactly if a finding stops the load: a test that is
// only partly understood could pass.
func Parse(file string, src []byte) (*File, []diag.Finding) {
	doc, findings := form.Read(file, src)
	r := reader{findings: findings}
	if doc != nil {
		r.add(schema.Violations(doc.Root, compiled())...)
	}
	var f *File
	if doc != nil && !yamldoc.Stops(r.findings) {
		f = &File{Path: file, Text: src, Doc: doc}
		yamldoc.Fill(doc.Root, f)
		r.complete(f)
	}

	findings = yamldoc.Finish(file, r.findings)
	if yamldoc.Stops(findings) {
		return nil, findings
	}

	return f, findings
}

// form reports a document that is not a test file at all with a single finding.
var form = yamldoc.Form{
	Marks: []string{"calls", never, always, "people_cases"},
	Foreign: func(root *yamldoc.Node) diag.Finding {
		return yamldoc.Stop(
			ruleForeign,
			yamldoc.Head(root),
			"this is no test file: it has none of calls, never, always and people_cases",
			`schema_version: "1.0.0", agent, and calls, never, always or people_cases`,
		)
	},
	Unsupported: ruleUnsupportedVersion,
	Newer:       ruleNewerVersion,
}

// reader reads one document and collects what it finds.
type reader struct {
	findings []diag.Finding
	names    map[string]*yamldoc.Node
	noAgent  bool // the file names no agent of its own
}

func (r *reader) add(f ...diag.Finding) { r.findings = append(r.findings, f...) }

// complete reads the parts that the JSON Schema can't check.
func (r *reader) complete(f *File) {
	r.names = map[string]*yamldoc.Node{}
	root := f.Doc.Root
	if r.noAgent = f.Agent == ""; r.noAgent {
		for _, key := range []string{"calls", "people_cases", "parents"} {
			if n := root.Field(key); n != nil {
				r.add(yamldoc.Stop(ruleCase, n.Key.Range, key+" needs the agent that makes the calls",
					"agent: the path of its file"))
			}
		}
		if len(f.Never)+len(f.Always) == 0 {
			r.add(yamldoc.Stop(ruleCase, yamldoc.Head(root), "the file names no agent", "agent: the path of its file"))
		}
	}
	for i := range f.Calls {
		t := &f.Calls[i]
		t.node = root.Get("calls").Items[i]
		t.Call = r.named(t.node)
	}
	r.invariants(root, never, f.Never)
	r.invariants(root, always, f.Always)
	for i := range f.Cases {
		t := &f.Cases[i]
		t.node = root.Get("people_cases").Items[i]
		t.Call = r.named(t.node)
		r.votes(t)
	}

	if len(f.Cases) > 0 && f.People == "" {
		r.add(yamldoc.Stop(
			ruleCase,
			root.Field("people_cases").Key.Range,
			"people_cases need people who answer",
			"people: the path of a people.yaml",
		))
	}
}

// named reads the name and the call of a test.
func (r *reader) named(n *yamldoc.Node) *resolve.Call {
	name := n.Get("name")
	r.name(name.Text, name)
	at := n.Get("call")
	line := []byte(at.Text)
	if at.Kind == yamldoc.Mapping {
		line = appendJSON(nil, at)
	}

	return r.call(line, at.Range)
}

// name keeps the name of a test, which is its own.
func (r *reader) name(text string, at *yamldoc.Node) {
	if first := r.names[text]; first != nil {
		f := yamldoc.Stop(
			ruleCase,
			yamldoc.Head(at),
			fmt.Sprintf("two tests are called %q", text),
			"a name of its own for each test",
		)
		f.Related = []diag.Related{{Range: yamldoc.Head(first), Message: "first here"}}
		r.add(f)
	}

	r.names[text] = at
}

// call reads a call as `assent decide` does.
func (r *reader) call(line []byte, at diag.Range) *resolve.Call {
	call, err := resolve.ParseCall(line, value.Limits{})
	if err != nil {
		r.add(yamldoc.Stop(
			ruleCase,
			at,
			"the call can't be read: "+err.Error(),
			"a call as docs/contracts/decide.md describes it",
		))
	}

	return call
}

// votes sets the position of each vote, and checks that their times are in order.
func (r *reader) votes(t *PeopleTest) {
	last := time.Duration(0)
	for i := range t.Votes {
		v := &t.Votes[i]
		v.node = t.node.Get("votes").Items[i]
		at := v.node.Get("after")
		if at == nil {
			v.After = last
			continue
		}
		r.later(at, last, "of this vote")
		last = v.After
	}

	if at := t.node.Get("until"); at != nil {
		r.later(at, last, "until which to wait")
	}
}

// later checks that a time is not before the previous one.
func (r *reader) later(at *yamldoc.Node, last time.Duration, of string) {
	if d, err := time.ParseDuration(at.Text); err != nil || d < last {
		r.add(yamldoc.Stop(
			ruleCase,
			at.Range,
			fmt.Sprintf("%q is no time %s", at.Text, of),
			"a time such as 5m since the call was asked, not before that of the vote above",
		))
	}
}

// appendJSON writes a node as JSON. Numbers keep their text if it is valid JSON. A document that
// satisfies its schema has only finite numbers.
func appendJSON(dst []byte, n *yamldoc.Node) []byte {
	switch n.Kind {
	case yamldoc.Mapping:
		dst = append(dst, '{')
		for i, f := range n.Fields {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = value.Value{Kind: value.String, Text: f.Key.Text}.AppendJSON(dst)
			dst = appendJSON(append(dst, ':'), f.Value)
		}

		return append(dst, '}')
	case yamldoc.Sequence:
		dst = append(dst, '[')
		for i, item := range n.Items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, item)
		}

		return append(dst, ']')
	case yamldoc.Number:
		return append(dst, n.Num.String()...)
	case yamldoc.Bool:
		return fmt.Append(dst, n.Bool)
	case yamldoc.Null:
		return append(dst, "null"...)
	}

	return value.Value{Kind: value.String, Text: n.Text}.AppendJSON(dst)
}

// String names a reason as a file writes it.
func (r Reason) String() string {
	var parts []string
	for _, p := range [][2]string{{"source", r.Source}, {"policy", r.Policy}, {"rule", r.Rule}, {"code", r.Code}} {
		if p[1] != "" {
			parts = append(parts, p[0]+": "+plain(p[1]))
		}
	}

	return "{" + strings.Join(parts, ", ") + "}"
}
