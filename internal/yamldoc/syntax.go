package yamldoc

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"

	yaml "gopkg.in/yaml.v3"
)

// syntax reports an error of yaml.v3. Its messages have no column and often a wrong line (the
// previous one, or the start of the surrounding mapping), so the position is searched for. The
// text is cut after fewer and fewer lines until the rest parses; the line after that is wrong.
// The position in the line is where the message first appears.
func (b *builder) syntax(err error) {
	p := prober{s: b.src, budget: 8 << 20}
	p.problem, p.hint = splitError(err)
	if name, ok := unknownAnchor(p.problem); ok {
		b.unknownAnchor(name)
		return
	}
	at := p.locate()
	line := b.src.lines[b.src.position(at).Line-1]
	first := b.src.firstOf(line)
	before := b.src.text[min(first, at):at]
	message, expected, indent := explain(p.problem, b.src.at(at))
	switch {
	case p.problem == "did not find expected key" && bytes.Contains(before, []byte(": ")):
		message, expected = afterValue(before)
	case bytes.HasPrefix(b.src.text[at:], []byte(`\/`)):
		message, expected = `the escape \/ is not read here`, "/ without the backslash"
	case indent:
		at = first
		if b.src.at(at) == '-' && p.problem == "could not find expected ':'" {
			message, expected = "a list item without a space after the -", "- item"
		}
	}

	b.fail(ruleSyntax, b.src.span(at, b.src.tokenEnd(at)), message, expected)
}

// afterValue explains text after the end of a value. before is the line up to that text.
func afterValue(before []byte) (message, expected string) {
	_, value, _ := bytes.Cut(before, []byte(": "))
	switch value = bytes.TrimLeft(value, " "); {
	case bytes.HasPrefix(value, []byte("{")):
		return "text after the end of a mapping in { }", "quotes around text that starts with a brace"
	case bytes.HasPrefix(value, []byte("[")):
		return "text after the end of a list in [ ]", "quotes around text that starts with a bracket"
	case bytes.HasPrefix(value, []byte("'")):
		return "text after the closing quote", "quotes around the whole text, with '' for each quote inside"
	}

	return "text after the closing quote", `quotes around the whole text, with \" for each quote inside`
}

// firstOf returns the offset of the first non-blank byte of a line.
func (s *source) firstOf(line int) int {
	for isBlank(s.at(line)) {
		line++
	}
	return line
}

// splitError splits an error of yaml.v3 into the problem and the line, which is 0 if there is
// none.
func splitError(err error) (problem string, line int) {
	problem = strings.TrimPrefix(err.Error(), "yaml: ")
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(problem); m != nil {
		fmt.Sscan(m[1], &line)
		problem = problem[len(m[0]):]
	}
	return problem, line
}

func unknownAnchor(problem string) (string, bool) {
	rest, ok := strings.CutPrefix(problem, "unknown anchor '")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, "' referenced")
}

func (b *builder) unknownAnchor(name string) {
	at := max(0, bytes.Index(b.src.text, []byte("*"+name)))
	b.fail(ruleAlias, b.src.span(at, at+1+len(name)), "no anchor "+quote(name)+" before this alias",
		"&"+name+" in front of an earlier value, or quotes if text is meant")
}

// prober finds the position of a syntax error by parsing prefixes of the text.
type prober struct {
	s       *source
	problem string // of the whole text
	hint    int    // the line in yaml.v3's message
	budget  int    // number of bytes that may still be parsed
}

// try parses the text up to an offset and returns the problem, or an empty string.
func (p *prober) try(end int) string {
	p.budget -= end
	problem, _ := splitErrorOf(bytes.NewReader(p.s.text[:end]))
	return problem
}

func splitErrorOf(r io.Reader) (problem string, line int) {
	d := yaml.NewDecoder(r)
	for {
		switch _, err := next(d); {
		case err == io.EOF:
			return "", 0
		case err != nil:
			return splitError(err)
		}
	}
}

func (p *prober) locate() int {
	line := p.line()
	start := p.s.lines[line-1]
	end := p.s.lineEnd(start)
	if p.budget < end || p.try(end) != p.problem {
		return p.s.firstOf(start)
	}
	low, high := start, end // the problem shows up at high, but not at low
	for low+1 < high && p.budget > end {
		if mid := (low + high) / 2; p.try(mid) == p.problem {
			high = mid
		} else {
			low = mid
		}
	}

	return p.s.runeStart(low)
}

// line returns the number of the wrong line, from 1.
func (p *prober) line() int {
	const attempts = 40
	last := p.s.position(p.consumed()).Line
	for line := last; line >= 1 && line > last-attempts && p.budget > 0; line-- {
		if p.try(p.s.lines[line-1]) == "" {
			return line
		}
	}
	return max(1, min(p.hint, len(p.s.lines)))
}

// consumed returns how far yaml.v3 reads before it fails.
func (p *prober) consumed() int {
	r := &byteReader{text: p.s.text}
	splitErrorOf(r)
	return max(0, r.read-1)
}

// byteReader returns one byte at a time, so that its reader consumes no more than it needs.
type byteReader struct {
	text []byte
	read int
}

func (r *byteReader) Read(p []byte) (int, error) {
	if r.read == len(r.text) {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	p[0] = r.text[r.read]
	r.read++
	return 1, nil
}

// tokenEnd returns the end of the word at an offset, at least one byte further.
func (s *source) tokenEnd(at int) int {
	end := at
	for end < len(s.text) && !isSpace(s.text[end]) && bytes.IndexByte([]byte(",[]{}"), s.text[end]) < 0 {
		end++
	}
	if end == at && at < len(s.text) && !isBreak(s.text[at]) {
		end++
	}
	return end
}

// explain translates a problem of yaml.v3: what is wrong, what is expected, and whether it is
// about the indentation of the line. c is the byte at the position.
func explain(problem string, c byte) (message, expected string, indent bool) {
	switch problem {
	case "did not find expected key":
		return "this line does not fit the mapping around it", "the indentation of its neighbours, or quotes that " +
			"end where they should", true
	case "did not find expected '-' indicator":
		return "this line does not fit the list around it", "the indentation of the other items, and a - in front", true
	case "did not find expected ',' or ']'":
		return "this list in [ ] is not closed or lacks a comma", "commas between the items and a ] at the end", false
	case "did not find expected ',' or '}'":
		return "this mapping in { } is not closed or lacks a comma",
			"commas between the fields and a } at the end", false
	case "mapping values are not allowed in this context":
		return "a colon that cannot start a value here", "quotes around text with a colon, or the indentation of " +
			"the key's neighbours", false
	case "could not find expected ':'":
		return "a key without a colon", "key: value, or deeper indentation if this goes on with the text above", true
	case "found character that cannot start any token":
		return cannotStart(c)
	case "found a tab character that violates indentation",
		"found a tab character where an indentation space is expected":
		return "a tab in the indentation", "spaces", false
	case "found unknown escape character":
		return "an escape that YAML does not know", `\\ for a backslash, or single quotes`, false
	case "did not find expected hexdecimal number", "found invalid Unicode character escape code":
		return "an escape that names no character", `\x41, \u0041 or \U00000041, or single quotes`, false
	case "found unexpected end of stream":
		return "quotes that are not closed", "the closing quote", false
	case "found unexpected document indicator":
		return "a line of --- or ... inside quotes", "the closing quote before it", true
	case "block sequence entries are not allowed in this context":
		return "a list cannot start here", "the - on a line of its own", false
	case "found undefined tag handle":
		return "a tag with an unknown prefix", "the value without a tag", false
	case "did not find expected <document start>":
		return "text after the end of the document", "one document, indented like its first line", true
	case "did not find expected node content":
		return "a value is missing here", "a value, or quotes around punctuation", false
	case "did not find expected comment or line break":
		return "text beside the | or > of a block of text", "the text on the lines below", false
	case "exceeded max depth of 10000":
		return "nested too deeply", "a flatter document", false
	}

	return "this is not YAML: " + problem, "YAML 1.2", false
}

func cannotStart(c byte) (message, expected string, indent bool) {
	switch c {
	case '\t':
		return "a tab in the indentation", "spaces", false
	case '@', '`', '%':
		return fmt.Sprintf("text cannot start with %c", c), "quotes around the text", false
	}

	return "a character that cannot start a value", "quotes around the text", false
}
