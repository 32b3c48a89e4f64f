package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/stores"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store"
)

// Backend has the functions that the commands need in addition to a client: the service itself and
// its stores.
type Backend struct {
	// OpenStore opens a store. If the store doesn't exist, it returns an error unless Create is
	// set.
	OpenStore func(ctx context.Context, c config.Store) (store.Store, error)
	// CreateToken, RevokeToken, Thaw and Prune work on a store
	// directly, and record it in the ledger.
	CreateToken func(
		ctx context.Context, s store.Store, tenant string, body openapi.TokenBody,
	) (*openapi.CreatedToken, error)
	RevokeToken func(ctx context.Context, s store.Store, tenant, id string) error
	Thaw        func(ctx context.Context, s store.Store, tenant, agent, reason string) error
	// Prune only counts if dry is set.
	Prune func(
		ctx context.Context, s store.Store, tenant string, before time.Time, dry bool,
	) (requests, entries int, err error)
	// Backup writes a store to a file, and records it in the ledger.
	Backup func(ctx context.Context, s store.Store, w io.Writer) error
	// Restore fills a store from a backup, or continues with the store's own content if from is
	// nil, and voids what must not outlive a restore.
	Restore func(ctx context.Context, c config.Store, from io.Reader) (Restored, error)
	// RotateKey binds a store to another key and returns both public keys. It creates the key if
	// the file doesn't exist.
	RotateKey func(ctx context.Context, c config.Store, keyFile, watermark string) (before, after string, err error)
	// Serve runs the service until ctx ends. It calls ready once, when the service answers.
	Serve func(ctx context.Context, c config.Serve, log io.Writer, ready func(Ready)) error
	// Check reads everything that Serve would read, and reports what is wrong. It opens no store
	// and makes no network requests.
	Check func(ctx context.Context, c config.Serve) Checked
	// CheckOIDC reads the metadata of the configured identity providers.
	CheckOIDC func(ctx context.Context, c config.Serve) (Checked, error)
	// Gateway runs one RAP gateway without a service until ctx ends. It calls ready once, when the
	// gateway answers.
	Gateway func(ctx context.Context, c config.Gateway, log io.Writer, ready func(Ready)) error
	// MCP runs an MCP gateway until ctx ends, or until the client on the standard streams has
	// disconnected.
	MCP func(ctx context.Context, c config.MCP, streams term.Streams) error
	// MCPInbox runs only the inbox of an MCP gateway, on the same store, for the user of this
	// machine. file contains their token.
	MCPInbox func(
		ctx context.Context, c config.MCP, person string, log io.Writer, ready func(r Ready, file string),
	) error
}

// onStore completes a command that works directly on a store: it adds the flags that select the
// store, and --json.
func (a upkeep) onStore(
	cmd *cobra.Command, standard, usage string,
	run func(ctx context.Context, c config.Store, asJSON bool) error,
) *cobra.Command {
	var f config.StoreFlags
	var asJSON bool
	config.StoreFlag(cmd, &f, standard, usage)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON document")
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		where, err := f.Locate(a.Reader, cmd)
		if err != nil {
			return err
		}
		return run(cmd.Context(), where, asJSON)
	}

	return cmd
}

// withStore opens a store, runs work and closes the store.
func (a upkeep) withStore(ctx context.Context, c config.Store, work func(store.Store) error) (err error) {
	if c, err = c.WithDefaults(); err != nil {
		return err
	}
	_, missing := os.Stat(c.Where)
	s, err := a.Backend.OpenStore(ctx, c)
	if err != nil {
		return err
	}
	// warn, because the path may be misspelt, and a token in a store without a service is useless
	if c.Create && missing != nil && !stores.IsURL(c.Where) {
		fmt.Fprintf(
			a.Err,
			"assent: there was no store at %s, so a new one was made there\n",
			term.ScrubLine(c.Where),
		)
	}

	defer func() { err = errors.Join(err, s.Close()) }()
	return work(s)
}
