package edits

import (
	"os"
	"path/filepath"
	"runtime"
)

// Place describes the environment in which a command runs.
type Place struct {
	OS      string // as runtime.GOOS
	Getenv  func(string) string
	Project string // absolute
}

// Here returns the place of this process.
func Here(getenv func(string) string) (Place, error) {
	dir, err := os.Getwd()

	return Place{runtime.GOOS, getenv, dir}, err
}

// Home returns the path of a file in the user's home directory.
func (p Place) Home(parts ...string) string {
	dir := p.Getenv("HOME")
	if p.OS == "windows" {
		dir = p.Getenv("USERPROFILE")
	}

	return filepath.Join(append([]string{dir}, parts...)...)
}

// Config returns the path of a file in the configuration directory on Unix.
func (p Place) Config(parts ...string) string {
	dir := p.Getenv("XDG_CONFIG_HOME")
	if dir == "" {
		dir = p.Home(".config")
	}

	return filepath.Join(append([]string{dir}, parts...)...)
}

// AppData returns the path of a file in the directory for data of desktop programs.
func (p Place) AppData(parts ...string) string {
	switch p.OS {
	case "windows":
		return filepath.Join(append([]string{p.Getenv("APPDATA")}, parts...)...)
	case "darwin":
		return p.Home(append([]string{"Library", "Application Support"}, parts...)...)
	}

	return p.Config(parts...)
}

// InProject returns the path of a file in the project.
func (p Place) InProject(parts ...string) string {
	return filepath.Join(append([]string{p.Project}, parts...)...)
}

// Either returns the path of a file in the home directory or in the project, in a directory of the
// same name.
func (p Place) Either(scope string, parts ...string) string {
	if scope == Project {
		return p.InProject(parts...)
	}

	return p.Home(parts...)
}

// Folder returns the name of the directory for the files about a scope of a program. project is
// empty for User.
func Folder(program, scope, project string) string {
	if scope == User {
		return program
	}

	return program + "-" + scope + "-" + Digest([]byte(project))[:8]
}
