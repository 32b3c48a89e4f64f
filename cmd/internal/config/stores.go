package config

import (
	"errors"
	"net/url"
	"path/filepath"

	"github.com/assent-dev/assent/cmd/internal/stores"
)

// Store says which store, and with which key.
type Store struct {
	Where     string // path or postgres:// URL
	KeyFile   string
	Watermark string   // file beside which the list of revoked tokens stands too; NoWatermark for none
	Create    bool     // a store that is not there is made, and a key for it
	Tenants   []string // that the server's configuration names; nil: not known
	// Unfinished opens a store whose restore was not finished.
	Unfinished bool
}

// NoWatermark is how a configuration says that nothing is remembered
// outside of the database.
const NoWatermark = "none"

// WithDefaults is where the key and the watermark are unless somebody
// says it: beside a store that is a file.
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

// ShownStore names a store without the password that its URL may hold.
func ShownStore(where string) string {
	if u, err := url.Parse(where); err == nil && stores.IsURL(where) {
		return u.Redacted()
	}
	return where
}
