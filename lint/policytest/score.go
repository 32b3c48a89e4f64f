package policytest

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/assent-dev/assent/diag"
)

// Write prints a score as text or json (docs/contracts/tests.md).
func (s *Score) Write(w io.Writer, format string) error {
	err := fmt.Errorf("%q is no format, expected text or json", format)
	switch format {
	case "text":
		_, err = io.WriteString(w, s.text())
	case "json":
		err = s.json(w)
	}

	if err != nil {
		return fmt.Errorf("write the score: %w", err)
	}

	return nil
}

// text names each survivor with its place, and the call that shows it.
func (s *Score) text() string {
	var b strings.Builder
	seen, untried := s.counts()
	for _, x := range s.Survivors {
		fmt.Fprintf(&b, "%s: %s\n", at(x.File, x.Range), diag.Printable(x.What))
		if x.Witness == "" {
			b.WriteString("  no call was found that it makes a difference to\n")
			if x.Untried != "" {
				b.WriteString("  not proven: " + x.Untried + ", so it counts as not noticed\n")
			}
			continue
		}
		fmt.Fprintf(&b, "  call   %s\n", diag.Printable(x.Witness))
		fmt.Fprintf(&b, "  before %s\n  after  %s\n", diag.Printable(x.Before), diag.Printable(x.After))
	}

	unproven := ""
	if untried > 0 {
		unproven = fmt.Sprintf("%d not proven, ", untried)
	}
	fmt.Fprintf(
		&b,
		"%s: %d noticed, %d not, %s%d without a known difference: %d%%\n",
		count(s.Killed+len(s.Survivors), "change"),
		s.Killed,
		seen,
		unproven,
		len(s.Survivors)-seen-untried,
		s.Percent(),
	)

	return b.String()
}

type jsonScore struct {
	Changes   int            `json:"changes"`
	Noticed   int            `json:"noticed"`
	Percent   int            `json:"percent"`
	Survivors []jsonSurvivor `json:"survivors"`
}

type jsonSurvivor struct {
	File   string          `json:"file"`
	Line   int             `json:"line"`
	Column int             `json:"column"`
	What   string          `json:"what"`
	Call   json.RawMessage `json:"call,omitempty"`
	Before string          `json:"before,omitempty"`
	After  string          `json:"after,omitempty"`
	// Unproven returns the reason why the change may still make a difference.
	Unproven string `json:"unproven,omitempty"`
}

func (s *Score) json(w io.Writer) error {
	out := jsonScore{
		Changes:   s.Killed + len(s.Survivors),
		Noticed:   s.Killed,
		Percent:   s.Percent(),
		Survivors: []jsonSurvivor{},
	}
	for _, x := range s.Survivors {
		unproven := ""
		if x.Witness == "" {
			unproven = x.Untried
		}
		out.Survivors = append(out.Survivors, jsonSurvivor{
			Unproven: unproven,
			File:     x.File,
			Line:     x.Range.Start.Line,
			Column:   x.Range.Start.Column,
			What:     x.What,
			Call:     json.RawMessage(x.Witness),
			Before:   x.Before,
			After:    x.After,
		})
	}

	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")

	return e.Encode(out)
}
