package replay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// Form is the format of recorded calls.
type Form string

// The forms.
const (
	Detect     Form = "auto"
	Calls      Form = "calls"       // lines of assent decide, with an optional time
	Ledger     Form = "ledger"      // output of assent audit export
	OTel       Form = "otel"        // OTLP JSON with GenAI spans
	ClaudeCode Form = "claude-code" // transcripts of Claude Code
)

// Forms lists the values for Options.From.
func Forms() []string {
	return []string{string(Detect), string(Calls), string(Ledger), string(OTel), string(ClaudeCode)}
}

// Limits for reading, in bytes.
const (
	batchSize   = 128 << 10
	maxLine     = 16 << 20 // as in assent decide
	maxDocument = 64 << 20 // of OpenTelemetry, which may span several lines
)

// frame is one line, or one document.
type frame struct {
	line int
	text []byte
	err  error
}

// batch is a sequence of frames that one worker handles.
type batch struct {
	text    []byte // whole lines; nil if frames is already set
	first   int    // number of the first line of text
	frames  []frame
	entries []entry
	spoke   []int
	timed   resolve.Call // the call that is decided, at its time
	err     error        // reading ended here
	done    chan struct{}
}

// source splits an input into batches.
type source struct {
	in   *bufio.Reader
	form Form
	line int // number of lines so far
	rest error
}

// readError is an error of the input itself.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

// open determines the form of an input.
func open(in io.Reader, form Form) (*source, error) {
	s := &source{in: bufio.NewReaderSize(in, batchSize), form: form}
	if form != Detect && form != "" {
		return s, nil
	}
	head, err := s.in.Peek(batchSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if s.form = formOf(head); s.form == "" {
		return nil, fmt.Errorf(
			"its form can't be told: the first line is no call of assent decide, no header of a ledger's export, no "+
				"OTLP JSON with resourceSpans and no line of a transcript; name it by --from, one of %s",
			strings.Join(Forms()[1:], ", "),
		)
	}

	return s, nil
}

// formOf determines the form from the first line that identifies one. It returns an empty
// string if there is none. An empty input counts as Calls.
func formOf(head []byte) Form {
	if len(bytes.TrimSpace(head)) == 0 {
		return Calls
	}
	for line := range bytes.Lines(head) {
		if form := formOfLine(line); form != "" {
			return form
		}
	}

	// A document over several lines, or a very long first line.
	if bytes.Contains(head, []byte(`"resourceSpans"`)) {
		return OTel
	}
	return ""
}

func formOfLine(line []byte) Form {
	keys := map[string][]byte{}
	for m, err := range value.SplitObject(line) {
		if err != nil {
			return ""
		}
		keys[m.Key] = m.Raw
	}

	switch {
	case bytes.HasPrefix(keys["format"], []byte(`"assent-ledger/`)):
		return Ledger
	case keys["resourceSpans"] != nil:
		return OTel
	case keys["kind"] != nil:
		return Calls
	case keys["type"] != nil:
		return ClaudeCode
	}

	return ""
}

// next returns the next batch, or nil at the end. A read error is returned in the last batch.
func (s *source) next() *batch {
	if s.rest != nil {
		return nil
	}
	b := &batch{first: s.line + 1, done: make(chan struct{})}
	if s.form == OTel {
		s.document(b)
	} else {
		s.lines(b)
	}
	if s.rest != nil && !errors.Is(s.rest, io.EOF) {
		b.err = &readError{s.rest}
	}
	if b.err == nil && len(b.text) == 0 && len(b.frames) == 0 {
		return nil
	}
	return b
}

// lines reads whole lines up to the size of a batch.
func (s *source) lines(b *batch) {
	b.text = make([]byte, batchSize, batchSize+4096)
	n, err := io.ReadFull(s.in, b.text)
	b.text = b.text[:n]
	if err != nil {
		if s.rest = err; errors.Is(err, io.ErrUnexpectedEOF) {
			s.rest = io.EOF
		}
	} else if b.text[n-1] != '\n' {
		s.finishLine(b)
	}

	s.line += bytes.Count(b.text, []byte("\n"))
}

// finishLine reads to the end of a line. If the line exceeds the limit, the rest is skipped,
// and split detects the error by the line's size.
func (s *source) finishLine(b *batch) {
	for {
		part, err := s.in.ReadSlice('\n')
		if len(b.text) <= maxLine+batchSize {
			b.text = append(b.text, part...)
		} else if err == nil {
			b.text = append(b.text, '\n')
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		s.rest = err
		return
	}
}

// split splits the text of a batch into lines, without blank ones.
func (b *batch) split() {
	number := b.first
	for line := range bytes.Lines(b.text) {
		f := frame{line: number, text: bytes.TrimSpace(line)}
		if len(f.text) > maxLine {
			f.err = fmt.Errorf("the line is longer than %d MiB", maxLine>>20)
		}
		if len(f.text) > 0 {
			b.frames = append(b.frames, f)
		}
		number++
	}
}

// document reads one JSON document by counting its brackets.
func (s *source) document(b *batch) {
	d := documentReader{src: s}
	text, line, err := d.read()
	switch {
	case err != nil:
		b.frames = append(b.frames, frame{line: line, err: err})
	case len(text) > 0:
		b.frames = append(b.frames, frame{line: line, text: text})
	}
}

// documentReader finds the end of one document.
type documentReader struct {
	src    *source
	text   []byte
	first  int
	depth  int
	quoted bool
	escape bool
	size   int
}

// read returns the document without surrounding space, and the number of its first line. It
// returns an error if the text is not an object.
func (d *documentReader) read() ([]byte, int, error) {
	for {
		c, err := d.src.in.ReadByte()
		if err != nil {
			d.src.rest = err
			if d.size > 0 && errors.Is(err, io.EOF) {
				return nil, d.first, errors.New("the document is truncated: its last bracket is missing")
			}
			return nil, d.first, nil
		}

		if c == '\n' {
			d.src.line++
		}
		if d.size == 0 && strings.IndexByte(" \t\r\n", c) >= 0 {
			continue
		}
		if d.size == 0 {
			d.first = d.src.line + 1
		}
		if d.size++; d.size <= maxDocument {
			d.text = append(d.text, c)
		}
		if d.size == 1 && c != '{' {
			return nil, d.first, d.skipLine()
		}
		if d.step(c); d.depth == 0 {
			break
		}
	}

	if d.size > maxDocument {
		return nil, d.first, fmt.Errorf(
			"the document is longer than %d MiB: have it exported as a document a line",
			maxDocument>>20,
		)
	}

	return d.text, d.first, nil
}

// skipLine skips a line that is not a document.
func (d *documentReader) skipLine() error {
	for {
		_, err := d.src.in.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			continue
		}
		if err == nil {
			d.src.line++
		}
		d.src.rest = err
		return errors.New("expected a JSON object with resourceSpans")
	}
}

// step updates the state with one character of the document.
func (d *documentReader) step(c byte) {
	switch {
	case d.escape:
		d.escape = false
	case d.quoted:
		d.escape = c == '\\'
		d.quoted = c != '"'
	case c == '"':
		d.quoted = true
	case c == '{' || c == '[':
		d.depth++
	case c == '}' || c == ']':
		d.depth--
	}
}

// pipeline runs work for every batch in a worker, and then add, in the order of the input. Only
// a limited number of batches is in memory.
func pipeline(src *source, workers int, work func(*batch), add func(*batch) error) error {
	window := make(chan *batch, 2*workers)
	todo := make(chan *batch)
	stop := make(chan struct{})
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for b := range todo {
				if b.text != nil {
					b.split()
				}
				work(b)
				close(b.done)
			}
		})
	}

	running.Go(func() {
		defer close(window)
		defer close(todo)
		for b := src.next(); b != nil; b = src.next() {
			select {
			case window <- b:
				todo <- b
			case <-stop:
				return
			}
		}
	})
	err := inOrder(window, add)
	close(stop)
	for range window { // let all batches in progress end
	}
	running.Wait()
	return err
}

func inOrder(window <-chan *batch, add func(*batch) error) error {
	for b := range window {
		<-b.done
		if err := add(b); err != nil {
			return err
		}
		if b.err != nil {
			return b.err
		}
	}

	return nil
}

// at returns the number of the line on which a part of a frame begins.
func (f *frame) at(part []byte) int {
	offset := cap(f.text) - cap(part) // both slices end at the end of the same memory
	if offset < 0 || offset > len(f.text) {
		return f.line
	}
	return f.line + bytes.Count(f.text[:offset], []byte("\n"))
}

// distinct sorts texts and removes duplicates.
func distinct(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}
