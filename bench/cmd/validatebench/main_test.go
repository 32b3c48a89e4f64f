package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGenerate checks that the directories contain the files that the table counts.
func TestGenerate(t *testing.T) {
	cases, err := generate(t.TempDir(), 500)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{50, 500, 1} {
		files, bytes := 0, 0
		err := filepath.WalkDir(cases[i].path, func(path string, d os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".agf.yaml") {
				info, _ := d.Info()
				files, bytes = files+1, bytes+int(info.Size())
			}
			return err
		})
		if err != nil || files != want || files != cases[i].files || bytes != cases[i].bytes {
			t.Errorf("case %d: %d files of %d bytes, want %d and %d: %v", i, files, bytes, want, cases[i].bytes, err)
		}
	}
}

// TestGuard checks that guard refuses a binary that always succeeds or fails, and that it
// removes the broken file.
func TestGuard(t *testing.T) {
	c := &benchCase{path: t.TempDir()}
	for _, tc := range []struct {
		script string
		ok     bool
	}{
		{"exit 0", false},
		{"exit 2", false},
		{`test -f "$1/zz/broken.agf.yaml" && exit 1; exit 0`, true},
	} {
		if err := c.guard(script(t, tc.script)); (err == nil) != tc.ok {
			t.Errorf("%q: %v", tc.script, err)
		}
	}

	if left, err := os.ReadDir(c.path); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestMeasure checks that time and memory are those of the process, and that the error of a
// failed process shows its output.
func TestMeasure(t *testing.T) {
	c := &benchCase{path: t.TempDir(), files: 10, bytes: 1_000}
	if err := c.measure(script(t, "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done"), 2); err != nil {
		t.Fatal(err)
	}
	if c.wall <= 0 || c.cpu <= 0 || c.peak <= 0 {
		t.Errorf("wall %v, cpu %v, peak %d", c.wall, c.cpu, c.peak)
	}
	if err := c.measure(script(t, "echo line 7 is wrong; exit 1"), 1); err == nil ||
		!strings.Contains(err.Error(), "line 7 is wrong") {
		t.Errorf("error %v", err)
	}
}

func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "binary")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestResidentPeak(t *testing.T) {
	if own := residentPeak(os.Getpid()); own < 1<<20 {
		t.Errorf("this process has a peak of %d bytes", own)
	}
	if gone := residentPeak(1 << 30); gone != 0 {
		t.Errorf("a process that is not there has a peak of %d bytes", gone)
	}
}
