// Package engine gives the answers of agf-validate and `assent decide` without files, processes
// or a clock. It takes one JSON request and returns one JSON answer. It is compiled to
// WebAssembly for the playground and for programs in other languages.
//
// A request contains its files as texts. The answer contains exactly the bytes that the command
// prints when it runs with --format json in a directory of these files
// (docs/contracts/engine.md).
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
	ExitFindings = 1 // findings, a loosened rule, or a call that was asked about
	ExitFailure  = 2 // the request or one of its files can't be used
)

// Request is one question.
type Request struct {
	Kind     Kind
	Files    Files
	Policies []string // directories of Files
	Config   string   // the decisions.yaml file, or ""
	People   string   // the people.yaml file, for Lint, or ""
	Strict   bool     // unknown fields are errors, for Lint
	Agent    string   // file, for Decide and Ask
	Parents  []string // files, outermost first, for Decide
	Calls    string   // one JSON call per line, for Decide
	New      Files    // the second version, for Diff
	Query    Query    // for Ask
}

// Kind is the kind of a request.
type Kind string

// The kinds of requests. The comments name the corresponding commands.
const (
	Lint   Kind = "lint"   // agf-validate .
	Decide Kind = "decide" // assent decide
	Diff   Kind = "diff"   // agf-validate diff old new
	Ask    Kind = "ask"    // agf-validate ask
)

// Kinds lists the kinds of requests.
func Kinds() []Kind { return []Kind{Lint, Decide, Diff, Ask} }

// Query has the values that `agf-validate ask` takes as flags.
type Query struct {
	Tool, Server, Remote, Skill, Delegate string
	Where, Outcome                        string
}

// Answer is the result that the command of a request would have.
type Answer struct {
	Exit   int
	Output []byte // the printed output; nil if the command can't run
	// Error is the reason for ExitFailure.
	Error string
	// Findings are in files that prevent an answer, or that the answer is given without.
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

// Local answers a request to lint or to decide, which has only one version of files. A program
// that uses only Local doesn't link the code for comparisons.
func (r Request) Local() Answer {
	switch r.Kind {
	case Lint:
		return r.lint()
	case Decide:
		return r.decide()
	}

	return failed(fmt.Errorf("requests to %s are not answered here: lint or decide", r.Kind))
}

// failed returns the answer to a request that can't be answered.
func failed(err error, findings ...diag.Finding) Answer {
	return Answer{Exit: ExitFailure, Error: err.Error(), Findings: findings}
}

// Run answers a JSON request. If the text isn't a valid request, the answer says that it can't
// be used.
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

// unusable returns the answer to a text that isn't a valid request.
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

// lines returns the decisions in an output.
func lines(output []byte) [][]byte {
	if len(output) == 0 {
		return nil
	}
	return bytes.Split(output, []byte("\n"))
}

// findingsJSON writes findings in the same form as a check.
func findingsJSON(findings []diag.Finding) []byte {
	var b bytes.Buffer
	out := diag.NewJSON(&b, diag.Options{})
	diag.Sort(findings)
	all := diag.Report{Findings: findings}
	_ = out.File(all) // writing to a buffer never fails
	var sum diag.Summary
	sum.Add(all)
	sum.Files = 0
	_ = out.Close(sum)

	return b.Bytes()
}
