package listing

import (
	"encoding/csv"
	"fmt"
	"html"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/assent-dev/assent/internal/safetext"
)

// Formats lists the formats of Write.
func Formats() []string { return []string{"text", "markdown", "html", "csv"} }

// Write writes listings in a format. The same listings are the same
// bytes.
func Write(w io.Writer, format string, agents []Agent) error {
	write := map[string]func(io.Writer, []Agent) error{
		"text":     writeText,
		"markdown": writeMarkdown,
		"html":     writeHTML,
		"csv":      writeCSV,
	}[format]
	if write == nil {
		return fmt.Errorf("unknown format %q, expected one of %s", format, strings.Join(Formats(), ", "))
	}
	return write(w, agents)
}

// head names the columns.
func head() []string {
	return []string{"Target", "Outcome", "When", "By whom", "Deadline", "Without an answer", "Rule", "Where"}
}

// cells are the columns of a row, on one line each and with nothing
// hidden.
func (r *Row) cells() []string {
	at := r.File
	if r.Line > 0 {
		at += ":" + strconv.Itoa(r.Line)
	}
	out := []string{r.Target, r.Outcome, r.When, r.By, r.Within, r.Timeout, r.Rule, at}
	for i := range out {
		out[i] = safetext.Escape(out[i])
	}
	return out
}

// notes say how a listing is read.
func notes() []string {
	return []string{
		"All rules of a target hold together: denied beats asked, asked beats allowed, and everybody whom one of the " +
			"rules that ask names must approve.",
		"A condition asks too when an argument that it tests is missing, null or of another type, unless the runtime's " +
			"owner chose otherwise.",
		"Where a target has a * it is a pattern: a call that several patterns fit meets the rules of all of them.",
		"An agent that another one runs meets the rules of that one as well; they are not repeated here.",
	}
}

func (a *Agent) title() string {
	return safetext.Escape(a.ID) + " " + safetext.Escape(a.Version) + " (" + safetext.Escape(a.File) + ")"
}

func writeText(w io.Writer, agents []Agent) error {
	var out strings.Builder
	for i := range agents {
		a := &agents[i]
		out.WriteString(a.title() + "\n")
		last := ""
		for j := range a.Rows {
			c := a.Rows[j].cells()
			if c[0] != last {
				out.WriteString("  " + c[0] + "\n")
			}
			last = c[0]
			line := "    " + c[1] + " " + c[2]
			if c[3] != "" {
				line += "; by " + c[3] + ", deadline " + c[4] + ", without an answer " + c[5]
			}
			if c[6] != "" {
				c[6] += ", "
			}
			line += " [" + c[6] + c[7] + "]"
			out.WriteString(line + "\n")
		}

		out.WriteString("\n")
	}

	for _, note := range notes() {
		out.WriteString(note + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func writeMarkdown(w io.Writer, agents []Agent) error {
	var out strings.Builder
	row := func(cells []string) { out.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	out.WriteString("# What agents may do\n\n")
	for _, note := range notes() {
		out.WriteString("- " + safetext.Markdown(note) + "\n")
	}
	for i := range agents {
		out.WriteString("\n## " + safetext.Markdown(agents[i].title()) + "\n\n")
		row(head())
		row(strings.Split(strings.Repeat("--- ", len(head())-1)+"---", " "))
		for j := range agents[i].Rows {
			cells := agents[i].Rows[j].cells()
			for k := range cells {
				cells[k] = safetext.Markdown(cells[k])
			}
			row(cells)
		}
	}

	_, err := io.WriteString(w, out.String())
	return err
}

// page is what stands around the tables. It loads nothing and runs
// nothing.
const (
	pageHead = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>What agents may do</title>
<style>
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; margin: clamp(1rem, 4vw, 2rem); }
ul { padding-left: 1.25rem; }
h2 { font-size: 1rem; margin: 2rem 0 .5rem; overflow-wrap: anywhere; }
div { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { border: 1px solid GrayText; padding: .25rem .5rem; text-align: left; vertical-align: top; }
th, td { overflow-wrap: break-word; }
td:nth-child(3) { min-width: 14rem; }
td:nth-child(n+7) { min-width: 11rem; overflow-wrap: anywhere; }
</style>
</head>
<body>
<main>
<h1>What agents may do</h1>
<ul>
`
	pageFoot = `</main>
</body>
</html>
`
)

func writeHTML(w io.Writer, agents []Agent) error {
	var out strings.Builder
	out.WriteString(pageHead)
	for _, note := range notes() {
		out.WriteString("<li>" + html.EscapeString(note) + "</li>\n")
	}
	out.WriteString("</ul>\n")
	for i := range agents {
		title := html.EscapeString(agents[i].title())
		out.WriteString("<h2>" + title + "</h2>\n")
		fmt.Fprintf(&out, "<div role=\"region\" aria-label=\"%s\" tabindex=\"0\">\n<table aria-label=\"%[1]s\">\n", title)
		out.WriteString("<thead>\n<tr>")
		for _, name := range head() {
			out.WriteString(`<th scope="col">` + html.EscapeString(name) + "</th>")
		}
		out.WriteString("</tr>\n</thead>\n<tbody>\n")
		for j := range agents[i].Rows {
			out.WriteString("<tr>")
			for k, cell := range agents[i].Rows[j].cells() {
				open, end := "<td>", "</td>"
				if k == 0 {
					open, end = `<th scope="row">`, "</th>"
				}
				out.WriteString(open + html.EscapeString(cell) + end)
			}

			out.WriteString("</tr>\n")
		}

		out.WriteString("</tbody>\n</table>\n</div>\n")
	}

	_, err := io.WriteString(w, out.String()+pageFoot)
	return err
}

func writeCSV(w io.Writer, agents []Agent) error {
	out := csv.NewWriter(w)
	rows := [][]string{append([]string{"Agent", "Version", "Agent's file"}, head()...)}
	for i := range agents {
		a := &agents[i]
		own := []string{safetext.Escape(a.ID), safetext.Escape(a.Version), safetext.Escape(a.File)}
		for j := range a.Rows {
			rows = append(rows, append(own[:3:3], a.Rows[j].cells()...))
		}
	}

	for _, row := range rows {
		for i := range row {
			row[i] = inert(row[i])
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}

	out.Flush()
	return out.Error()
}

// inert puts an apostrophe before what a spreadsheet would take for a
// formula, in the wide forms of the signs too.
func inert(cell string) string {
	first, _ := utf8.DecodeRuneInString(strings.TrimLeft(cell, " '"))
	if strings.ContainsRune("=+-@＝＋－＠\t\r\n|%", first) && cell != "" {
		return "'" + cell
	}
	return cell
}
