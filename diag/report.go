package diag

import (
	"fmt"
	"io"
	"strings"
)

// Source returns the text of a file for snippets, or nil if it is not known.
type Source func(file string) []byte

// Suppressed is a finding that a comment in the file suppresses, with the comment's reason.
type Suppressed struct {
	Finding
	Reason string
}

// Report has the findings of one file.
type Report struct {
	File       string
	Findings   []Finding
	Suppressed []Suppressed
}

// Summary counts the findings of a whole run.
type Summary struct {
	Files, Errors, Warnings, Infos, Suppressed int
}

// Add adds the findings of a file's report.
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

// Writer prints reports one by one. It keeps nothing of a file after File returns, so memory
// does not grow with the number of files. Close ends the output and must be called once.
type Writer interface {
	File(Report) error
	Close(Summary) error
}

// Options configures the formats.
type Options struct {
	Color   bool       // text: ANSI colours
	Width   int        // text: columns of the terminal, so that snippets don't wrap; 0 if there is none
	Source  Source     // text: snippets; sarif: fingerprints that don't depend on line numbers
	FailOn  Severity   // junit: least severity that is a failure; lower ones pass with their text as output
	Rules   []RuleInfo // sarif: the rule table
	Tool    string     // sarif: name of the tool
	Version string     // sarif: its version
	HelpURL string     // base of the rule pages; the page of a rule is HelpURL + id + ".md"
}

// Formats lists the names that New accepts, in the order for usage texts.
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
