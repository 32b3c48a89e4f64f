package diag

import (
	"fmt"
	"io"
	"strings"
)

// Source returns the text of a file for snippets, nil when it is not known.
type Source func(file string) []byte

// Suppressed is a finding that a comment in the file silences, with the
// reason the comment gives.
type Suppressed struct {
	Finding
	Reason string
}

// Report is what was found in one file.
type Report struct {
	File       string
	Findings   []Finding
	Suppressed []Suppressed
}

// Summary counts what a whole run found.
type Summary struct {
	Files, Errors, Warnings, Infos, Suppressed int
}

// Add counts what a file's report holds.
func (s *Summary) Add(r Report) {
	s.Files++
	s.Suppressed += len(r.Suppressed)
	for _, f := range r.Findings {
		switch f.Severity {
		case Error:
			s.Errors++
		case Warning:
			s.Warnings++
		default:
			s.Infos++
		}
	}
}

// Writer prints reports as they come: it keeps nothing of a file once
// File has returned, so memory stays flat in the number of files. Close
// ends the output and must be called once.
type Writer interface {
	File(Report) error
	Close(Summary) error
}

// Options is what every format may need to know beside the findings.
type Options struct {
	Color   bool       // text: ANSI colours
	Width   int        // text: columns of the terminal, so that snippets don't wrap; 0 when there is none
	Source  Source     // text: snippets; sarif: fingerprints that survive moved lines
	FailOn  Severity   // junit: least severity that is a failure; lower ones pass and say what they have to say
	Rules   []RuleInfo // sarif: the rule table
	Tool    string     // sarif: name of the tool
	Version string     // sarif: its version
	HelpURL string     // base of the rule pages; the page of a rule is HelpURL + id + ".md"
}

// Formats lists the names New accepts, in the order a usage text shows them.
func Formats() []string { return []string{"text", "json", "sarif", "github", "gitlab", "junit"} }

// New returns the writer of a named format.
func New(format string, w io.Writer, o Options) (Writer, error) {
	switch format {
	case "text":
		return NewText(w, o), nil
	case "json":
		return NewJSON(w, o), nil
	case "sarif":
		return NewSARIF(w, o), nil
	case "github":
		return NewGitHub(w, o), nil
	case "gitlab":
		return NewGitLab(w, o), nil
	case "junit":
		return NewJUnit(w, o), nil
	}

	return nil, fmt.Errorf("unknown format %q: want %s", format, strings.Join(Formats(), ", "))
}
