package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"time"
)

// benchCase is one directory of files, with the cost to validate it.
type benchCase struct {
	path  string
	files int
	bytes int

	wall, cpu time.Duration
	peak      int64 // bytes
}

// guard adds a broken file that a walk reads last, and requires that the binary reports it. A
// binary that reads fewer files would be faster.
func (c *benchCase) guard(binary string) error {
	path := filepath.Join(c.path, "zz", "broken.agf.yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(filepath.Dir(path))
	if err := os.WriteFile(path, []byte(broken), 0o644); err != nil {
		return err
	}
	out, err := exec.Command(binary, c.path).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		return fmt.Errorf("%s did not report %s (want exit status 1): %v\n%.2000s", binary, path, err, out)
	}
	return nil
}

// measure runs the binary once to warm the disk cache, and then the given number of times.
func (c *benchCase) measure(binary string, repeat int) error {
	if _, err := c.once(binary); err != nil {
		return err
	}
	for range repeat {
		wall, err := c.once(binary)
		if err != nil {
			return err
		}
		if c.wall == 0 || wall < c.wall {
			c.wall = wall
		}
	}

	return nil
}

// once runs the binary on the case and keeps the least processor time and the largest peak.
func (c *benchCase) once(binary string) (time.Duration, error) {
	out := &head{}
	cmd := exec.Command(binary, c.path)
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", runtime.NumCPU()))
	cmd.Stdout, cmd.Stderr = out, out
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	peak := watchPeak(cmd.Process.Pid)
	err := cmd.Wait()
	wall := time.Since(start)
	c.peak = max(c.peak, peak())
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w\n%s", binary, c.path, err, out.text)
	}
	state := cmd.ProcessState
	if cpu := state.UserTime() + state.SystemTime(); c.cpu == 0 || cpu < c.cpu {
		c.cpu = cpu
	}
	return wall, nil
}

// head keeps the beginning of an output for error messages.
type head struct{ text []byte }

func (h *head) Write(p []byte) (int, error) {
	const most = 2000
	h.text = append(h.text, p[:min(len(p), most-len(h.text))]...)
	return len(p), nil
}

// watchPeak follows the peak memory of a process in bytes. The returned function stops that and
// returns the last value. The peak that wait reports can't be used: a process starts with the
// peak of its parent, which has made all the files.
func watchPeak(pid int) func() int64 {
	var peak int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			peak = max(peak, residentPeak(pid))
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	return func() int64 {
		close(stop)
		<-stopped
		return peak
	}
}

var highWater = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// residentPeak reads the memory high-water mark of a process on Linux. It returns 0 if the
// process has ended.
func residentPeak(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	m := highWater.FindSubmatch(status)
	if err != nil || m == nil {
		return 0
	}
	kib, _ := strconv.ParseInt(string(m[1]), 10, 64) // the expression matches only digits
	return kib << 10
}

func (c *benchCase) row() string {
	mb := float64(c.bytes) / 1e6
	return fmt.Sprintf(
		"| %d | %.1f | %s | %.0f | %.0f | %.1f | %.0f MB |",
		c.files,
		mb,
		c.wall.Round(time.Millisecond),
		float64(c.files)/c.wall.Seconds(),
		float64(c.files)/c.cpu.Seconds(),
		mb/c.wall.Seconds(),
		float64(c.peak)/1e6,
	)
}
