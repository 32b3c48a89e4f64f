package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// storeFlags say where a store is.
type storeFlags struct {
	store string
	file  string // that holds it
}

var errTwoStores = errors.New("--store and --store-file both say where the store is: expected one of them")

// storeFlag adds the flags of a store to a command.
func storeFlag(cmd *cobra.Command, f *storeFlags, standard, usage string) {
	cmd.Flags().StringVar(&f.store, "store", standard, usage)
	cmd.Flags().StringVar(&f.file, "store-file", "", "`FILE` that holds what --store would say, for a URL with a password")
}

// where tells where the store is by the flags, else by ASSENT_STORE, else by the standard of the flag.
func (f storeFlags) where(a Assent, cmd *cobra.Command) (string, error) {
	stored, filed := cmd.Flags().Changed("store"), cmd.Flags().Changed("store-file")
	if stored && filed {
		return "", errTwoStores
	}
	where, err := a.whereStore(f.store, f.file, stored || filed)
	if err == nil && where == "" {
		err = errors.New("--store: expected a path, or a postgres:// URL; --store-file and ASSENT_STORE can say it too")
	}
	return where, err
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
