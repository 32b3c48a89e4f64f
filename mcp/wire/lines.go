package wire

import (
	"bufio"
	"errors"
	"io"
	"sync"
)

// ErrTooLong means that a line was longer than allowed. It was skipped, and the next line can be
// read.
var ErrTooLong = errors.New("the line is longer than a message may be")

// Lines reads the messages of a pipe, one per line.
type Lines struct {
	in     *bufio.Reader
	most   int
	strict bool
}

// NewLines reads lines of at most the given number of bytes.
func NewLines(r io.Reader, most int) *Lines {
	return &Lines{in: bufio.NewReaderSize(r, 64<<10), most: most}
}

// Next returns the next line that is not empty, without its line ending. The caller owns the bytes.
// It returns io.EOF at the end of the pipe; a last line without a line ending is no message and is
// dropped. After ErrTooLong the next line can be read.
func (l *Lines) Next() ([]byte, error) {
	for {
		line, err := l.line()
		if err != nil || len(line) > 0 {
			return line, err
		}
	}
}

// Strict makes Next return ErrTooLong as soon as a line is too long, instead of reading it to its
// end. Nothing can be read after that.
func (l *Lines) Strict() *Lines {
	l.strict = true
	return l
}

// line reads one line, which may be empty. A line that is too long is read to its end and dropped.
func (l *Lines) line() ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := l.in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		if long = long || len(line)+len(part) > l.most+1; long && l.strict {
			return nil, ErrTooLong
		}
		if !long {
			line = append(line, part...)
		}
		if err == nil {
			break
		}
	}

	if long {
		return nil, ErrTooLong
	}
	return trimEnd(line), nil
}

// trimEnd removes the line ending, including the carriage return that some peers write.
func trimEnd(line []byte) []byte {
	line = line[:len(line)-1]
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line
}

// Pipe writes messages to a pipe, one per line. It is safe for concurrent use.
type Pipe struct {
	mu  sync.Mutex
	out io.Writer
	buf []byte
}

// NewPipe writes to a pipe.
func NewPipe(w io.Writer) *Pipe { return &Pipe{out: w} }

// Write writes a message. An error may mean that a part of it was
// written.
func (p *Pipe) Write(m *Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, err := m.Append(p.buf[:0])
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if cap(text) <= 1<<20 {
		p.buf = text
	}
	_, err = p.out.Write(text)
	return err
}
