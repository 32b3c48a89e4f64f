package diag

import (
	"bytes"
	"encoding/json"
	"io"
)

// NewJSON prints one JSON object in the form that docs/contracts/agf-validate.md defines.
// Suppressed findings are included and marked.
func NewJSON(w io.Writer, o Options) Writer { return &jsonWriter{output: newOutput(w, o)} }

type jsonWriter struct {
	output
	any bool // a finding was written
}

type jsonFinding struct {
	Rule     string `json:"rule"`
	Severity string `json:"severity"`
	jsonPlace
	Message    string          `json:"message"`
	Expected   string          `json:"expected,omitempty"`
	Nearest    string          `json:"nearest,omitempty"`
	Stops      bool            `json:"stops,omitempty"`
	Related    []jsonRelated   `json:"related,omitempty"`
	Suppressed *jsonSuppressed `json:"suppressed,omitempty"`
}

type jsonPlace struct {
	File      string `json:"file"`
	Line      int    `json:"line,omitempty"`
	Column    int    `json:"column,omitempty"`
	EndLine   int    `json:"end_line,omitempty"`
	EndColumn int    `json:"end_column,omitempty"`
}

type jsonRelated struct {
	jsonPlace
	Message string `json:"message"`
}

type jsonSuppressed struct {
	Reason string `json:"reason"`
}

type jsonSummary struct {
	Errors     int `json:"errors"`
	Warnings   int `json:"warnings"`
	Infos      int `json:"infos"`
	Suppressed int `json:"suppressed"`
}

func (j *jsonWriter) File(r Report) error {
	for _, e := range entries(r, true) {
		j.separate()
		j.print(j.encode(jsonOf(e)))
	}
	return j.done()
}

// separate opens the array before the first finding, and writes a comma before the others.
func (j *jsonWriter) separate() {
	if j.any {
		j.print(",\n")
		return
	}
	j.any = true
	j.print("{\"findings\":[\n")
}

func (j *jsonWriter) Close(s Summary) error {
	if j.any {
		j.print("\n],\n")
	} else {
		j.print("{\"findings\":[],\n")
	}
	j.print("\"files\":", j.encode(s.Files), ",\n\"summary\":",
		j.encode(jsonSummary{s.Errors, s.Warnings, s.Infos, s.Suppressed}), "}\n")
	return j.done()
}

// encode encodes a value on one line. Invalid UTF-8 becomes U+FFFD, because JSON can't
// represent it.
func (o *output) encode(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil && o.err == nil {
		o.err = err
	}
	return string(bytes.TrimRight(b.Bytes(), "\n"))
}

func jsonOf(e entry) jsonFinding {
	f := jsonFinding{
		Rule:      e.Rule,
		Severity:  e.Severity.String(),
		jsonPlace: placeOf(e.File, e.Range),
		Message:   e.Message,
		Expected:  e.Expected,
		Nearest:   e.Nearest,
		Stops:     e.Stops,
	}
	for _, r := range e.Related {
		f.Related = append(f.Related, jsonRelated{placeOf(e.relatedFile(r), r.Range), r.Message})
	}
	if e.suppressed {
		f.Suppressed = &jsonSuppressed{e.reason}
	}
	return f
}

func placeOf(file string, r Range) jsonPlace {
	return jsonPlace{file, r.Start.Line, r.Start.Column, r.End.Line, r.End.Column}
}
