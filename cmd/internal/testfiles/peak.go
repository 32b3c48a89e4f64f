//go:build unix

package testfiles

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// PeakCommand is the name of PeakMain among the commands of a test binary.
const PeakCommand = "peak"

// PeakMain runs the command in its arguments behind the first, a file.
// It writes the most memory that the command used into that file, in
// bytes, and ends as the command does. A process starts with the peak
// of the one that starts it, and a test binary's own may be large.
func PeakMain() {
	cmd := exec.Command(os.Args[2], os.Args[3:]...)
	cmd.Stdin = os.Stdin
	cmd.Stdout = os.Stdout
	cmd.Stderr = os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, "peak:", err)
		os.Exit(125)
	}

	usage, _ := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	peak := int64(usage.Maxrss)
	if runtime.GOOS != "darwin" { // other systems report KiB
		peak <<= 10
	}
	if err := os.WriteFile(os.Args[1], []byte(strconv.FormatInt(peak, 10)), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, "peak:", err)
		os.Exit(125)
	}
	os.Exit(cmd.ProcessState.ExitCode())
}

// Peak returns a command whose most memory is measured: peak tells it in
// bytes when the command has ended.
func Peak(t *testing.T, name string, args ...string) (cmd *exec.Cmd, peak func() int64) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "peak")
	cmd = exec.Command(PeakCommand, append([]string{file, name}, args...)...)
	cmd.Env = append(os.Environ(), "GOGC=100") // that of the tests is another one

	return cmd, func() int64 {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		bytes, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return bytes
	}
}
