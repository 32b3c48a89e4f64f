package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/assent-dev/assent/internal/safetext"
)

// Formats lists the formats of NewPrinter.
func Formats() []string { return []string{"text", "json", "markdown"} }

// NewPrinter returns a printer for a format.
func NewPrinter(format string, w io.Writer) (Printer, error) {
	switch format {
	case "text":
		return &pages{w: w, page: textPage{}}, nil
	case "markdown":
		return &pages{w: w, page: markdownPage{}}, nil
	case "json":
		return &jsonPrinter{w: w}, nil
	}

	return nil, fmt.Errorf("unknown format %q, expected one of %s", format, strings.Join(Formats(), ", "))
}

// jsonPrinter writes one object. The calls come first, because they are found first.
type jsonPrinter struct {
	w     io.Writer
	begun bool
}

func (p *jsonPrinter) Found(f Found) error {
	text, err := encode(f)
	if err != nil {
		return err
	}
	open := ",\n  "
	if !p.begun {
		p.begun = true
		open = "{\"found\":[\n  "
	}
	_, err = io.WriteString(p.w, open+text)
	return err
}

func (p *jsonPrinter) Close(r *Report) error {
	text, err := encode(r)
	if err != nil {
		return err
	}
	open := "\n],"
	if !p.begun {
		open = `{"found":[],`
	}
	_, err = io.WriteString(p.w, open+strings.TrimPrefix(text, "{")+"\n")
	return err
}

// encode writes JSON in which no characters are invisible.
func encode(doc any) (string, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(doc); err != nil {
		return "", err
	}
	return safetext.JSON(strings.TrimSpace(out.String())), nil
}

// page formats the parts of a report.
type page interface {
	heading(text string) string
	found(f Found) string
	table(head []string, rows [][]string) string
	line(text string) string // text that is ready to show
	name(text string) string // name of a file, a target or a rule, which may be any text
}

// pages writes reports for people.
type pages struct {
	w    io.Writer
	page page
	kind bool // the heading of the list has been written
}

func (p *pages) Found(f Found) error {
	text := p.page.found(f)
	if !p.kind {
		p.kind = true
		text = p.page.heading("Calls that nobody would be asked about any more") + text
	}
	_, err := io.WriteString(p.w, text)
	return err
}

func (p *pages) Close(r *Report) error {
	text := p.summary(r)
	if r.Matrix.known() {
		text += p.matrix(r)
	}
	_, err := io.WriteString(p.w, text+p.questions(r)+p.targets(r)+p.rules(r)+p.groups(r))
	return err
}

func (p *pages) summary(r *Report) string {
	text := p.page.heading("Replay")
	say := func(format string, args ...any) { text += p.page.line(fmt.Sprintf(format, args...)) }
	for _, in := range r.Inputs {
		more := ""
		if in.Bad > 0 {
			more = ", " + plural(in.Bad, "entry", "entries") + " that can't be read"
		}
		if in.Others > 0 {
			more += ", " + plural(in.Others, "entry", "entries") + " about no call of this agent"
		}
		say("%s (%s): %s%s", p.page.name(in.File), in.Form, plural(in.Calls, "call", "calls"), more)
	}

	if r.Bad > 0 {
		say(
			"Incomplete: %s could not be read, and nothing here speaks of them.",
			plural(r.Bad, "entry", "entries"),
		)
	}

	switch r.Compared {
	case "nothing":
		say("Nothing to compare with: the record tells no outcomes, and no --against was given.")
	case "record":
		say("Old outcomes are those on record.")
	}

	if r.Compared != "nothing" {
		say("%s that nobody would be asked about any more.", plural(r.Unasked, "call", "calls"))
	}

	if r.Denials > 0 {
		say(
			"%s that a person denied; nobody would be asked about %s now.",
			plural(r.Denials, "call", "calls"), safetext.Count(r.DenialsUnasked)+" of them",
		)
	}

	if all := r.Unasked + r.DenialsUnasked; r.Listed < all {
		how := "--list 0 lists all"
		if r.live() {
			how = "the server keeps no more"
		}
		say("%s of %s are listed; %s.", safetext.Count(r.Listed), safetext.Count(all), how)
	}

	return text
}

func (p *pages) matrix(r *Report) string {
	rows := [][]string{}
	add := func(name string, o Outcomes) {
		rows = append(rows, append([]string{name}, counts(o.Allow, o.Ask, o.Deny)...))
	}
	add("allow", r.Matrix.Allow)
	add("ask", r.Matrix.Ask)
	add("deny", r.Matrix.Deny)
	if r.Matrix.Unknown != (Outcomes{}) {
		add("not known", r.Matrix.Unknown)
	}
	return p.page.heading("Old outcome by new outcome") +
		p.page.table([]string{"old, new →", "allow", "ask", "deny"}, rows)
}

func (p *pages) questions(r *Report) string {
	q := r.Questions
	text := p.page.heading("Questions")
	if q.Days == 0 {
		return text + p.page.line(fmt.Sprintf(
			"%s; no call has a time, so nothing is said about days.", change(r, q.Old.Total, q.New.Total)))
	}
	text += p.page.line(change(r, q.Old.Total, q.New.Total))
	days := fmt.Sprintf("from %s to %s, %s", q.From, q.To, plural(q.Days, "day", "days"))
	if q.Timed < r.Calls {
		days += fmt.Sprintf(", of %s with a time", plural(q.Timed, "call", "calls"))
	}
	rate := func(r Rate) string { return r.PerDay + " a day, " + safetext.Count(r.Most) + " at most" }
	if r.Compared == "nothing" {
		return text + p.page.line(rate(q.New)+" ("+days+")")
	}
	return text + p.page.line(rate(q.Old)+" → "+rate(q.New)+" ("+days+")")
}

// change formats the old and the new number of questions.
func change(r *Report, old, now int) string {
	if r.Compared == "nothing" {
		return plural(now, "question", "questions")
	}
	return safetext.Count(old) + " → " + plural(now, "question", "questions")
}

// columns returns the headings for the nine pairs of outcomes, unchanged ones first.
func columns(r *Report) []string {
	if r.Compared == "nothing" {
		return []string{"allow", "ask", "deny"}
	}
	head := []string{
		"allow", "ask", "deny",
		"allow→ask", "allow→deny", "ask→allow", "ask→deny", "deny→allow", "deny→ask",
	}
	if r.Matrix.Unknown != (Outcomes{}) {
		head = append(head, "?→allow", "?→ask", "?→deny")
	}
	return head
}

func cells(r *Report, m *Matrix) []string {
	u := m.Unknown
	if r.Compared == "nothing" {
		return counts(u.Allow, u.Ask, u.Deny)
	}
	out := counts(
		m.Allow.Allow, m.Ask.Ask, m.Deny.Deny,
		m.Allow.Ask, m.Allow.Deny, m.Ask.Allow, m.Ask.Deny, m.Deny.Allow, m.Deny.Ask,
	)
	if r.Matrix.Unknown != (Outcomes{}) {
		out = append(out, counts(u.Allow, u.Ask, u.Deny)...)
	}
	return out
}

// counts formats numbers. A dot means zero.
func counts(numbers ...int) []string {
	out := make([]string, len(numbers))
	for i, n := range numbers {
		if out[i] = safetext.Count(n); n == 0 {
			out[i] = "·"
		}
	}
	return out
}

func (p *pages) targets(r *Report) string {
	var rows [][]string
	for i := range r.Targets {
		at := &r.Targets[i]
		rows = append(rows, append([]string{p.nameOr(at.Target, "all other targets")}, cells(r, &at.Matrix)...))
	}
	return p.section("By target", append([]string{"target"}, columns(r)...), rows)
}

func (p *pages) rules(r *Report) string {
	var rows [][]string
	for i := range r.Rules {
		rule := &r.Rules[i]
		if rule.Old+rule.New == 0 {
			continue
		}
		name := rule.Rule
		if rule.Policy != "" {
			name = rule.Policy + "/" + rule.Rule
		}
		if rule.Source == "server" {
			name += " (blanket)"
		}
		rows = append(rows, append([]string{p.nameOr(name, "all other rules")}, cells(r, &rule.Matrix)...))
	}

	return p.section("By rule that spoke on either side", append([]string{"rule"}, columns(r)...), rows)
}

func (p *pages) groups(r *Report) string {
	var rows [][]string
	head := []string{"group", "questions, old", "new", "a day, old", "new"}
	if r.Compared == "nothing" {
		head = []string{"group", "questions", "a day"}
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		row := []string{p.nameOr(g.Group, "anyone")}
		if r.Compared == "nothing" {
			row = append(row, safetext.Count(g.New.Total), g.New.PerDay)
		} else {
			row = append(
				row,
				safetext.Count(g.Old.Total), safetext.Count(g.New.Total),
				g.Old.PerDay, g.New.PerDay,
			)
		}

		rows = append(rows, append(row, cells(r, &g.Matrix)...))
	}

	return p.section("By group that is asked on either side", append(head, columns(r)...), rows)
}

func (p *pages) nameOr(name, other string) string {
	if name == "" {
		return other
	}
	return p.page.name(name)
}

func (p *pages) section(title string, head []string, rows [][]string) string {
	if len(rows) == 0 {
		return ""
	}
	return p.page.heading(title) + p.page.table(head, rows)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return safetext.Count(n) + " " + many
}

// where describes the change of the outcome, or that a person denied the call.
func (f *Found) where() string {
	if f.Kind == Denied {
		return "a person denied this; it would be allowed now"
	}
	if f.Old == "" {
		return "it would be allowed now"
	}
	return f.Old + " → " + f.New
}

// textPage formats for terminals.
type textPage struct{}

func (textPage) heading(text string) string { return "\n" + text + "\n" }
func (textPage) line(text string) string    { return "  " + text + "\n" }
func (textPage) name(text string) string    { return safetext.Escape(text) }

func (p textPage) found(f Found) string {
	at := p.name(f.File) + ":" + strconv.Itoa(f.Line)
	for _, more := range []string{f.Time, f.Request} {
		if more != "" {
			at += " " + p.name(more)
		}
	}
	return "  " + at + ": " + f.where() + "\n    " + safetext.JSON(string(f.Call)) + "\n"
}

// wide is the maximum number of columns for which empty columns are kept.
const wide = 4

// table formats a table. It leaves out the empty columns of a wide table.
func (textPage) table(head []string, rows [][]string) string {
	var out strings.Builder
	all := append([][]string{head}, rows...)
	widths := make([]int, len(head))
	for i := range head {
		used := len(head) <= wide
		for _, row := range all {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
		for _, row := range rows {
			used = used || row[i] != "·" && row[i] != ""
		}
		if !used {
			widths[i] = 0
		}
	}

	for _, row := range all {
		line := " "
		for i, cell := range row {
			if widths[i] > 0 {
				pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
				if i == 0 {
					line += " " + cell + pad
				} else {
					line += "  " + pad + cell
				}
			}
		}

		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}

	return out.String()
}

// markdownPage formats comments on GitHub and GitLab.
type markdownPage struct{}

func (markdownPage) heading(text string) string { return "\n### " + text + "\n\n" }
func (markdownPage) line(text string) string    { return "- " + text + "\n" }

// name escapes everything that Markdown, HTML or a host could interpret.
func (markdownPage) name(text string) string { return safetext.Markdown(safetext.Escape(text)) }

func (p markdownPage) found(f Found) string {
	at := p.name(f.File + ":" + strconv.Itoa(f.Line))
	for _, more := range []string{f.Time, f.Request} {
		if more != "" {
			at += " " + p.name(more)
		}
	}
	return at + ": " + f.where() + "\n\n```json\n" + safetext.JSON(string(f.Call)) + "\n```\n\n"
}

func (markdownPage) table(head []string, rows [][]string) string {
	row := func(cells []string) string { return "| " + strings.Join(cells, " | ") + " |\n" }
	out := row(head) + "|---|" + strings.Repeat("---:|", len(head)-1) + "\n"
	for _, cells := range rows {
		out += row(cells)
	}
	return out
}
