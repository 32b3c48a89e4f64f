package main

import (
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/jsonschema"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/schema"
)

//go:embed settings.schema.json
var settingsSchema string

// settingsName is the name of the settings file in the directory where agf-validate starts.
const settingsName = ".agf-validate.yaml"

// settings are a repository's settings for its checks. Paths are as written in the file.
type settings struct {
	Paths    []string `doc:"paths"`
	Policies []string `doc:"policies"`
	Config   string   `doc:"config"`
	Tools    []string `doc:"tools"`
	People   string   `doc:"people"`
	Strict   bool     `doc:"strict"`
	FailOn   string   `doc:"fail_on"`
}

// settled fills the flags that the command line leaves out from the
// repository's settings, and returns the paths to work on.
func (v program) settled(f *validateFlags, flags *pflag.FlagSet, paths []string) ([]string, error) {
	paths, err := v.settledQuietly(f, flags, paths)
	return paths, v.printUnusable(err)
}

// settledQuietly is like settled, but doesn't print the findings of settings that can't be used.
func (v program) settledQuietly(f *validateFlags, flags *pflag.FlagSet, paths []string) ([]string, error) {
	s, err := v.readSettings(f.settings)
	if err != nil || s == nil {
		return paths, err
	}
	given := func(name string) bool { return flags.Changed(name) }
	if !given("policies") && !given("decisions") {
		f.policies = s.Policies
	}
	if !given("decisions") {
		f.config = s.Config
	}
	if !given("tools") {
		f.tools = s.Tools
	}
	if !given("people") {
		f.people = s.People
	}
	if !given("strict") {
		f.strict = s.Strict
	}
	if !given("fail-on") && s.FailOn != "" {
		f.failOn = s.FailOn
	}

	if len(paths) == 0 {
		paths = s.Paths
	}
	return paths, nil
}

// readSettings reads a file of settings. It returns nil if none was named and the default file
// doesn't exist.
func (v program) readSettings(named string) (*settings, error) {
	file := named
	if file == "" {
		file = settingsName
		if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}

	src, err := term.ReadFile(file, v.In)
	if err != nil {
		return nil, err
	}
	s, err := v.parseSettings(file, src)
	if err == nil {
		s.beside(filepath.Dir(file))
	}

	return s, err
}

// parseSettings reads the text of a file of settings.
func (v program) parseSettings(file string, src []byte) (*settings, error) {
	doc, findings := yamldoc.ReadDocument(file, src)
	if doc != nil {
		compiled := jsonschema.Embedded("settings.schema.json", settingsSchema)
		findings = append(findings, schema.Violations(doc.Root, compiled())...)
	}
	if yamldoc.Stops(findings) {
		return nil, &unusableError{"settings", file, src, yamldoc.Finish(file, findings)}
	}

	s := &settings{}
	yamldoc.Fill(doc.Root, s)
	return s, nil
}

// beside makes the paths of the file relative to the working directory.
func (s *settings) beside(dir string) {
	from := func(path string) string {
		if path == "" || filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(dir, path)
	}
	for _, list := range [][]string{s.Paths, s.Policies} {
		for i := range list {
			list[i] = from(list[i])
		}
	}

	for i, list := range s.Tools {
		alias, file := splitTools(list)
		s.Tools[i] = from(file)
		if alias != "" {
			s.Tools[i] = alias + "=" + s.Tools[i]
		}
	}

	s.Config = from(s.Config)
	s.People = from(s.People)
}
