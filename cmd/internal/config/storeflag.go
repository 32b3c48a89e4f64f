package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/term"
)

// StoreFlags say which store a command works on itself.
type StoreFlags struct {
	Store
	File      string // that holds where it is
	ServeFile string // configuration of the server, for what the flags leave out
}

var ErrTwoStores = errors.New("--store and --store-file both say where the store is: expected one of them")

// StoreFlag adds the flags of a store to a command.
func StoreFlag(cmd *cobra.Command, f *StoreFlags, standard, usage string) {
	flags := cmd.Flags()
	flags.StringVar(&f.Where, "store", standard, usage)
	flags.StringVar(
		&f.File,
		"store-file",
		"",
		"`FILE` that holds what --store would say, for a URL with a password",
	)
	flags.StringVar(&f.KeyFile, "key", "", "`FILE` of the ledger's key; assent.key beside a store that is a file")
	flags.StringVar(
		&f.Watermark,
		"watermark",
		"",
		"`FILE` that remembers how far the ledger had come, or none; FILE.watermark beside the key",
	)
	flags.StringVar(
		&f.ServeFile,
		"config",
		"",
		"YAML `FILE` of assent serve, which says the store, the key and the watermark; a flag goes before it",
	)
}

// Locate returns the location of the store: from the flags, or else from ASSENT_STORE, or else the
// flag's default.
func (f StoreFlags) Locate(a Reader, cmd *cobra.Command) (Store, error) {
	stored, filed := cmd.Flags().Changed("store"), cmd.Flags().Changed("store-file")
	if stored && filed {
		return f.Store, ErrTwoStores
	}
	if f.ServeFile != "" && !stored {
		f.Where = ""
	}
	c, err := f.Config(a, stored || filed)
	if err == nil && c.Where == "" {
		err = errors.New(
			"--store: expected a path, or a postgres:// URL; --store-file and ASSENT_STORE can say it too",
		)
	}
	return c, err
}

// Config returns the store that the flags select. ASSENT_STORE takes precedence over flags that
// were not given. Missing values come from the server's configuration, if there is one.
func (f StoreFlags) Config(a Reader, given bool) (c Store, err error) {
	c = f.Store
	if f.ServeFile != "" {
		cfg, err := a.readServe(f.ServeFile)
		if err != nil {
			return c, err
		}
		if f.Where == "" && f.File == "" {
			f.Where, f.File = cfg.Store, cfg.StoreFile
		}
		c.KeyFile = cmp.Or(c.KeyFile, cfg.KeyFile)
		c.Watermark = cmp.Or(c.Watermark, cfg.Watermark)
		for _, t := range cfg.Tenants {
			c.Tenants = append(c.Tenants, t.Name)
		}
	}
	c.Where, err = a.whereStore(f.Where, f.File, given)
	return c, err
}

// Tenant returns the tenant of a command. If the server's configuration is known, the tenant must
// be in it; if it has only one tenant, the flag may be omitted.
func (c Store) Tenant(name string) (string, error) {
	switch {
	case c.Tenants == nil || slices.Contains(c.Tenants, name):
		return name, nil
	case len(c.Tenants) == 1 && name == DefaultTenant:
		return c.Tenants[0], nil
	}
	return "", fmt.Errorf(
		"--tenant: the configuration has no tenant %q, expected one of %s", name, strings.Join(c.Tenants, ", "),
	)
}

// whereStore returns the location of the store: from ASSENT_STORE unless flags were given, otherwise
// from the content of file if file is not empty, otherwise store itself.
func (a Reader) whereStore(store, file string, given bool) (string, error) {
	if env := a.Getenv("ASSENT_STORE"); env != "" && !given {
		return env, nil
	}
	if file == "" {
		return store, nil
	}
	text, err := term.ReadFile(file, nil)
	if err != nil {
		return "", fmt.Errorf("the file that says where the store is: %w", err)
	}
	if where := strings.TrimSpace(string(text)); where != "" {
		return where, nil
	}
	return "", fmt.Errorf("the file that says where the store is: %s is empty", file)
}
