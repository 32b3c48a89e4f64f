package config

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// UserConfig is the configuration of a person: assent/config in their configuration directory, YAML with server and token_file.
type UserConfig struct {
	Server    string
	TokenFile string
}

// InConfigDir names a file beside the configuration of a person; "" when the environment names no place for it.
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
	src, err := term.ReadFile(file, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return cfg, nil
	}
	if err != nil {
		return cfg, err
	}
	err = a.readConfig(file, src, func(r *configReader, root *yamldoc.Node) {
		r.mapping(root, fields{"server": r.text(&cfg.Server), "token_file": r.path(&cfg.TokenFile)})
	})
	return cfg, err
}
