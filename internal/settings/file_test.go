//go:build unix

package settings

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// helper is the variable that makes this test a process which replaces
// a file and stops at the step of that name.
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
			select {} // until it is killed
		}
	}
	if err := f.ReplaceWithBackup([]byte("new\n"), func(string) error { return nil }); err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
	}
}

// replacing starts a process that replaces a file, and returns its
// first line.
func replacing(t *testing.T, file, step string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], file)
	cmd.Env = append(os.Environ(), helper+"="+step)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n') // the test looks at it

	return cmd, strings.TrimSpace(line)
}

func put(t *testing.T, name, text string, mode fs.FileMode) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}

	return name
}

func holdsText(t *testing.T, name, want string) {
	t.Helper()
	got, err := os.ReadFile(name)
	if err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v, want %q", filepath.Base(name), got, err, want)
	}
}

// TestKilled: whenever a process is killed, the file holds the old text
// whole, its backup the same, and the next one can go on.
func TestKilled(t *testing.T) {
	for _, step := range []string{"locked", "backed up", "written"} {
		t.Run(step, func(t *testing.T) {
			dir := t.TempDir()
			name := put(t, filepath.Join(dir, "a.json"), "old\n", 0o640)
			cmd, line := replacing(t, name, step)
			if line != "reached" {
				t.Fatalf("it says %q", line)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // it was killed
			holdsText(t, name, "old\n")
			f, err := Open(name)
			if err != nil {
				t.Fatal(err)
			}
			backup := ""
			err = f.ReplaceWithBackup([]byte("newer\n"), func(name string) error {
				backup = name
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
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
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("there are %v, want %v", got, want)
	}
}

// TestBusy: while one process replaces a file, another one is told so.
func TestBusy(t *testing.T) {
	name := put(t, filepath.Join(t.TempDir(), "a.json"), "old\n", 0o600)
	cmd, _ := replacing(t, name, "backed up")
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}()
	f, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Replace([]byte("x")); !errors.Is(err, ErrBusy) {
		t.Errorf("%v", err)
	}
	holdsText(t, name, "old\n")
}

// TestChanged: of many that read the same text one wins, and the others
// change nothing.
func TestChanged(t *testing.T) {
	name := put(t, filepath.Join(t.TempDir(), "a.json"), "old\n", 0o600)
	var all sync.WaitGroup
	won := make(chan string, 20)
	var files []*File
	for range 20 {
		f, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
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

// TestLinks: a link is followed and stays one; what leads nowhere, in a
// circle, or to no regular file is refused.
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
		if err := os.Symlink(target, at(name)); err != nil {
			t.Fatal(err)
		}
	}

	f, err := Open(at("good"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.ReplaceWithBackup([]byte("new"), func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
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

// TestBackups: each text has its backup, and none is overwritten.
func TestBackups(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	for i, text := range []string{"one", "two", "one", "three"} {
		f, err := Open(put(t, name, text, 0o600))
		if err != nil {
			t.Fatal(err)
		}
		backup, err := f.Backup()
		want := name + ".before-assent" + []string{"", "-2", "", "-3"}[i]
		if err != nil || backup != want {
			t.Errorf("%s, %v, want %s", backup, err, want)
		}
		holdsText(t, backup, text)
	}
}

// TestReadOnlyDirectory: where nothing may be written, nothing is
// changed, and the error says where.
func TestReadOnlyDirectory(t *testing.T) {
	dir := t.TempDir()
	name := put(t, filepath.Join(dir, "a.json"), "old\n", 0o644)
	if err := errors.Join(os.Chmod(dir, 0o555), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	step := "never"
	if os.Geteuid() == 0 {
		step = "nobody" // root may write everywhere
	}
	cmd, line := replacing(t, name, step)
	_ = cmd.Wait() // what it says is looked at
	if !strings.Contains(line, dir) || !strings.Contains(line, "permission denied") {
		t.Errorf("it says %q", line)
	}
	holdsText(t, name, "old\n")
	onlyFiles(t, dir, "a.json")
}
