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

	"github.com/assent-dev/assent/value"
)

// Form is how calls are recorded.
type Form string

// The forms.
const (
	Detect     Form = "auto"
	Calls      Form = "calls"       // lines of assent decide, with an optional time
	Ledger     Form = "ledger"      // what assent audit export writes
	OTel       Form = "otel"        // OTLP JSON with GenAI spans
	ClaudeCode Form = "claude-code" // transcripts of Claude Code
)

// Forms lists the words for Options.From.
func Forms() []string {
	return []string{string(Detect), string(Calls), string(Ledger), string(OTel), string(ClaudeCode)}
}

// Bounds of what is read at once, in bytes.
const (
	batchSize   = 128 << 10
	maxLine     = 16 << 20 // as assent decide takes
	maxDocument = 64 << 20 // of OpenTelemetry, which may stand on many lines
)

// frame is one line, or one document.
type frame struct {
	line int
	text []byte
	err  error
}

// batch is a run of frames on its way through a worker.
type batch struct {
	text    []byte // whole lines; nil when the frames are there already
	first   int    // number of the first line of text
	frames  []frame
	entries []entry
	spoke   []int
	err     error // reading ended here
	done    chan struct{}
}

// source hands out an input in batches.
type source struct {
	in   *bufio.Reader
	form Form
	line int // lines that were handed out
	rest error
}

// readError is a failure of the input itself.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

// open finds out the form of an input.
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

// formOf tells the form by the first line that tells one; "" when none
// does. An empty input has no calls in any form.
func formOf(head []byte) Form {
	if len(bytes.TrimSpace(head)) == 0 {
		return Calls
	}
	for line := range bytes.Lines(head) {
		if form := formOfLine(line); form != "" {
			return form
		}
	}

	// a document over several lines, or a first line that is longer
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

// next returns the next batch; nil at the end. A failure to read is in
// its batch, which is the last one.
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

// finishLine reads to the end of a line. Of one over the bound the rest
// is passed over; that it is too long is seen by its size.
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

// split cuts the text of a batch into its lines; blank ones are no
// entries.
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

// document reads one JSON document by its brackets.
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

// read returns the document without what surrounds it, and the number
// of its first line. What is no object is an error of its line.
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

// skipLine passes over a line that is no document.
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

// step takes one character of the document into account.
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

// pipeline runs every batch through a worker, and then, in the order of
// the input, through add. Only a window of batches is in memory.
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
	for range window { // whatever is under way ends
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

// at is the number of the line on which a part of a frame begins.
func (f *frame) at(part []byte) int {
	offset := cap(f.text) - cap(part) // both end where the memory of the frame does
	if offset < 0 || offset > len(f.text) {
		return f.line
	}
	return f.line + bytes.Count(f.text[:offset], []byte("\n"))
}

// distinct sorts texts, each once.
func distinct(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}
