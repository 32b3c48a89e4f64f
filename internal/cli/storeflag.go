package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// storeFlags say which store a command works on itself.
type storeFlags struct {
	StoreConfig
	file string // that holds where it is
}

var errTwoStores = errors.New("--store and --store-file both say where the store is: expected one of them")

// storeFlag adds the flags of a store to a command.
func storeFlag(cmd *cobra.Command, f *storeFlags, standard, usage string) {
	flags := cmd.Flags()
	flags.StringVar(&f.Where, "store", standard, usage)
	flags.StringVar(&f.file, "store-file", "", "`FILE` that holds what --store would say, for a URL with a password")
	flags.StringVar(&f.KeyFile, "key", "", "`FILE` of the ledger's key; assent.key beside a store that is a file")
	flags.StringVar(&f.Watermark, "watermark", "", "`FILE` that remembers how far the ledger had come, or none; FILE.watermark beside the key")
}

// where tells where the store is by the flags, else by ASSENT_STORE, else by the standard of the flag.
func (f storeFlags) where(a Assent, cmd *cobra.Command) (StoreConfig, error) {
	stored, filed := cmd.Flags().Changed("store"), cmd.Flags().Changed("store-file")
	if stored && filed {
		return f.StoreConfig, errTwoStores
	}
	c, err := f.config(a, stored || filed)
	if err == nil && c.Where == "" {
		err = errors.New("--store: expected a path, or a postgres:// URL; --store-file and ASSENT_STORE can say it too")
	}
	return c, err
}

// config is which store the flags say, with ASSENT_STORE before them unless they were given.
func (f storeFlags) config(a Assent, given bool) (c StoreConfig, err error) {
	c = f.StoreConfig
	c.Where, err = a.whereStore(f.Where, f.file, given)
	return c, err
}

// whereStore tells where the store is. The environment goes before everything but flags that were given; a file that
// holds it goes before the text beside it.
func (a Assent) whereStore(store, file string, given bool) (string, error) {
	if env := a.env("ASSENT_STORE"); env != "" && !given {
		return env, nil
	}
	if file == "" {
		return store, nil
	}
	text, err := readInput(file, nil)
	if err != nil {
		return "", fmt.Errorf("the file that says where the store is: %w", err)
	}
	if where := strings.TrimSpace(string(text)); where != "" {
		return where, nil
	}
	return "", fmt.Errorf("the file that says where the store is: %s is empty", file)
}
