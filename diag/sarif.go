package diag

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// NewSARIF prints a SARIF 2.1.0 log with one run: the rule table with help, and a result for
// each finding with its region, related places, suppression, and a fingerprint that does not
// change when lines move.
func NewSARIF(w io.Writer, o Options) Writer {
	s := &sarifWriter{output: newOutput(w, o), index: make(map[string]int, len(o.Rules))}
	for _, r := range o.Rules {
		if _, known := s.index[r.ID]; !known {
			s.index[r.ID] = len(s.index)
		}
	}
	return s
}

type sarifWriter struct {
	output
	index map[string]int // index of a rule in the rule table
	open  bool           // the head was written
	any   bool           // a result was written
}

type sarifText struct {
	Text     string `json:"text"`
	Markdown string `json:"markdown,omitempty"`
}

type sarifRule struct {
	ID            string      `json:"id"`
	Name          string      `json:"name"`
	Short         sarifText   `json:"shortDescription"`
	Full          *sarifText  `json:"fullDescription,omitempty"`
	Help          *sarifText  `json:"help,omitempty"`
	HelpURI       string      `json:"helpUri,omitempty"`
	Configuration sarifConfig `json:"defaultConfiguration"`
}

type sarifConfig struct {
	Level string `json:"level"`
}

type sarifDriver struct {
	Name           string      `json:"name"`
	FullName       string      `json:"fullName"`
	Version        string      `json:"version,omitempty"`
	InformationURI string      `json:"informationUri,omitempty"`
	Rules          []sarifRule `json:"rules"`
}

type sarifResult struct {
	RuleID       string             `json:"ruleId"`
	RuleIndex    *int               `json:"ruleIndex,omitempty"`
	Level        string             `json:"level"`
	Message      sarifText          `json:"message"`
	Locations    []sarifLocation    `json:"locations"`
	Related      []sarifLocation    `json:"relatedLocations,omitempty"`
	Fingerprints map[string]string  `json:"partialFingerprints"`
	Suppressions []sarifSuppression `json:"suppressions,omitempty"`
}

type sarifLocation struct {
	ID       *int          `json:"id,omitempty"`
	Physical sarifPhysical `json:"physicalLocation"`
	Message  *sarifText    `json:"message,omitempty"`
}

type sarifPhysical struct {
	Artifact struct {
		URI string `json:"uri"`
	} `json:"artifactLocation"`
	Region sarifRegion `json:"region"`
}

type sarifRegion struct {
	StartLine   int `json:"startLine"`
	StartColumn int `json:"startColumn,omitempty"`
	EndLine     int `json:"endLine,omitempty"`
	EndColumn   int `json:"endColumn,omitempty"`
}

type sarifSuppression struct {
	Kind          string `json:"kind"`
	Justification string `json:"justification,omitempty"`
}

func (s *sarifWriter) begin() {
	if s.open {
		return
	}
	s.open = true
	s.print(
		"{\"$schema\":\"https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json\",\n",
		"\"version\":\"2.1.0\",\n\"runs\":[{\"tool\":{\"driver\":",
		s.encode(s.driver()),
		"},\n\"automationDetails\":{\"id\":",
		s.encode(s.tool()+"/"),
		"},\n\"columnKind\":\"unicodeCodePoints\",\n\"results\":[\n",
	)
}

// tool returns the tool's name. With a slash appended, it is also the id of the run, so that
// runs of one tool form a series.
func (s *sarifWriter) tool() string { return cmp.Or(s.opt.Tool, "assent") }

func (s *sarifWriter) driver() sarifDriver {
	d := sarifDriver{
		Name:           s.tool(),
		FullName:       strings.TrimSpace(s.tool() + " " + s.opt.Version),
		Version:        s.opt.Version,
		InformationURI: s.opt.HelpURL,
		Rules:          []sarifRule{},
	}
	for _, r := range s.opt.Rules {
		if s.index[r.ID] == len(d.Rules) {
			d.Rules = append(d.Rules, s.rule(r))
		}
	}
	return d
}

// pascal converts an id to SARIF's convention for names of rules: child-drops-approval becomes
// ChildDropsApproval.
func pascal(id string) string {
	var b strings.Builder
	for _, word := range strings.Split(id, "-") {
		first, size := utf8.DecodeRuneInString(word)
		if size > 0 {
			b.WriteRune(unicode.ToUpper(first))
			b.WriteString(word[size:])
		}
	}

	return b.String()
}

func (s *sarifWriter) rule(r RuleInfo) sarifRule {
	out := sarifRule{
		ID:            r.ID,
		Name:          pascal(r.ID),
		Short:         sarifText{Text: r.Title},
		Configuration: sarifConfig{sarifLevel(r.Severity)},
	}
	if r.Why != "" {
		out.Full = &sarifText{Text: r.Why}
		out.Help = &sarifText{Text: r.Why, Markdown: help(r)}
	}
	if s.opt.HelpURL != "" {
		out.HelpURI = s.opt.HelpURL + url.PathEscape(r.ID) + ".md"
	}
	return out
}

// help returns a short form of the rule's page, as Markdown.
func help(r RuleInfo) string {
	var b strings.Builder
	b.WriteString(r.Why + "\n")
	for _, example := range []struct{ title, text string }{{"Reported", r.Bad}, {"Fine", r.Good}} {
		if example.text != "" {
			b.WriteString(
				"\n" + example.title + ":\n\n```yaml\n" + strings.TrimRight(example.text, "\n") + "\n```\n",
			)
		}
	}

	return b.String()
}

func sarifLevel(s Severity) string {
	if s == Info {
		return "note"
	}
	return s.String()
}

func (s *sarifWriter) File(r Report) error {
	s.begin()
	seen := map[string]int{}
	src := newSources(s.opt.Source)
	for _, e := range entries(r, true) {
		if s.any {
			s.print(",\n")
		}
		s.any = true
		s.print(s.encode(s.result(e, fingerprint(e, src, seen))))
	}

	return s.done()
}

func (s *sarifWriter) result(e entry, print string) sarifResult {
	out := sarifResult{
		RuleID:       e.Rule,
		Level:        sarifLevel(e.Severity),
		Message:      sarifText{Text: e.sentence()},
		Locations:    []sarifLocation{sarifAt(e.File, e.Range)},
		Fingerprints: map[string]string{"assentFinding/v1": print},
	}
	if i, ok := s.index[e.Rule]; ok {
		out.RuleIndex = &i
	}
	for i, r := range e.Related {
		at := sarifAt(e.relatedFile(r), r.Range)
		at.ID, at.Message = &i, &sarifText{Text: Printable(r.Message)}
		out.Related = append(out.Related, at)
	}
	if e.suppressed {
		out.Suppressions = []sarifSuppression{{"inSource", Printable(e.reason)}}
	}
	return out
}

// fingerprint identifies a finding by rule, file, message and the text of its line. It does not
// contain line numbers, nor numbers in the message, which may be line numbers. Equal findings
// are numbered.
func fingerprint(e entry, src *sources, seen map[string]int) string {
	line, _ := src.line(e.File, e.Range.Start.Line)
	message := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '0'
		}
		return r
	}, e.Message)
	sum := sha256.Sum256([]byte(strings.Join([]string{e.Rule, e.File, message, strings.TrimSpace(line)}, "\x00")))
	key := hex.EncodeToString(sum[:16])
	seen[key]++
	return key + ":" + strconv.Itoa(seen[key])
}

// sarifAt returns a location. SARIF requires a region, so a finding about a whole file is shown
// at its first line.
func sarifAt(file string, r Range) sarifLocation {
	var l sarifLocation
	l.Physical.Artifact.URI = fileURI(file)
	l.Physical.Region = sarifRegion{max(1, r.Start.Line), r.Start.Column, r.End.Line, r.End.Column}
	return l
}

// fileURI converts a path to a URI reference. Relative paths stay relative to the root of the
// sources.
func fileURI(file string) string {
	u := url.URL{Path: filepath.ToSlash(file)}
	switch {
	case file == "-" || file == "":
		return "stdin"
	case strings.HasPrefix(u.Path, "/"):
		u.Scheme = "file"
	}

	return u.String()
}

// Close ends the log.
func (s *sarifWriter) Close(Summary) error {
	s.begin()
	s.print("\n]}]}\n")
	return s.done()
}
