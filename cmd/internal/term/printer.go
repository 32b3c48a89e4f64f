package term

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/template"
)

// ExpectTyping tells a person at a terminal that the command waits for
// what they type.
func (a Streams) ExpectTyping(what string) {
	if a.InTerminal {
		fmt.Fprintf(a.Err, "assent: type %s; Ctrl-D ends\n", what)
	}
}

// WriteOut writes a text byte for byte. If the output is a terminal, it writes the safe version.
func (a Streams) WriteOut(text string, safe func(string) string) error {
	if a.OutTerminal {
		text = safe(text)
	}
	if _, err := io.WriteString(a.Out, text); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// Shorten shortens a text for a list to its first line and a maximum length, and marks that it did.
// It is not for output that must be complete.
func Shorten(text string, most int) string {
	first, _, more := strings.Cut(text, "\n")
	runes := []rune(first)
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	if more {
		return first + "…"
	}
	return first
}

// Printer is the only way in which data is written to the terminal. Formats are constants of our
// own. Every argument is escaped, so nothing in it can move the cursor, start a line, reorder text
// or be invisible (threat 5). The first write error is kept; see Done.
type Printer struct {
	W     io.Writer
	Color bool
	Err   error
}

func (a Streams) Printer() *Printer {
	return &Printer{W: a.Out, Color: a.OutTerminal && a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb"}
}

// Style is the appearance of text on a terminal with colour.
type Style string

const (
	Bold   Style = "\x1b[1m"
	Dim    Style = "\x1b[2m"
	Red    Style = "\x1b[31m"
	Green  Style = "\x1b[32m"
	Yellow Style = "\x1b[33m"
	Plain  Style = ""
	reset        = "\x1b[0m"
)

// Styled is an argument of Printf with a style. Its text is a string, which is escaped like any
// other, or a Ready.
type Styled struct {
	style Style
	text  any
}

// Of gives a text this style.
func (s Style) Of(text any) Styled { return Styled{style: s, text: text} }

// Ready is a text whose data is already escaped, such as the message of a decision. It is still
// kept on one line and scrubbed.
type Ready string

// Printf prints a constant format. Arguments may be texts, styled
// texts, numbers, booleans.
func (p *Printer) Printf(format string, args ...any) {
	safe := make([]any, len(args))
	for i, arg := range args {
		safe[i] = p.safe(arg)
	}
	p.Raw(fmt.Sprintf(format, safe...))
}

func (p *Printer) safe(arg any) any {
	switch x := arg.(type) {
	case int, int64, float64, bool:
		return x
	case Styled:
		return p.Paint(x.style, safeText(x.text))
	}

	return safeText(arg)
}

func safeText(text any) string {
	switch x := text.(type) {
	case string:
		return template.Escape(x)
	case Ready:
		return ScrubLine(string(x))
	}

	return template.Escape(fmt.Sprint(text))
}

func (p *Printer) Paint(s Style, text string) string {
	if !p.Color || s == Plain || text == "" {
		return text
	}
	return string(s) + text + reset
}

// Raw writes a text that is already safe.
func (p *Printer) Raw(text string) {
	if p.Err == nil {
		_, p.Err = io.WriteString(p.W, text)
	}
}

// Done returns the first write error.
func (p *Printer) Done() error {
	if p.Err != nil {
		return fmt.Errorf("write the output: %w", p.Err)
	}
	return nil
}

// Table is a heading and rows with the same number of cells, which are arguments of Printf.
type Table [][]Styled

// Row adds a row.
func (t *Table) Row(cells ...any) {
	row := make([]Styled, len(cells))
	for i, cell := range cells {
		var ready bool
		if row[i], ready = cell.(Styled); !ready {
			row[i] = Plain.Of(cell)
		}
	}

	*t = append(*t, row)
}

// Heading begins a table.
func Heading(names ...string) *Table {
	row := make([]Styled, len(names))
	for i, n := range names {
		row[i] = Dim.Of(n)
	}

	return &Table{row}
}

// Table prints a table in columns that are two spaces apart. The last column is not padded.
func (p *Printer) Table(t *Table) {
	widths := make([]int, len((*t)[0]))
	for _, row := range *t {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(safeText(cell.text)))
		}
	}

	for _, row := range *t {
		var line strings.Builder
		for i, cell := range row {
			text := safeText(cell.text)
			line.WriteString(p.Paint(cell.style, text))
			line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)+2))
		}

		p.Raw(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// Print prints the result of a command, as a JSON document or for people.
func Print[T any](a Streams, asJSON bool, doc T, show func(*Printer, T)) error {
	p := a.Printer()
	if asJSON {
		return p.Document(doc)
	}
	show(p, doc)
	return p.Done()
}

// Document prints a JSON document of the API on several lines.
func (p *Printer) Document(doc any) error {
	text, err := encodeJSON(doc)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return fmt.Errorf("the document is no JSON: %w", err)
	}
	p.Raw(JSONSafe(out.String()) + "\n")
	return p.Done()
}

// JSONLine prints a JSON document on one line.
func (p *Printer) JSONLine(doc any) error {
	text, err := encodeJSON(doc)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.Compact(&out, text); err != nil {
		return fmt.Errorf("the document is no JSON: %w", err)
	}
	p.Raw(JSONSafe(out.String()) + "\n")
	return p.Done()
}

func encodeJSON(doc any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc); err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}

// JSONSafe writes every character of a JSON text that must not reach a
// terminal as its escape.
func JSONSafe(text string) string { return safetext.JSON(text) }

// Scrub makes a text safe that may contain text that was already escaped. It keeps line breaks.
// Unlike template.Escape it can be applied more than once.
func Scrub(text string) string { return safetext.Terminal(text) }

// ScrubLine is like Scrub for a text that must stay on one line.
func ScrubLine(text string) string { return safetext.TerminalLine(text) }
