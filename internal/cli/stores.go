package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/assent-dev/assent/store"
)

// StoreConfig says which store, and with which key.
type StoreConfig struct {
	Where     string // path or postgres:// URL
	KeyFile   string
	Watermark string // file beside which the list of revoked tokens stands too; NoWatermark for none
	Create    bool   // a store that is not there is made, and a key for it
	// Unfinished opens a store whose restore was not finished.
	Unfinished bool
}

// NoWatermark is how a configuration says that nothing is remembered outside of the database.
const NoWatermark = "none"

// WithDefaults is where the key and the watermark are unless somebody says it: beside a store that is a file.
func (c StoreConfig) WithDefaults() (StoreConfig, error) {
	if err := checkStore(c.Where); err != nil {
		return c, err
	}
	if c.KeyFile == "" {
		if isURL(c.Where) {
			return c, errors.New("--key: expected a file: with PostgreSQL there is no place beside the store, and all replicas need the same key")
		}
		c.KeyFile = filepath.Join(filepath.Dir(c.Where), "assent.key")
	}
	if c.Watermark == "" {
		c.Watermark = c.KeyFile + ".watermark"
	}
	return c, nil
}

// errNoBackend says that this binary was built without the service.
var errNoBackend = errors.New("this program was built without the service")

// withStore opens a store for one piece of work.
func (a Assent) withStore(ctx context.Context, c StoreConfig, work func(store.Store) error) (err error) {
	if a.Backend.OpenStore == nil {
		return errNoBackend
	}
	if c, err = c.WithDefaults(); err != nil {
		return err
	}
	_, missing := os.Stat(c.Where)
	s, err := a.Backend.OpenStore(ctx, c)
	if err != nil {
		return err
	}
	if c.Create && missing != nil && !isURL(c.Where) { // the path may be misspelt, and a token in a store that nobody serves opens nothing
		fmt.Fprintf(a.Err, "assent: there was no store at %s, so a new one was made there\n", scrubLine(c.Where))
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return work(s)
}
