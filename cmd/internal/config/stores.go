package config

import (
	"errors"
	"net/url"
	"path/filepath"

	"github.com/assent-dev/assent/cmd/internal/stores"
)

// Store identifies a store and its key.
type Store struct {
	Where     string // path or postgres:// URL
	KeyFile   string
	Watermark string   // the list of revoked tokens is next to it; NoWatermark for none
	Create    bool     // a store that is not there is made, and a key for it
	Tenants   []string // that the server's configuration names; nil: not known
	// Published reads the ledger's public key from its file, instead of deriving it. Hooks set it,
	// because they start for each call of a tool.
	Published bool
	// Unfinished opens a store whose restore was not finished.
	Unfinished bool
}

// NoWatermark is the value with which no watermark is stored outside of the database.
const NoWatermark = "none"

// WithDefaults sets the key file, unless it is set, to assent.key in the directory of the store,
// and the watermark to a file next to the key. It returns an error for a PostgreSQL store without a
// key file.
func (c Store) WithDefaults() (Store, error) {
	if err := checkStore(c.Where); err != nil {
		return c, err
	}
	if c.KeyFile == "" {
		if stores.IsURL(c.Where) {
			return c, errors.New(
				"--key: expected a file: with PostgreSQL there is no place beside the store, and all replicas need " +
					"the same key",
			)
		}

		c.KeyFile = filepath.Join(filepath.Dir(c.Where), "assent.key")
	}

	if c.Watermark == "" {
		c.Watermark = c.KeyFile + ".watermark"
	}
	return c, nil
}

// ShownStore names a store without the password that its URL may contain.
func ShownStore(where string) string {
	if u, err := url.Parse(where); err == nil && stores.IsURL(where) {
		return u.Redacted()
	}
	return where
}
