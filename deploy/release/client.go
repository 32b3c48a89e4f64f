package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// clientDir is the folder of the Python client.
const clientDir = "clients/python"

// project is the table of a pyproject.toml that describes the distribution.
type project struct {
	Name         string
	Version      string
	Description  string
	License      string
	Requires     string `toml:"requires-python"`
	Dependencies []string
	Extras       map[string][]string `toml:"optional-dependencies"`
	Classifiers  []string
}

// client writes the wheel of the Python client, which is the same for all platforms. It has no engine.wasm: the
// wheel with the engine is made by clients/python/build.
func (r *release) client() error {
	p, err := r.project()
	if err != nil {
		return err
	}
	module := strings.ReplaceAll(p.Name, "-", "_")
	source := filepath.Join(clientDir, "src")
	files, err := r.git("ls-files", "--", filepath.Join(source, module))
	if err != nil {
		return err
	}
	var all []entry
	for path := range strings.SplitSeq(files, "\n") {
		name, err := filepath.Rel(source, path)
		if err != nil {
			return err
		}
		file, err := r.read(path, filepath.ToSlash(name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // a release of a changed checkout, with --dirty
		} else if err != nil {
			return err
		}
		all = append(all, file)
	}
	readme, err := r.read(filepath.Join(clientDir, "README.md"), "")
	if err != nil {
		return err
	}
	dist := module + "-" + r.version
	licence, err := r.read("LICENSE", dist+".dist-info/licenses/LICENSE")
	if err != nil {
		return err
	}
	wheel := "Wheel-Version: 1.0\nGenerator: assent-release\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
	all = append(all, licence,
		entry{name: dist + ".dist-info/METADATA", text: []byte(p.metadata() + "\n" + string(readme.text)), mode: 0o644},
		entry{name: dist + ".dist-info/WHEEL", text: []byte(wheel), mode: 0o644},
	)

	return r.writeWheel(dist, "py3-none-any", all)
}

// project reads the description of the client, and checks that its version is that of the release.
func (r *release) project() (project, error) {
	file, err := r.read(filepath.Join(clientDir, "pyproject.toml"), "")
	if err != nil {
		return project{}, err
	}
	var read struct{ Project project }
	if _, err := toml.Decode(string(file.text), &read); err != nil {
		return project{}, fmt.Errorf("%s/pyproject.toml: %w", clientDir, err)
	}
	if got := read.Project.Version; got != r.version {
		return project{}, fmt.Errorf("%s/pyproject.toml has version %q, want %q", clientDir, got, r.version)
	}

	return read.Project, nil
}

// metadata returns the core metadata of the distribution, version 2.4.
func (p project) metadata() string {
	var b strings.Builder
	line := func(key, value string) { fmt.Fprintf(&b, "%s: %s\n", key, value) }
	line("Metadata-Version", "2.4")
	line("Name", p.Name)
	line("Version", p.Version)
	line("Summary", p.Description)
	line("License-Expression", p.License)
	line("License-File", "LICENSE")
	line("Project-URL", "Source, https://github.com/assent-dev/assent")
	for _, c := range p.Classifiers {
		line("Classifier", c)
	}
	line("Requires-Python", p.Requires)
	for _, d := range p.Dependencies {
		line("Requires-Dist", d)
	}
	for _, extra := range slices.Sorted(maps.Keys(p.Extras)) {
		line("Provides-Extra", extra)
		for _, d := range p.Extras[extra] {
			line("Requires-Dist", d+"; extra == '"+extra+"'")
		}
	}
	line("Description-Content-Type", "text/markdown")

	return b.String()
}
