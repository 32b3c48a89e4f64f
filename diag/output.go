package diag

import (
	"bufio"
	"io"
	"slices"
	"strings"
)

// output is shared by all formats: buffering, and the first write error.
type output struct {
	w   *bufio.Writer
	err error
	opt Options
}

func newOutput(w io.Writer, o Options) output {
	return output{w: bufio.NewWriter(w), opt: o}
}

func (o *output) print(parts ...string) {
	for _, p := range parts {
		if o.err == nil {
			_, o.err = o.w.WriteString(p)
		}
	}
}

// done flushes, so that a reader of the stream gets each file as soon as it is complete.
func (o *output) done() error {
	if err := o.w.Flush(); o.err == nil {
		o.err = err
	}
	return o.err
}

// entry is a finding as the formats print it.
type entry struct {
	Finding
	suppressed bool
	reason     string
}

// entries returns the findings of a report in the order of Sort, each with its file.
func entries(r Report, suppressed bool) []entry {
	out := make([]entry, 0, len(r.Findings)+len(r.Suppressed))
	for _, f := range r.Findings {
		out = append(out, entry{Finding: f})
	}
	if suppressed {
		for _, s := range r.Suppressed {
			out = append(out, entry{Finding: s.Finding, suppressed: true, reason: s.Reason})
		}
	}

	for i := range out {
		if out[i].File == "" {
			out[i].File = r.File
		}
	}
	slices.SortStableFunc(out, func(a, b entry) int { return Compare(a.Finding, b.Finding) })
	return out
}

// sentence returns the finding on one line: what is wrong, what is expected, and the nearest
// name.
func (f Finding) sentence() string {
	s := f.Message
	if f.Expected != "" {
		s += "; expected " + f.Expected
	}
	if f.Nearest != "" {
		s += "; did you mean " + f.Nearest + "?"
	}
	return Printable(s)
}

// relatedFile returns the file of a related place.
func (f Finding) relatedFile(r Related) string {
	if r.File == "" {
		return f.File
	}
	return r.File
}

// lines finds lines in a text by number, counted as in Position: a line ends at \n, \r\n or \r.
type lines struct {
	text   string
	starts []int
}

func newLines(text []byte) *lines {
	l := &lines{text: string(text)}
	if text == nil {
		return l
	}
	l.starts = append(l.starts, 0)
	for i, c := range text {
		if c == '\n' || c == '\r' && (i+1 == len(text) || text[i+1] != '\n') {
			l.starts = append(l.starts, i+1)
		}
	}
	return l
}

// line returns a line without its line break, and whether there is such a line.
func (l *lines) line(n int) (string, bool) {
	if n < 1 || n > len(l.starts) {
		return "", false
	}
	end := len(l.text)
	if n < len(l.starts) {
		end = l.starts[n]
	}
	s := l.text[l.starts[n-1]:end]
	if n == 1 {
		s = strings.TrimPrefix(s, "\ufeff") // not counted by positions
	}
	return strings.TrimRight(s, "\r\n"), true
}

// sources caches the lines of the files of one report.
type sources struct {
	source Source
	files  map[string]*lines
}

func newSources(s Source) *sources { return &sources{source: s, files: map[string]*lines{}} }

func (s *sources) line(file string, n int) (string, bool) {
	l := s.files[file]
	if l == nil {
		l = newLines(nil)
		if s.source != nil {
			l = newLines(s.source(file))
		}
		s.files[file] = l
	}

	return l.line(n)
}
