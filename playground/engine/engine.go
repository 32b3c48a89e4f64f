// Package engine answers what agf-validate and assent decide answer,
// without files, processes or a clock: one JSON request in, one JSON
// answer out. It is compiled to WebAssembly for the playground, and for
// programs in other languages.
//
// A request brings its files as texts. The answer holds, byte for byte,
// what the command prints that is run with --format json in a directory
// of these files (docs/contracts/engine.md).
package engine

import (
	"bytes"
	"fmt"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/jsonmsg"
)

// The exit codes of the commands.
const (
	ExitOK       = 0
	ExitFindings = 1 // findings, something loosens, or there is such a call
	ExitFailure  = 2 // the request or one of its files can't be used
)

// Request is one question.
type Request struct {
	Kind     Kind
	Files    Files
	Policies []string // directories of Files
	Config   string   // the file of decisions.yaml; "" for none
	People   string   // the file of people.yaml, for Lint; "" for none
	Strict   bool     // unknown fields are errors, for Lint
	Agent    string   // file, for Decide and Ask
	Parents  []string // files, outermost first, for Decide
	Calls    string   // one JSON call a line, for Decide
	New      Files    // the second version, for Diff
	Query    Query    // for Ask
}

// Kind is what a request asks for.
type Kind string

// The kinds of requests, each the command of that name.
const (
	Lint   Kind = "lint"   // agf-validate .
	Decide Kind = "decide" // assent decide
	Diff   Kind = "diff"   // agf-validate diff old new
	Ask    Kind = "ask"    // agf-validate ask
)

// Kinds lists the kinds of requests.
func Kinds() []Kind { return []Kind{Lint, Decide, Diff, Ask} }

// Query is what `agf-validate ask` takes as flags.
type Query struct {
	Tool, Server, Remote, Skill, Delegate string
	Where, Outcome                        string
}

// Answer is what the command of a request would have done.
type Answer struct {
	Exit   int
	Output []byte // what it prints; nil when it can't be run
	// Error is why the exit code is ExitFailure.
	Error string
	// Findings are of files that stop a request, or that it goes on
	// without.
	Findings []diag.Finding
}

// Answer answers a request.
func (r Request) Answer() Answer {
	switch r.Kind {
	case Diff:
		return r.diff()
	case Ask:
		return r.ask()
	}

	return r.Local()
}

// Local answers a request about one version of files, to lint or to
// decide. A program that calls nothing else links no comparison.
func (r Request) Local() Answer {
	switch r.Kind {
	case Lint:
		return r.lint()
	case Decide:
		return r.decide()
	}

	return failed(fmt.Errorf("requests to %s are not answered here: lint or decide", r.Kind))
}

// failed is the answer to what can't be answered.
func failed(err error, findings ...diag.Finding) Answer {
	return Answer{Exit: ExitFailure, Error: err.Error(), Findings: findings}
}

// Run answers a request in JSON. What is no request is answered as what
// can't be used.
func Run(request []byte) []byte {
	return run(request, Request.Answer)
}

// RunLocal is Run for requests that Local answers.
func RunLocal(request []byte) []byte {
	return run(request, Request.Local)
}

func run(request []byte, answer func(Request) Answer) []byte {
	r, err := ParseRequest(request)
	if err != nil {
		return unusable(err).JSON(Lint)
	}
	return answer(r).JSON(r.Kind)
}

// unusable is the answer to what is no request.
func unusable(err error) Answer {
	return failed(fmt.Errorf("the request can't be used: %w", err))
}

// JSON writes the answer to a request of a kind.
func (a Answer) JSON(kind Kind) []byte {
	w := jsonmsg.Append(nil)
	w.Object(func(w *jsonmsg.Writer) {
		w.Name("exit").Int(int64(a.Exit))
		if output := bytes.TrimSpace(a.Output); kind == Decide {
			w.Name("answer").Elements(lines(output))
		} else if len(output) > 0 {
			w.Name("answer").Raw(output)
		}

		w.Optional("error", a.Error)
		if len(a.Findings) > 0 {
			w.Name("findings").Raw(bytes.TrimSpace(findingsJSON(a.Findings)))
		}
	})

	return w.Text
}

// lines are the decisions of an output.
func lines(output []byte) [][]byte {
	if len(output) == 0 {
		return nil
	}
	return bytes.Split(output, []byte("\n"))
}

// findingsJSON is the report of findings as a check writes it.
func findingsJSON(findings []diag.Finding) []byte {
	var b bytes.Buffer
	out := diag.NewJSON(&b, diag.Options{})
	diag.Sort(findings)
	all := diag.Report{Findings: findings}
	_ = out.File(all) // a buffer takes everything
	var sum diag.Summary
	sum.Add(all)
	sum.Files = 0
	_ = out.Close(sum)

	return b.Bytes()
}
