package main

import (
	"errors"
	"fmt"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/diag"
)

// unusableError means that a file which the check depends on has errors.
type unusableError struct {
	what     string // people, configuration or settings
	file     string
	src      []byte
	findings []diag.Finding
}

// Error names the file.
func (e *unusableError) Error() string {
	return fmt.Sprintf("the %s in %s can't be used", e.what, e.file)
}

// printUnusable prints the findings if the error is about a file that can't be used. It returns
// every error unchanged.
func (v program) printUnusable(err error) error {
	if e := (*unusableError)(nil); errors.As(err, &e) {
		term.PrintFindings(v.Err, e.findings, map[string][]byte{e.file: e.src})
	}
	return err
}

// keepUnusable adds an error about a file that can't be used to the
// list, and returns every other error.
func keepUnusable(list []*unusableError, err error) ([]*unusableError, error) {
	if e := (*unusableError)(nil); errors.As(err, &e) {
		return append(list, e), nil
	}
	return list, err
}
