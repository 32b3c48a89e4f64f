// Package testbin builds the programs of this repository for tests, each
// once per content. Call [Path] with the folder of a main package; scripts
// run the command in the folder build instead. Nobody may write to the
// file that Path returns, because other tests run the same file.
//
// Binaries are kept in the folder assent-testbin of the user's cache
// directory, named by a key: a digest of the build IDs of the program and
// of all packages that it links. The go command computes these IDs from
// the contents of all inputs (sources, embedded files, versions of
// modules, the toolchain, flags), and compiles what has changed, but does
// not link. This costs a quarter of the processor time of a link.
//
// One process at a time checks or builds a program: the others wait for
// its lock, and then find the binary. The go command inherits the lock. If
// a test is killed while it builds, the lock is held until the go command
// has ended too. A binary is linked under another name and renamed when it
// is complete. The key is computed again after the link, so that sources
// edited in between cannot leave a binary under the wrong key.
//
// The go command reports a test as cached if neither the test binary nor
// a file that the test opened has changed, and does not see what other
// processes read. Path therefore opens every folder of the repository
// that the program is made of. If a file in one of them changes, the test runs
// again.
//
// The programs of cmd are built like releases (CGO_ENABLED=0 -trimpath
// -ldflags '-s -w'), but without the state of Git, which changes with
// every commit. -trimpath also lets all checkouts share one binary. Other
// programs are built with the defaults of the go command, so that they
// share the packages that go test compiles: some of the modules of the
// examples take minutes to compile again. There is no variant for the race
// detector or for coverage: tests of processes never had one.
package testbin

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const module = "github.com/assent-dev/assent/"

// Binaries beyond the newest kept ones are removed after idle, which is
// longer than a run of tests. A binary of assent has 37 MB.
const (
	kept = 8
	idle = 2 * time.Hour
)

// Flags returns the arguments of the go command for the programs of cmd.
// CGO_ENABLED=0 is set too.
func Flags() []string { return []string{"-trimpath", "-ldflags", "-s -w"} }

// Path returns the path of the program that the main package in a folder
// of the repository compiles to, such as "cmd/assent". The folder may be in
// another module than the test, such as "agent/examples/soup". More flags of the go
// command, such as -overlay, may follow. It builds the program if no
// process has done so, and fails the test if it does not compile.
func Path(t testing.TB, folder string, flags ...string) string {
	t.Helper()
	once, _ := programs.LoadOrStore(fmt.Sprintf("%q %q", folder, flags), sync.OnceValues(func() (program, error) {
		return build("", folder, flags)
	}))
	p, err := once.(func() (program, error))()
	if err != nil {
		t.Fatal(err)
	}
	p.track()
	return p.path
}

// programs has the programs that this process has asked for.
var programs sync.Map

// Build returns what [Path] returns, for programs that are not tests.
func Build(folder string, flags ...string) (string, error) {
	p, err := build("", folder, flags)
	return p.path, err
}

// program is a built binary and what it was made of.
type program struct {
	path string
	dirs []string // of the repository: the folders of the packages
	more []string // files outside of dirs, such as embedded ones
}

// build builds a program as the module of the directory dir sees it.
func build(dir, folder string, flags []string) (program, error) {
	b := builder{pkg: module + folder, flags: flags, release: strings.HasPrefix(folder, "cmd/")}
	if b.release {
		b.flags = append(Flags(), flags...)
	}
	var p program
	var err error
	if b.dir, err = home(dir, folder); err == nil {
		p, err = b.run(path.Base(folder))
	}
	if err != nil {
		return program{}, fmt.Errorf("build %s for tests: %w", folder, err)
	}
	return p, nil
}

// home returns the directory of the module that a folder of the repository
// belongs to. The directory from, or the current one, is in a module of the
// repository.
func home(from, folder string) (string, error) {
	dir, err := filepath.Abs(from)
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		switch {
		case errors.Is(err, os.ErrNotExist) && dir != filepath.Dir(dir):
			continue
		case err != nil:
			return "", err
		}

		line, _, _ := strings.Cut(string(text), "\n")
		own := strings.TrimPrefix(strings.TrimPrefix(line, "module ")+"/", module) // such as "agent/"
		top, rest := strings.TrimSuffix(dir, filepath.FromSlash("/"+strings.TrimSuffix(own, "/"))), folder
		if below, ok := strings.CutPrefix(folder, own); ok {
			top, rest = dir, below
		}
		for ; rest != "."; rest = path.Dir(rest) {
			if _, err := os.Stat(filepath.Join(top, rest, "go.mod")); err == nil {
				break
			}
		}
		return filepath.Join(top, rest), nil
	}
}

type builder struct {
	dir, pkg string
	flags    []string
	release  bool
	lock     *os.File
}

func (b *builder) run(name string) (program, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return program{}, err
	}
	cache = filepath.Join(cache, "assent-testbin")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return program{}, err
	}
	if b.lock, err = lock(filepath.Join(cache, name+".lock")); err != nil {
		return program{}, err
	}
	defer b.lock.Close()

	key, p, err := b.inputs()
	for err == nil {
		p.path = filepath.Join(cache, name+"-"+key, name)
		if isBuilt(p.path) {
			return p, nil
		}

		partial := filepath.Join(cache, name+".partial")
		if err := os.RemoveAll(partial); err != nil { // of a process that was killed
			return program{}, err
		}
		if _, err := b.goCommand("build", "-o", partial, b.pkg); err != nil {
			return program{}, errors.Join(err, os.RemoveAll(partial))
		}
		// If a source was edited meanwhile, the next round builds again.
		linked := key
		if key, p, err = b.inputs(); err == nil && key == linked {
			err = keep(partial, cache, name, key)
		}
	}
	return program{}, err
}

// isBuilt reports whether a binary exists, and notes that it is in use.
func isBuilt(binary string) bool {
	now := time.Now()
	if err := os.Chtimes(filepath.Dir(binary), now, now); err != nil {
		return false
	}
	_, err := os.Stat(binary)
	return err == nil
}

// keep moves a complete binary to the folder of its key.
func keep(binary, cache, name, key string) error {
	dir := filepath.Join(cache, name+"-"+key)
	return errors.Join(prune(cache, name), os.MkdirAll(dir, 0o700), os.Rename(binary, filepath.Join(dir, name)))
}

// inputs returns the key of the program, and the files that it is made of.
func (b *builder) inputs() (string, program, error) {
	out, err := b.goCommand("list", "-export", "-deps", "-json=ImportPath,BuildID,Dir,EmbedFiles,Module", b.pkg)
	if err != nil {
		return "", program{}, err
	}
	digest := sha256.New()
	fmt.Fprintf(digest, "%q\n", b.flags) // flags of the linker are in no build ID

	var p program
	for list := json.NewDecoder(bytes.NewReader(out)); ; {
		var one struct {
			ImportPath, BuildID, Dir string
			EmbedFiles               []string
			Module                   *struct {
				Main    bool
				GoMod   string
				Replace *struct{ Version string }
			}
		}
		if err := list.Decode(&one); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return "", program{}, fmt.Errorf("go list: %w", err)
		}
		if one.BuildID == "" && one.ImportPath != "unsafe" {
			return "", program{}, fmt.Errorf("go list: %s has no build ID", one.ImportPath)
		}
		fmt.Fprintf(digest, "%s %s\n", one.ImportPath, one.BuildID)

		if m := one.Module; m != nil && (m.Main || m.Replace != nil && m.Replace.Version == "") {
			p.dirs = append(p.dirs, one.Dir)
			p.more = append(p.more, one.Module.GoMod, strings.TrimSuffix(one.Module.GoMod, "mod")+"sum")
			for _, name := range one.EmbedFiles {
				p.more = append(p.more, filepath.Join(one.Dir, name))
			}
		}
	}
	slices.Sort(p.more)
	p.more = slices.Compact(p.more)
	return fmt.Sprintf("%x", digest.Sum(nil)[:8]), p, nil
}

// goCommand runs the go command, which inherits the lock.
func (b *builder) goCommand(verb string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", slices.Concat([]string{verb, "-buildvcs=false"}, b.flags, args)...)
	cmd.Dir = b.dir
	if b.release {
		cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	}
	cmd.ExtraFiles = []*os.File{b.lock}
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", verb, err, &problems)
	}
	return out, nil
}

// track opens the files and directories of the program, so that the go command runs the test again
// if a file is added, removed or changed. Package os reports the opened names to testlog, and the
// files need not be read.
func (p program) track() {
	for _, dir := range p.dirs {
		if f, err := os.Open(dir); err == nil {
			f.Close()
		}
	}
	for _, name := range p.more {
		_, _ = os.Stat(name) // only the name matters
	}
}

// lock waits until no other process has the lock, and takes it. The lock
// ends when this process and all that inherit the file have closed it.
func lock(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), f.Close())
	}
	return f, nil
}

// prune removes binaries of a program that are neither among the newest
// nor in use.
func prune(cache, name string) error {
	dirs, err := filepath.Glob(filepath.Join(cache, name+"-????????????????"))
	if err != nil {
		return err
	}
	used := map[string]time.Time{}
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		used[dir] = info.ModTime()
	}
	slices.SortFunc(dirs, func(a, b string) int { return used[b].Compare(used[a]) })

	for _, dir := range dirs[min(kept-1, len(dirs)):] {
		if used[dir].Before(time.Now().Add(-idle)) {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	return err
}
