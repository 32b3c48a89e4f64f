//go:build unix

package settings

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/assent-dev/assent/internal/must"
)

// helper is the environment variable that makes this test binary replace a file and stop at the
// named step.
const helper = "ASSENT_SETTINGS_HELPER"

func TestMain(m *testing.M) {
	step := os.Getenv(helper)
	if step == "" {
		os.Exit(m.Run())
	}
	if step == "nobody" {
		if err := syscall.Setuid(65534); err != nil {
			panic(err)
		}
	}
	f, err := Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	f.reached = func(now string) {
		if now == step {
			os.Stdout.WriteString("reached\n")
			_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed or the test has ended
			os.Exit(1)
		}
	}
	if err := f.ReplaceWithBackup([]byte("new\n"), func(string) error { return nil }); err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
	}
}

// replacing starts a process that replaces a file, and returns its first line of output.
func replacing(t *testing.T, file, step string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], file)
	cmd.Env = append(os.Environ(), helper+"="+step)
	cmd.Stderr = t.Output()
	_, err := cmd.StdinPipe() // kept open until the process has ended
	if err != nil {
		t.Fatal(err)
	}
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	line, _ := bufio.NewReader(out).ReadString('\n') // checked by the caller

	return cmd, strings.TrimSpace(line)
}

func put(t *testing.T, name, text string, mode fs.FileMode) string {
	t.Helper()
	must.Do(t, os.WriteFile(name, []byte(text), mode))
	must.Do(t, os.Chmod(name, mode))

	return name
}

func holdsText(t *testing.T, name, want string) {
	t.Helper()
	got, err := os.ReadFile(name)
	if err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v, want %q", filepath.Base(name), got, err, want)
	}
}

// Whenever a process is killed, the file and its backup have the complete old text, and the
// next process can continue.
func TestKilled(t *testing.T) {
	for _, step := range []string{"locked", "backed up", "written"} {
		t.Run(step, func(t *testing.T) {
			dir := t.TempDir()
			name := put(t, filepath.Join(dir, "a.json"), "old\n", 0o640)
			cmd, line := replacing(t, name, step)
			if line != "reached" {
				t.Fatalf("it says %q", line)
			}
			must.Do(t, cmd.Process.Kill())
			_ = cmd.Wait() // it was killed
			holdsText(t, name, "old\n")
			f := must.Get(Open(name))(t)
			backup := ""
			must.Do(t, f.ReplaceWithBackup([]byte("newer\n"), func(name string) error {
				backup = name
				return nil
			}))
			holdsText(t, name, "newer\n")
			holdsText(t, backup, "old\n")
			onlyFiles(t, dir, "a.json", "a.json.before-assent")
			for _, path := range []string{name, backup} {
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
					t.Errorf("%s: %v, %v", path, info.Mode(), err)
				}
			}
		})
	}
}

func onlyFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries := must.Get(os.ReadDir(dir))(t)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("there are %v, want %v", got, want)
	}
}

// A text is durable before it gets its name, and the name is durable before Replace returns.
func TestReplacementSurvivesPowerLoss(t *testing.T) {
	dir := t.TempDir()
	name := put(t, filepath.Join(dir, "a.json"), "old\n", 0o600)
	var steps []string
	f := opened(t, name)
	f.sync = func(file *os.File) error {
		now, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
		}
		step := "directory"
		if file.Name() != dir {
			text, err := os.ReadFile(file.Name())
			if err != nil {
				t.Error(err)
			}
			step = fmt.Sprintf("%q in another file", text)
		}
		steps = append(steps, fmt.Sprintf("%s while the file holds %q", step, now))
		return file.Sync()
	}
	must.Do(t, f.ReplaceWithBackup([]byte("new\n"), func(string) error { return nil }))
	want := []string{
		`"old\n" in another file while the file holds "old\n"`,
		`"new\n" in another file while the file holds "old\n"`,
		`directory while the file holds "new\n"`,
	}
	if !slices.Equal(steps, want) {
		t.Errorf("synced\n%s\nwant\n%s", strings.Join(steps, "\n"), strings.Join(want, "\n"))
	}
}

// If a text can't be made durable, the file stays unchanged and no temporary file is left. If
// the new name can't be made durable, the file has been replaced nevertheless.
func TestFailedSync(t *testing.T) {
	for _, c := range []struct {
		fails int
		files []string
		text  string
	}{
		{1, []string{"a.json"}, "old\n"},
		{2, []string{"a.json", "a.json.before-assent"}, "old\n"},
		{3, []string{"a.json", "a.json.before-assent"}, "new\n"},
	} {
		dir := t.TempDir()
		name := put(t, filepath.Join(dir, "a.json"), "old\n", 0o600)
		f := opened(t, name)
		broken, calls := errors.New("the disk is gone"), 0
		f.sync = func(*os.File) error {
			if calls++; calls == c.fails {
				return broken
			}
			return nil
		}
		err := f.ReplaceWithBackup([]byte("new\n"), func(string) error { return nil })
		if errors.Is(err, broken) != (c.text == "old\n") || (err == nil) != (c.text == "new\n") {
			t.Errorf("sync %d fails: %v", c.fails, err)
		}
		holdsText(t, name, c.text)
		onlyFiles(t, dir, c.files...)
	}
}

// Any difference since the file was read counts, for every way of changing the file.
func TestNothingIsWrittenOverAChange(t *testing.T) {
	for difference, c := range map[string]struct {
		before func(dir string)
		change func(dir string)
		after  string // the file's text after that; "-" if it does not exist
	}{
		"another text": {
			func(dir string) { put(t, filepath.Join(dir, "a"), "old", 0o600) },
			func(dir string) { put(t, filepath.Join(dir, "a"), "theirs", 0o600) },
			"theirs",
		},
		"an empty file that is new": {
			func(string) {},
			func(dir string) { put(t, filepath.Join(dir, "a"), "", 0o600) },
			"",
		},
		"an empty file that is gone": {
			func(dir string) { put(t, filepath.Join(dir, "a"), "", 0o600) },
			func(dir string) { remove(t, filepath.Join(dir, "a")) },
			"-",
		},
		"a link to another file with the same text": {
			func(dir string) {
				link(t, put(t, filepath.Join(dir, "one"), "old", 0o600), filepath.Join(dir, "a"))
				put(t, filepath.Join(dir, "two"), "old", 0o600)
			},
			func(dir string) {
				remove(t, filepath.Join(dir, "a"))
				link(t, filepath.Join(dir, "two"), filepath.Join(dir, "a"))
			},
			"old",
		},
		"a directory": {
			func(dir string) { put(t, filepath.Join(dir, "a"), "old", 0o600) },
			func(dir string) {
				remove(t, filepath.Join(dir, "a"))
				must.Do(t, os.Mkdir(filepath.Join(dir, "a"), 0o700))
			},
			"-",
		},
	} {
		for way, do := range map[string]func(*File) error{
			"replace": func(f *File) error { return f.Replace([]byte("ours")) },
			"replace after": func(f *File) error {
				return f.ReplaceAfter([]byte("ours"), func() error {
					t.Errorf("%s: more is done", difference)
					return nil
				})
			},
			"remove": (*File).Remove,
		} {
			dir := t.TempDir()
			name := filepath.Join(dir, "a")
			c.before(dir)
			f := opened(t, name)
			c.change(dir)
			entries, _ := os.ReadDir(dir)
			if err := do(f); err == nil || !errors.Is(err, ErrChanged) && difference != "a directory" {
				t.Errorf("%s, %s: %v", difference, way, err)
			}
			if c.after != "-" {
				holdsText(t, name, c.after)
			}
			if left, _ := os.ReadDir(dir); len(left) != len(entries) {
				t.Errorf("%s, %s: %d files instead of %d", difference, way, len(left), len(entries))
			}
		}
	}
}

func opened(t *testing.T, name string) *File {
	t.Helper()
	return must.Get(Open(name))(t)
}

func remove(t *testing.T, name string) {
	t.Helper()
	must.Do(t, os.Remove(name))
}

func link(t *testing.T, target, name string) {
	t.Helper()
	must.Do(t, os.Symlink(target, name))
}

// A file that does not exist is created for its owner alone, can be replaced again by the same
// *File, and removed.
func TestReplaceAndRemove(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a")
	f := opened(t, name)
	if f.Exists || f.Text != nil || f.Writable() != nil {
		t.Errorf("%+v, %v", f, f.Writable())
	}
	for _, text := range []string{"one", "two"} {
		must.Do(t, f.Replace([]byte(text)))
		holdsText(t, name, text)
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 || !f.Exists ||
			string(f.Text) != text {
			t.Errorf("%v, %v, %+v", info.Mode(), err, f)
		}
	}
	failed := errors.New("failed")
	if err := f.ReplaceAfter([]byte("three"), func() error { return failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
	holdsText(t, name, "two")
	if err := f.Remove(); err != nil || f.Exists || f.Text != nil {
		t.Errorf("%v, %+v", err, f)
	}
	onlyFiles(t, dir)
	must.Do(t, f.Replace([]byte("four")))
	onlyFiles(t, dir, "a")
}

func TestWritable(t *testing.T) {
	for mode, want := range map[fs.FileMode]bool{
		0o600: true, 0o200: true, 0o644: true, 0o400: false, 0o445: false, 0o466: false, 0o577: false,
	} {
		f := opened(t, put(t, filepath.Join(t.TempDir(), "a"), "", mode))
		if err := f.Writable(); (err == nil) != want {
			t.Errorf("%o: %v", mode, err)
		}
	}
}

// Open refuses files that are not regular or too large.
func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	large, largest := filepath.Join(dir, "large"), filepath.Join(dir, "largest")
	for name, size := range map[string]int64{large: 64<<20 + 1, largest: 64 << 20} {
		must.Do(t, os.Truncate(put(t, name, "", 0o600), size))
	}
	pipe := filepath.Join(dir, "pipe")
	must.Do(t, syscall.Mkfifo(pipe, 0o600))
	for name, want := range map[string]string{
		large:                       "more than 64 MiB",
		pipe:                        "this is a pipe",
		os.DevNull:                  "this is a device or a socket",
		filepath.Join(large, "a"):   "not a directory",
		filepath.Join(dir, "a\x00"): "invalid argument",
	} {
		if f, err := Open(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
	opened(t, largest)
}

// Only temporary files of this file are removed.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".a.assent-1", ".a.assent-", ".b.assent-1", "a.assent-1", ".a"} {
		put(t, filepath.Join(dir, name), "x", 0o600)
	}
	must.Do(t, opened(t, filepath.Join(dir, "a")).Replace(nil))
	onlyFiles(t, dir, ".a", ".b.assent-1", "a", "a.assent-1")
}

// The lock is released after the call, and a missing directory can't be locked.
func TestLocked(t *testing.T) {
	dir := t.TempDir()
	failed := errors.New("failed")
	for range 2 {
		err := Locked(dir, func() error {
			if err := Locked(dir, func() error { return nil }); !errors.Is(err, ErrBusy) {
				t.Errorf("taken twice: %v", err)
			}
			return failed
		})
		if !errors.Is(err, failed) {
			t.Error(err)
		}
	}
	err := Locked(filepath.Join(dir, "none"), func() error {
		t.Error("it runs")
		return nil
	})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// While one process replaces a file, another one gets ErrBusy.
func TestBusy(t *testing.T) {
	name := put(t, filepath.Join(t.TempDir(), "a.json"), "old\n", 0o600)
	cmd, _ := replacing(t, name, "backed up")
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}()
	f := must.Get(Open(name))(t)
	if err := f.Replace([]byte("x")); !errors.Is(err, ErrBusy) {
		t.Errorf("%v", err)
	}
	holdsText(t, name, "old\n")
}

// If many processes replace the same text, one succeeds and the others change nothing.
func TestChanged(t *testing.T) {
	name := put(t, filepath.Join(t.TempDir(), "a.json"), "old\n", 0o600)
	var all sync.WaitGroup
	won := make(chan string, 20)
	var files []*File
	for range 20 {
		f := must.Get(Open(name))(t)
		files = append(files, f)
	}

	for i, f := range files {
		all.Go(func() {
			text := strings.Repeat("x", i+1)
			switch err := f.Replace([]byte(text)); {
			case err == nil:
				won <- text
			case !errors.Is(err, ErrBusy) && !errors.Is(err, ErrChanged):
				t.Error(err)
			}
		})
	}

	all.Wait()
	close(won)
	holdsText(t, name, <-won)
	if second, more := <-won; more {
		t.Errorf("%q won too", second)
	}
}

// A link is followed and stays a link. A link that is dangling, circular, or does not lead to a
// regular file is refused.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	real := put(t, filepath.Join(dir, "real"), "old", 0o600)
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, target := range map[string]string{
		"good":     "real",
		"dangling": "none",
		"loop":     "loop",
		"folder":   ".",
	} {
		must.Do(t, os.Symlink(target, at(name)))
	}

	f := must.Get(Open(at("good")))(t)
	must.Do(t, f.ReplaceWithBackup([]byte("new"), func(string) error { return nil }))
	holdsText(t, real, "new")
	holdsText(t, real+".before-assent", "old")
	if link, err := os.Readlink(at("good")); err != nil || link != "real" {
		t.Errorf("the link leads to %q, %v", link, err)
	}

	for name, want := range map[string]string{
		"dangling": "this symbolic link leads to no file",
		"loop":     "this symbolic link leads to no file",
		"folder":   "expected a regular file, and this is a directory",
		".":        "expected a regular file, and this is a directory",
	} {
		if _, err := Open(at(name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each text has its backup, and no backup is overwritten.
func TestBackups(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	for i, text := range []string{"one", "two", "one", "three"} {
		f := must.Get(Open(put(t, name, text, 0o600)))(t)
		backup, err := f.Backup()
		want := name + ".before-assent" + []string{"", "-2", "", "-3"}[i]
		if err != nil || backup != want {
			t.Errorf("%s, %v, want %s", backup, err, want)
		}
		holdsText(t, backup, text)
	}
}

// The last of 999 names is used; then Backup fails.
func TestTooManyBackups(t *testing.T) {
	name := put(t, filepath.Join(t.TempDir(), "a"), "new", 0o600)
	f := opened(t, name)
	put(t, f.BackupName(), "old", 0o600)
	for i := 2; i < 999; i++ {
		put(t, fmt.Sprintf("%s-%d", f.BackupName(), i), "old", 0o600)
	}
	if backup, err := f.Backup(); err != nil || backup != f.BackupName()+"-999" {
		t.Errorf("%s, %v", backup, err)
	}
	f.Text = []byte("newer")
	if backup, err := f.Backup(); err == nil || !strings.Contains(err.Error(), "a thousand backups") {
		t.Errorf("%s, %v", backup, err)
	}
	remove(t, f.BackupName())
	must.Do(t, os.Mkdir(f.BackupName(), 0o700))
	if backup, err := f.Backup(); err == nil || backup != "" {
		t.Errorf("a directory has its name: %s, %v", backup, err)
	}
}

// If the directory is read-only, nothing is changed, and the error names the directory.
func TestReadOnlyDirectory(t *testing.T) {
	dir := t.TempDir()
	name := put(t, filepath.Join(dir, "a.json"), "old\n", 0o644)
	must.Do(t, errors.Join(os.Chmod(dir, 0o555), os.Chmod(filepath.Dir(dir), 0o755)))
	step := "never"
	if os.Geteuid() == 0 {
		step = "nobody" // root may write everywhere
	}
	cmd, line := replacing(t, name, step)
	_ = cmd.Wait() // its output is checked below
	if !strings.Contains(line, dir) || !strings.Contains(line, "permission denied") {
		t.Errorf("it says %q", line)
	}
	holdsText(t, name, "old\n")
	onlyFiles(t, dir, "a.json")
}
