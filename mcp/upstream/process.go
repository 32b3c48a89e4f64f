package upstream

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/assent-dev/assent/internal/safetext"
)

// process is a server's program.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   io.Reader
	ended chan struct{} // closed when it has ended
	once  sync.Once
}

// maxLine bounds a line of what a server writes to its log, in bytes.
const maxLine = 4096

// startProcess starts the program as it is named: no shell reads it, and
// it gets the variables of the configuration alone.
func startProcess(cfg *Config) (*process, error) {
	cmd := exec.Command(cfg.Command[0], cfg.Command[1:]...)
	cmd.Env = append([]string{}, cfg.Env...)
	cmd.Dir = cfg.Dir
	ownGroup(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cfg.Command[0], err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cfg.Command[0], err)
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cfg.Command[0], err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cfg.Command[0], err)
	}

	p := &process{cmd: cmd, in: in, ended: make(chan struct{})}
	p.out = p.until(out, errs, cfg)
	return p, nil
}

// until has the program's end be noticed once both its pipes were read.
func (p *process) until(out, errs io.Reader, cfg *Config) io.Reader {
	r, w := io.Pipe()
	var pipes sync.WaitGroup
	pipes.Go(func() {
		_, err := io.Copy(w, out)
		_ = w.CloseWithError(err)
	})
	pipes.Go(func() { logLines(errs, cfg) })
	go func() {
		pipes.Wait()
		_ = p.cmd.Wait() // how it ended is in the log of whoever notices
		close(p.ended)
	}()
	return r
}

// logLines passes on what a server writes to its log, line by line.
func logLines(r io.Reader, cfg *Config) {
	lines := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			text := safetext.Line(strings.TrimRight(string(line), "\r\n"))
			cfg.Log.Info("server", slog.String("server", cfg.Alias), slog.String("line", text))
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}

// stop ends the program and what it started: its input is closed, then
// it is asked, then it is killed.
func (p *process) stop(grace time.Duration) {
	p.once.Do(func() {
		_ = p.in.Close()
		for _, end := range []func(*exec.Cmd) error{terminate, kill} {
			select {
			case <-p.ended:
				return
			case <-time.After(grace):
				_ = end(p.cmd) // it may have ended by itself
			}
		}
	})
	<-p.ended
}
