// Command release builds everything that people install: archives, Python
// wheels, npm packages, deb and rpm packages, a container image, a Homebrew
// formula, checksums, an SBOM for each archive, and signatures. Two builds of
// one commit give the same bytes.
package main

import (
	"cmp"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// programs are the binaries of a release.
var programs = [...]string{"agf-validate", "assent"}

// target is a platform, with the names that package managers have for it.
type target struct {
	os, arch string // as Go names them
	wheel    string // platform tag of a Python wheel
	npmOS    string // process.platform of Node
	npmArch  string // process.arch of Node
}

func (t target) String() string { return t.os + "_" + t.arch }

// file returns the name of a program on the platform.
func (t target) file(program string) string {
	if t.os == "windows" {
		return program + ".exe"
	}
	return program
}

// Static Linux binaries run with glibc and musl, so a wheel has both tags.
var targets = [...]target{
	{"linux", "amd64", "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64", "linux", "x64"},
	{"linux", "arm64", "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64", "linux", "arm64"},
	{"darwin", "amd64", "macosx_12_0_x86_64", "darwin", "x64"},
	{"darwin", "arm64", "macosx_12_0_arm64", "darwin", "arm64"},
	{"windows", "amd64", "win_amd64", "win32", "x64"},
	{"windows", "arm64", "win_arm64", "win32", "arm64"},
}

// release is one run.
type release struct {
	version string
	root    string // of the repository
	out     string
	time    time.Time // of the commit: the time of all files
	commit  string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	version := flags.String("version", "", "version to build; must be the one in the sources")
	root := flags.String("root", ".", "root of the repository")
	out := flags.String("out", "dist", "directory to write to; must be empty or absent")
	only := flags.String("targets", "", "platforms to build, such as linux_amd64,windows_arm64; all unless given")
	dirty := flags.Bool("dirty", false, "build although files have changed since the commit")
	key := flags.String("key", "", "minisign secret key file without a password; signs the checksums")
	if err := flags.Parse(args); err != nil {
		return err
	}

	r := release{version: *version, root: *root, out: *out}
	if err := r.prepare(*dirty); err != nil {
		return err
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	for _, t := range chosen {
		if err := r.platform(t); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	if err := r.npmFront(chosen); err != nil {
		return err
	}
	if err := r.client(); err != nil {
		return err
	}
	if err := r.formula(chosen); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(r.out, "build")); err != nil {
		return err
	}

	return r.checksums(*key)
}

var versionLine = regexp.MustCompile(`(?m)^const Version = "([^"]+)"$`)

// prepare checks the version, the checkout and the output directory.
func (r *release) prepare(dirty bool) error {
	source, err := os.ReadFile(filepath.Join(r.root, "cmd/internal/term/term.go"))
	if err != nil {
		return err
	}
	found := versionLine.FindSubmatch(source)
	if found == nil {
		return errors.New("cmd/internal/term/term.go has no constant Version")
	}
	if inSource := string(found[1]); r.version != inSource {
		return fmt.Errorf("the version is %q, but the sources say %q: give VERSION=%s, or change cmd/internal/term/term.go",
			r.version, inSource, inSource)
	}
	status, err := r.git("status", "--porcelain")
	if err != nil {
		return err
	}
	if status != "" && !dirty {
		return fmt.Errorf("these files differ from the commit; commit them or give --dirty:\n%s", status)
	}
	if r.commit, err = r.git("rev-parse", "HEAD"); err != nil {
		return err
	}
	seconds, err := r.git("log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return err
	}
	r.time = time.Unix(unix, 0).UTC()
	if entries, err := os.ReadDir(r.out); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty: remove it first", r.out)
	}
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}

	return os.MkdirAll(r.out, 0o755)
}

func (r *release) git(args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", r.root}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}

	return strings.TrimSpace(string(out)), nil
}

// choose returns the platforms of a list of names, or all.
func choose(names string) ([]target, error) {
	if names == "" {
		return targets[:], nil
	}
	var chosen []target
	var known []string
	for _, t := range targets {
		known = append(known, t.String())
	}
	for name := range strings.SplitSeq(names, ",") {
		before := len(chosen)
		for _, t := range targets {
			if t.String() == name {
				chosen = append(chosen, t)
			}
		}
		if len(chosen) == before {
			return nil, fmt.Errorf("there is no target %q: expected some of %s", name, strings.Join(known, ", "))
		}
	}

	return chosen, nil
}

// platform builds the binaries of a platform and all packages that carry them.
func (r *release) platform(t target) error {
	var files []entry
	for _, program := range programs {
		path := filepath.Join(r.out, "build", t.String(), t.file(program))
		cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=true", "-ldflags", "-s -w", "-o", path, "./cmd/"+program)
		cmd.Dir = r.root
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch, "GOFLAGS=-mod=readonly", "GOAMD64=v1")
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("build %s: %w", program, err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files = append(files, entry{name: t.file(program), text: text, mode: 0o755})
	}

	info, err := buildinfo.ReadFile(filepath.Join(r.out, "build", t.String(), t.file("assent")))
	if err != nil {
		return err
	}
	sbom, err := r.sbom(t, info)
	if err != nil {
		return err
	}
	if err := r.write(r.base(t)+".spdx.json", sbom); err != nil {
		return err
	}

	steps := []func(target, []entry) error{r.archive, r.wheel, r.npmPlatform}
	if t.os == "linux" {
		steps = append(steps, r.systemPackages, r.image)
	}
	for _, step := range steps {
		if err := step(t, files); err != nil {
			return err
		}
	}

	return nil
}

// base returns the start of the name of an archive, such as
// assent_0.3.0_linux_amd64.
func (r *release) base(t target) string { return "assent_" + r.version + "_" + t.String() }

func (r *release) write(name string, text []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), text, 0o644)
}

// read returns a file of the repository as an entry of a package.
func (r *release) read(path, name string) (entry, error) {
	text, err := os.ReadFile(filepath.Join(r.root, path))
	return entry{name: cmp.Or(name, filepath.Base(path)), text: text, mode: 0o644}, err
}

// documents are the files that go with the binaries into every archive: the licence, the changes, how to install, and
// the profiles of coding agents.
func (r *release) documents() ([]entry, error) {
	paths := []string{"LICENSE", "CHANGELOG.md", "docs/guides/install.md"}
	for _, profile := range []string{"daily", "careful"} {
		files, err := filepath.Glob(filepath.Join(r.root, "examples/coding-agent", profile, "*.yaml"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if !strings.HasSuffix(file, ".test.yaml") {
				paths = append(paths, "examples/coding-agent/"+profile+"/"+filepath.Base(file))
			}
		}
	}
	var out []entry
	for _, path := range paths {
		name := "" // that of the file
		if strings.HasPrefix(path, "examples/") {
			name = path
		}
		e, err := r.read(path, name)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}

	return out, nil
}
