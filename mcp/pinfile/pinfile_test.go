package pinfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/assent-dev/assent/internal/filelock"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/mcp/catalog"
)

// The environment of a process of TestSeveralWriters.
const (
	writerFile = "ASSENT_TEST_PINS"
	writerName = "ASSENT_TEST_PINS_NAME"
)

// TestMain is a writer too, when it is started as one.
func TestMain(m *testing.M) {
	file := os.Getenv(writerFile)
	if file == "" {
		os.Exit(m.Run())
	}
	for i := range 20 {
		if err := add(context.Background(), file, fmt.Sprintf("%s_%d", os.Getenv(writerName), i)); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func server() catalog.Server { return catalog.Server{Command: "npx"} }

// add pins one tool.
func add(ctx context.Context, file, name string) error {
	tool := catalog.Read([]byte(`{"name":"` + name + `","inputSchema":{"type":"object"}}`))
	pin, err := catalog.NewPin(server(), tool, nil)
	if err != nil {
		return err
	}
	return Update(ctx, file, func(p *catalog.Pins) error {
		p.Add("files", server(), []catalog.Pin{pin}, catalog.Instead)
		return nil
	})
}

// TestSeveralWriters: processes that change the file at once lose no changes of each other, and
// leave no other files in its directory.
func TestSeveralWriters(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pins.json")
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		cmd := exec.Command(must.Get(os.Executable())(t))
		cmd.Env = append(os.Environ(), writerFile+"="+file, writerName+"="+name)
		all.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}

	all.Wait()

	pins := must.Get(Read(file))(t)
	if n := len(pins.Of("files").Tools); n != 60 {
		t.Errorf("%d tools, expected 60", n)
	}
	left := must.Get(os.ReadDir(filepath.Dir(file)))(t)
	info := must.Get(os.Stat(file))(t)
	if len(left) != 1 || info.Mode().Perm() != 0o600 {
		t.Error(left, info.Mode())
	}
}

func TestReadAndUpdate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pins.json")
	if pins, err := Read(file); err != nil || len(pins.Servers) != 0 {
		t.Error("no file:", pins, err)
	}
	must.Do(t, add(t.Context(), file, "a"))
	text := must.Get(os.ReadFile(file))(t)

	stop := errors.New("stop")
	err := Update(t.Context(), file, func(p *catalog.Pins) error {
		p.Servers = nil
		return stop
	})
	if again := must.Get(os.ReadFile(file))(t); !errors.Is(err, stop) || string(again) != string(text) {
		t.Error(err, string(again))
	}

	link := filepath.Join(t.TempDir(), "link")
	must.Do(t, os.Symlink(file, link))
	must.Do(t, add(t.Context(), link, "b"))
	if n := len(must.Get(Read(file))(t).Of("files").Tools); n != 2 {
		t.Error(n)
	}

	broken := strings.Replace(string(text), `"a"`, `"b"`, 1)
	must.Do(t, os.WriteFile(file, []byte(broken), 0o600))
	err = add(t.Context(), file, "c")
	if again := must.Get(os.ReadFile(file))(t); err == nil || !strings.Contains(err.Error(), "pins.json:13:21: ") ||
		string(again) != broken {
		t.Error("a broken file:", err)
	}
	if err := add(t.Context(), filepath.Join(file, "x"), "c"); err == nil {
		t.Error("a file in a file was written")
	}
	if _, err := Read(filepath.Dir(file)); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Error("a folder was read:", err)
	}
}

// TestUpdateWaits: Update returns an error if it can't lock the file in time.
func TestUpdateWaits(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pins.json")
	unlock := must.Get(filelock.Try(file))(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("tired"))
	if err := add(ctx, file, "a"); err == nil || !strings.Contains(err.Error(), "another program changes it: tired") {
		t.Error(err)
	}
	must.Do(t, unlock())
	must.Do(t, add(t.Context(), file, "a"))
}
