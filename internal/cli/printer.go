package cli

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

// printer is the one way of data to the terminal. Formats are constants of ours; every argument is escaped, so nothing in it can
// move the cursor, start a line, reorder text or be invisible (threat 5). The first failed write is kept, see done.
type printer struct {
	w     io.Writer
	color bool
	err   error
}

func (a Assent) printer() *printer {
	return &printer{w: a.Out, color: a.OutTerminal && a.env("NO_COLOR") == "" && a.env("TERM") != "dumb"}
}

// style is how a piece of text looks on a terminal with colour.
type style string

const (
	bold   style = "\x1b[1m"
	dim    style = "\x1b[2m"
	red    style = "\x1b[31m"
	green  style = "\x1b[32m"
	yellow style = "\x1b[33m"
	plain  style = ""
	reset        = "\x1b[0m"
)

// styled is an argument of printf with a style. Its text is a string, which is escaped like any other, or ready.
type styled struct {
	style style
	text  any
}

// cell is a plain cell of a table.
func cell(text string) styled { return styled{plain, text} }

// ready is a text in which data is escaped already, such as the message of a decision. It is kept on one line and scrubbed all the
// same.
type ready string

// printf prints a constant format. Arguments may be texts, styled texts, numbers, booleans.
func (p *printer) printf(format string, args ...any) {
	safe := make([]any, len(args))
	for i, arg := range args {
		safe[i] = p.safe(arg)
	}
	p.raw(fmt.Sprintf(format, safe...))
}

func (p *printer) safe(arg any) any {
	switch x := arg.(type) {
	case int, int64, float64, bool:
		return x
	case styled:
		return p.paint(x.style, safeText(x.text))
	}
	return safeText(arg)
}

func safeText(text any) string {
	switch x := text.(type) {
	case string:
		return template.Escape(x)
	case ready:
		return scrubLine(string(x))
	}
	return template.Escape(fmt.Sprint(text))
}

func (p *printer) paint(s style, text string) string {
	if !p.color || s == plain || text == "" {
		return text
	}
	return string(s) + text + reset
}

// raw writes what is safe.
func (p *printer) raw(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, text)
	}
}

// done tells whether everything was written.
func (p *printer) done() error {
	if p.err != nil {
		return fmt.Errorf("write the output: %w", p.err)
	}
	return nil
}

// table prints rows in columns two spaces apart; the last one is left as long as it is. The first row is the heading.
func (p *printer) table(rows [][]styled) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(safeText(cell.text)))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			text := safeText(cell.text)
			line.WriteString(p.paint(cell.style, text))
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)+2))
			}
		}
		p.raw(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// heading makes the first row of a table.
func heading(names ...string) []styled {
	out := make([]styled, len(names))
	for i, n := range names {
		out[i] = styled{dim, n}
	}
	return out
}

// document prints a JSON document as the API gave it, spread over lines.
func (p *printer) document(doc any) error {
	text, err := encodeJSON(doc)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return fmt.Errorf("the document is no JSON: %w", err)
	}
	p.raw(jsonSafe(out.String()) + "\n")
	return p.done()
}

// jsonLine prints a JSON document on one line.
func (p *printer) jsonLine(doc any) error {
	text, err := encodeJSON(doc)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.Compact(&out, text); err != nil {
		return fmt.Errorf("the document is no JSON: %w", err)
	}
	p.raw(jsonSafe(out.String()) + "\n")
	return p.done()
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

// jsonSafe writes every character of a JSON text that must not reach a terminal as its escape.
func jsonSafe(text string) string { return safetext.JSON(text) }

// scrub makes a text safe that may hold text escaped before; lines stay. Unlike template.Escape it can be applied again.
func scrub(text string) string { return safetext.Terminal(text) }

func scrubLine(text string) string { return safetext.TerminalLine(text) }
