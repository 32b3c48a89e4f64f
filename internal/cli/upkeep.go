package cli

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/store"
)

func (a Assent) backupCommand() *cobra.Command {
	var from storeFlags
	var to string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "backup --store STORE --to FILE",
		Short: "Write everything that a store holds to one file, while it is in use",
		Long:  "The file holds what the store holds, arguments and hashes of tokens included: it is made readable for its owner only. The ledger's key is not in it.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			where, err := from.where(a, cmd)
			if err != nil {
				return err
			}
			return a.backup(cmd.Context(), where, to, asJSON)
		},
	}
	storeFlag(cmd, &from, defaultStore, "`PATH` or postgres:// URL; ASSENT_STORE")
	cmd.Flags().StringVar(&to, "to", "", "`FILE` to write; it must not exist yet")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON document")
	required(cmd, "to")
	return cmd
}

// required marks flags that must be given.
func required(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flags were defined by the caller
		}
	}
}

func (a Assent) backup(ctx context.Context, where, to string, asJSON bool) error {
	if existing(to) == nil {
		return fmt.Errorf("%s exists: a backup never overwrites anything", to)
	}
	err := writeThrough(to, func(w io.Writer) error {
		return a.withStore(ctx, where, false, func(s store.Store) error { return s.Backup(ctx, w) })
	})
	if err != nil {
		return err
	}
	p := a.printer()
	if asJSON {
		return p.document(map[string]string{"store": shownStore(where), "to": to})
	}
	p.printf("%s: written\n", to)
	return p.done()
}

func (a Assent) restoreCommand() *cobra.Command {
	var into storeFlags
	var from string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "restore --store STORE --from FILE",
		Short: "Fill an empty store from a backup, all or nothing",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			where, err := into.where(a, cmd)
			if err != nil {
				return err
			}
			return a.restore(cmd.Context(), where, from, asJSON)
		},
	}
	storeFlag(cmd, &into, "", "`PATH` or postgres:// URL; it may be of the other engine than the backup's")
	cmd.Flags().StringVar(&from, "from", "", "`FILE` that assent backup wrote")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON document")
	required(cmd, "from")
	return cmd
}

func (a Assent) restore(ctx context.Context, where, from string, asJSON bool) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := a.withStore(ctx, where, true, func(s store.Store) error { return s.Restore(ctx, f) }); err != nil {
		return err
	}
	p := a.printer()
	if asJSON {
		return p.document(map[string]string{"store": shownStore(where), "from": from})
	}
	p.printf("restored from %s\n", from)
	return p.done()
}

// shownStore names a store without the password that its URL may hold.
func shownStore(where string) string {
	if u, err := url.Parse(where); err == nil && isURL(where) {
		return u.Redacted()
	}
	return where
}

func (a Assent) pruneCommand() *cobra.Command {
	var of storeFlags
	var tenant, age string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "prune --store STORE --older-than 90d",
		Short: "Redact what people wrote and what calls carried, of requests that ended long ago",
		Long:  "What ended before that time loses its arguments and texts. The ledger's entries and hashes stay, so it verifies as before.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := parseAge(age)
			if err != nil {
				return fmt.Errorf("--older-than: %w", err)
			}
			where, err := of.where(a, cmd)
			if err != nil {
				return err
			}
			return a.prune(cmd.Context(), where, tenant, d, asJSON)
		},
	}
	storeFlag(cmd, &of, defaultStore, "`PATH` or postgres:// URL; ASSENT_STORE")
	flags := cmd.Flags()
	flags.StringVar(&tenant, "tenant", defaultTenant, "`NAME` of the tenant")
	flags.StringVar(&age, "older-than", "", "`TIME` such as 90d")
	flags.BoolVar(&asJSON, "json", false, "print a JSON document")
	required(cmd, "older-than")
	return cmd
}

func (a Assent) prune(ctx context.Context, where, tenant string, age time.Duration, asJSON bool) error {
	if a.Backend.Prune == nil {
		return errNoBackend
	}
	return a.withStore(ctx, where, false, func(s store.Store) error {
		requests, entries, err := a.Backend.Prune(ctx, s, tenant, time.Now().Add(-age))
		if err != nil {
			return err
		}
		p := a.printer()
		if asJSON {
			return p.document(map[string]int{"requests": requests, "entries": entries})
		}
		p.printf("redacted %d requests and %d ledger entries\n", requests, entries)
		return p.done()
	})
}
