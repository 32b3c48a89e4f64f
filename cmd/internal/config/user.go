package config

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// UserConfig is the configuration of a person: assent/config in their
// configuration directory, YAML with server and token_file.
type UserConfig struct {
	Server    string `doc:"server"`
	TokenFile string `doc:"token_file"`
}

// InConfigDir returns the path of a file in the person's configuration directory, or an empty
// string if the environment defines no directory.
func (a Reader) InConfigDir(name string) string {
	dir := a.Getenv("XDG_CONFIG_HOME")
	if dir == "" && a.Getenv("HOME") != "" {
		dir = filepath.Join(a.Getenv("HOME"), ".config")
	}
	if dir == "" {
		return ""
	}

	return filepath.Join(dir, "assent", name)
}

func (a Reader) UserConfig() (UserConfig, error) {
	var cfg UserConfig
	file := a.InConfigDir("config")
	if file == "" {
		return cfg, nil
	}
	err := a.read(file, "user", &cfg)
	if errors.Is(err, fs.ErrNotExist) {
		return UserConfig{}, nil
	}

	return cfg, err
}
