package main

import (
	"fmt"
	"io"
	"time"
)

// progress is a single line on a terminal that shows the progress of a long walk. It prints nothing
// during the first second, and nothing if the output is no terminal.
type progress struct {
	w       io.Writer
	on      bool
	now     func() time.Time
	started time.Time
	last    time.Time
	files   int
	shown   bool
}

func newProgress(w io.Writer, terminal bool) *progress {
	return &progress{w: w, on: terminal, now: time.Now, started: time.Now()}
}

// file counts one more file.
func (p *progress) file() {
	p.files++
	if !p.on {
		return
	}
	now := p.now()
	if now.Sub(p.started) < time.Second || now.Sub(p.last) < 100*time.Millisecond {
		return
	}
	p.last, p.shown = now, true
	fmt.Fprintf(p.w, "\r\x1b[Kchecked %d files", p.files)
}

// clear removes the line before other output.
func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}

func (p *progress) end() { p.clear() }
