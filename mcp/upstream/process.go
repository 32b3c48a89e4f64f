package upstream

import (
	"bufio"
	"errors"
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
	said  lastLines // in its log
}

// EndedError explains why the program of a server has ended or did not start properly. LastWords
// are the last lines of its log, joined to one line; they may be empty.
type EndedError struct {
	Why       error
	LastWords string
}

// Error says why, with the last words.
func (e *EndedError) Error() string {
	if e.LastWords == "" {
		return e.Why.Error()
	}
	return fmt.Sprintf("%v; its last words: %s", e.Why, e.LastWords)
}

// Unwrap returns why.
func (e *EndedError) Unwrap() error { return e.Why }

// The bounds of last words.
const (
	mostLines = 5
	mostWords = 400 // bytes
)

// lastLines keeps the last lines of a log.
type lastLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *lastLines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if line = strings.TrimSpace(line); line == "" {
		return
	}
	l.lines = append(l.lines, line)
	l.lines = l.lines[max(0, len(l.lines)-mostLines):]
}

func (l *lastLines) words() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := strings.Join(l.lines, " | ")
	if len(all) > mostWords {
		all = "…" + strings.ToValidUTF8(all[len(all)-mostWords:], "")
	}
	return all
}

// hasEnded returns the error for a program that ended, after its log was read. A child process may
// keep the log open, so it waits for that only for a limited time.
func (p *process) hasEnded() error {
	soon := time.NewTimer(time.Second)
	defer soon.Stop()
	why := errors.New("the server's program has ended")
	select {
	case <-p.ended:
		why = fmt.Errorf("the server's program has ended (%s)", p.cmd.ProcessState)
	case <-soon.C:
	}
	return &EndedError{Why: why, LastWords: p.said.words()}
}

// maxLine bounds a line of what a server writes to its log, in bytes.
const maxLine = 4096

// startProcess starts the program directly, without a shell, and only with the variables of the
// configuration.
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

// until returns the program's output, which ends after both pipes were read and the program's end
// was recorded.
func (p *process) until(out, errs io.Reader, cfg *Config) io.Reader {
	r, w := io.Pipe()
	var pipes sync.WaitGroup
	pipes.Go(func() {
		_, err := io.Copy(w, out)
		_ = w.CloseWithError(err)
	})
	pipes.Go(func() { p.logLines(errs, cfg) })
	go func() {
		pipes.Wait()
		_ = p.cmd.Wait() // the error is logged where the end is noticed
		close(p.ended)
	}()
	return r
}

// logLines passes on what a server writes to its log, line by line.
func (p *process) logLines(r io.Reader, cfg *Config) {
	lines := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			text := safetext.Line(strings.TrimRight(string(line), "\r\n"))
			p.said.add(text)
			cfg.Log.Info("server", slog.String("server", cfg.Alias), slog.String("line", text))
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}

// stop ends the program and its children within the grace: it closes the input, then terminates
// them, then kills them.
func (p *process) stop(grace time.Duration) {
	p.once.Do(func() {
		_ = p.in.Close()
		for _, end := range []func(*exec.Cmd) error{terminate, kill} {
			select {
			case <-p.ended:
				return
			case <-time.After(grace / 2):
				_ = end(p.cmd) // it may have ended by itself
			}
		}
	})
	<-p.ended
}
