package lint

import (
	"bytes"
	"slices"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/policy/people"
)

// ruleDocuments is the rule of files with several documents; it is
// described in package yamldoc.
const ruleDocuments = "yaml-documents"

// mostDocuments bounds how many documents of a file are looked at.
const mostDocuments = 8

// unread reports a file that could not be read. If it contains several documents, each is linted
// separately according to its content, so that the mistakes in all of them are reported in one run.
// None of them may be used for decisions.
func (w *Worker) unread(file string, src []byte, files *Files, found []diag.Finding, before int) diag.Report {
	i := slices.IndexFunc(found, func(f diag.Finding) bool { return f.Rule == ruleDocuments })
	if i < 0 || before == mostDocuments {
		return w.report(file, nil, nil, found)
	}
	first, rest := nextDocument(src, found)
	if len(rest) == 0 {
		return w.report(file, nil, nil, found)
	}

	r := w.report(file, nil, nil, found[i:i+1])
	for _, part := range [][]byte{first, rest} {
		more := w.part(file, part, files, before+1)
		r.Findings = append(r.Findings, more.Findings...)
		r.Suppressed = append(r.Suppressed, more.Suppressed...)
	}
	diag.Sort(r.Findings)
	return r
}

// part lints one document of a file according to its content.
func (w *Worker) part(file string, src []byte, files *Files, before int) diag.Report {
	switch ContentOf(src) {
	case PolicyContent:
		return w.policy(file, src, before)
	case PeopleContent:
		return w.people(file, src, files, before)
	}

	return w.agent(file, src, files, before)
}

// People checks one directory of people.
func (w *Worker) People(file string, src []byte) diag.Report { return w.people(file, src, nil, 0) }

func (w *Worker) people(file string, src []byte, files *Files, before int) diag.Report {
	d, found := people.Parse(file, src)
	if doc, _ := yamldoc.Parse(file, src, yamldoc.Limits{}); d != nil && doc != nil {
		found = append(found, w.linter.opt.Fleet.owned(doc.Root)...)
	}
	diag.Stamp(found, file)
	return w.unread(file, src, files, found, before)
}

// cutLines splits a text before a line, counted from 1. The second part keeps its line numbers. It
// is empty if the line doesn't exist.
func cutLines(src []byte, line int) (before, after []byte) {
	at := 0
	for range line - 1 {
		next := bytes.IndexByte(src[at:], '\n')
		if next < 0 {
			return src, nil
		}
		at += next + 1
	}

	if at == 0 {
		return src, nil
	}
	return src[:at], append(bytes.Repeat([]byte("\n"), line-1), src[at:]...)
}
