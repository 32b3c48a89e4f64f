package main

import (
	"fmt"
	"slices"
	"sync"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
)

// checker checks the files of one run with several workers, and prints their reports in the order
// of the walk. Only a window of files is in memory at any time.
type checker struct {
	linter   *lint.Linter
	streams  term.Streams
	out      diag.Writer
	shown    *sources
	failOn   diag.Severity
	progress *progress
	shelf    *shelf

	summary  diag.Summary
	failing  bool // a finding at or above failOn
	unread   bool // something could not be read
	writeErr error
}

// job is one file that a worker checks.
type job struct {
	input
	report diag.Report
	done   chan struct{}
}

func (c *checker) run(inputs []input, workers int) error {
	window := make(chan *job, 4*workers) // in walk order; its size bounds the memory
	todo := make(chan *job)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			w := c.linter.Worker()
			for j := range todo {
				c.check(w, j)
				close(j.done)
			}
		})
	}

	go func() {
		for _, in := range inputs {
			j := &job{input: in, done: make(chan struct{})}
			window <- j
			todo <- j
		}
		close(todo)
		close(window)
	}()
	for j := range window {
		<-j.done
		c.print(j)
	}
	running.Wait()
	c.progress.end()
	return c.finish()
}

// check reads and lints one file.
func (c *checker) check(w *lint.Worker, j *job) {
	if j.err == nil && j.src == nil {
		j.src, j.err = term.ReadFile(j.path, c.streams.In)
	}
	if j.err != nil {
		return
	}
	switch j.kind {
	case policyKind:
		j.report = w.Policy(j.name(), j.src)
	case peopleKind:
		j.report = w.People(j.name(), j.src)
	default:
		j.report = w.Agent(j.name(), j.src, j.files())
	}

	if more := c.shelf.found[key(j.path)]; len(more) > 0 {
		j.report.Findings = append(j.report.Findings, c.linter.Other(j.name(), more).Findings...)
		diag.Sort(j.report.Findings)
	}
}

func (c *checker) print(j *job) {
	c.progress.file()
	if j.err != nil {
		c.unread = true
		c.progress.clear()
		fmt.Fprintf(c.streams.Err, "agf-validate: %v\n", j.err)
		return
	}

	c.show(j.report, j.src)
}

// owners reports references in the owner's files to agents that don't exist. The files were read
// before, except standard input, which can't be read twice.
func (c *checker) owners(f validateFlags, checked []input) error {
	w := c.linter.Worker()
	for _, file := range []string{f.config, f.people} {
		own := func(in input) bool {
			return key(in.path) == key(file) && (file != f.people || in.kind == peopleKind)
		}
		if file == "" || file == "-" || slices.ContainsFunc(checked, own) {
			continue
		}
		src, err := term.ReadFile(file, nil)
		if err != nil {
			return err
		}
		report := c.linter.Owner(file, src)
		if file == f.people {
			report = w.People(file, src)
		}
		if len(report.Findings) > 0 {
			c.show(report, src)
		}
	}

	return nil
}

// show counts and prints one report.
func (c *checker) show(r diag.Report, src []byte) {
	c.count(r)
	c.shown.set(r.File, src)
	if len(r.Findings) > 0 {
		c.progress.clear()
	}
	if err := c.out.File(r); err != nil && c.writeErr == nil {
		c.writeErr = err
	}
}

func (c *checker) count(r diag.Report) {
	c.summary.Add(r)
	c.failing = c.failing || slices.ContainsFunc(
		r.Findings,
		func(f diag.Finding) bool { return f.Severity >= c.failOn },
	)
}

func (c *checker) finish() error {
	if err := c.out.Close(c.summary); err != nil && c.writeErr == nil {
		c.writeErr = err
	}
	switch {
	case c.writeErr != nil:
		return fmt.Errorf("write the findings: %w", c.writeErr)
	case c.unread:
		return term.Exit(term.ExitFailure)
	case c.failing:
		return term.Exit(term.ExitFindings)
	}

	return nil
}

// sources keeps the text of the file that is being printed, for its snippets.
type sources struct {
	file string
	src  []byte
}

func (s *sources) set(file string, src []byte) { s.file, s.src = file, src }

func (s *sources) text(file string) []byte {
	if file == s.file {
		return s.src
	}
	return nil
}

// worst returns the highest severity of the findings, or Info if there are none.
func worst(findings []diag.Finding) diag.Severity {
	var most diag.Severity
	for _, f := range findings {
		most = max(most, f.Severity)
	}
	return most
}
