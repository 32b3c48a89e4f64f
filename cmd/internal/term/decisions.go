package term

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/assent-dev/assent/resolve"
)

// Decisions is a decision configuration with the file that its paths are relative to. It may be
// nil.
type Decisions struct {
	*resolve.Config
	File string
	dirs []string // instead of those of the file
}

// Instead replaces the directories and the registry of the file by directories from flags.
func (d *Decisions) Instead(dirs []string) {
	d.Registry = nil
	d.Policies = dirs
	d.dirs = dirs
}

// ReadDecisions reads a decision configuration. Problems are printed to errOut with their place.
func ReadDecisions(file string, stdin io.Reader, errOut io.Writer) (*Decisions, error) {
	src, err := ReadFile(file, stdin)
	if err != nil {
		return nil, err
	}
	config, findings := resolve.ParseConfig(file, src)
	if len(findings) > 0 {
		PrintFindings(errOut, findings, map[string][]byte{file: src})
	}
	if config == nil {
		return nil, fmt.Errorf("the decision configuration %s can't be used", file)
	}

	return &Decisions{Config: config, File: file}, nil
}

// Beside resolves a path relative to the file.
func (d *Decisions) Beside(path string) string {
	if path == "" || filepath.IsAbs(path) || d.File == "" || d.File == "-" {
		return path
	}

	return filepath.Join(filepath.Dir(d.File), path)
}

// PolicyDirs lists the directories of policies.
func (d *Decisions) PolicyDirs() []string {
	switch {
	case d == nil:
		return nil
	case d.dirs != nil:
		return d.dirs
	}

	var out []string
	for _, dir := range d.Policies {
		out = append(out, d.Beside(dir))
	}

	return out
}

// Options returns the options for compiling a plan.
func (d *Decisions) Options() resolve.Options {
	if d == nil {
		return resolve.Options{}
	}

	return d.Config.Options()
}
