package cli

import (
	"context"
	"errors"
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
		Long: "The file holds what the store holds, arguments and hashes of tokens included: it is made readable for its owner only. The ledger's key is not in\n" +
			"it; nothing restores a backup without that key.",
		Args: cobra.NoArgs,
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

func (a Assent) backup(ctx context.Context, c StoreConfig, to string, asJSON bool) error {
	if a.Backend.Backup == nil {
		return errNoBackend
	}
	if existing(to) == nil {
		return fmt.Errorf("%s exists: a backup never overwrites anything", to)
	}
	err := a.withStore(ctx, c, func(s store.Store) error {
		return writeThrough(to, func(w io.Writer) error { return a.Backend.Backup(ctx, s, w) })
	})
	if err != nil {
		return err
	}
	p := a.printer()
	if asJSON {
		return p.document(map[string]string{"store": shownStore(c.Where), "to": to})
	}
	p.printf("%s: written\n", to)
	return p.done()
}

func (a Assent) restoreCommand() *cobra.Command {
	var into storeFlags
	var from string
	var inPlace, asJSON bool
	cmd := &cobra.Command{
		Use:   "restore --store STORE (--from FILE | --in-place)",
		Short: "Fill an empty store from a backup, or go on from a snapshot that was put back",
		Long: "What happened after the backup was made is lost, so nothing that it still holds may run by itself: permits that nobody used, standing approvals,\n" +
			"sessions and RAP calls on their way are void, and what was frozen or revoked stays so, also where only the files beside the key know it. Requests\n" +
			"that wait can be answered. The ledger tells of it. --in-place does the same to a store that was put back as a whole, such as by a snapshot of its\n" +
			"volume; no server may run on it meanwhile.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (from == "") != inPlace {
				return errors.New("expected one of --from FILE and --in-place")
			}
			where, err := into.where(a, cmd)
			if err != nil {
				return err
			}
			return a.restore(cmd.Context(), where, from, asJSON)
		},
	}
	storeFlag(cmd, &into, "", "`PATH` or postgres:// URL; it may be of the other engine than the backup's")
	cmd.Flags().StringVar(&from, "from", "", "`FILE` that assent backup wrote")
	cmd.Flags().BoolVar(&inPlace, "in-place", false, "go on from what the store holds, as after a snapshot was put back")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON document")
	return cmd
}

// Restored says what a restore took back.
type Restored struct {
	Permits  int `json:"permits"`
	Grants   int `json:"grants"`
	Sessions int `json:"sessions"`
	Calls    int `json:"calls"`   // RAP calls on their way, and what users of gateways allowed for a session
	Tokens   int `json:"tokens"`  // that were good in the backup, and known to be revoked
	Freezes  int `json:"freezes"` // that only the watermark knew
	Lost     int `json:"lost"`    // ledger entries that are known to have been behind the backup
}

func (a Assent) restore(ctx context.Context, c StoreConfig, from string, asJSON bool) (err error) {
	if a.Backend.Restore == nil {
		return errNoBackend
	}
	var in io.Reader
	if from != "" {
		f, err := os.Open(from)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	if c, err = c.WithDefaults(); err != nil {
		return err
	}
	c.Create, c.Unfinished = from != "", true
	done, err := a.Backend.Restore(ctx, c, in)
	if err != nil {
		return err
	}
	p := a.printer()
	if asJSON {
		return p.document(struct {
			Store string `json:"store"`
			From  string `json:"from,omitempty"`
			Restored
		}{shownStore(c.Where), from, done})
	}
	if from == "" {
		p.printf("restored in place\n")
	} else {
		p.printf("restored from %s\n", from)
	}
	p.restored(done)
	return p.done()
}

func (p *printer) restored(r Restored) {
	for _, line := range []struct {
		n    int
		text string
	}{
		{r.Lost, "ledger entries behind it are lost"}, {r.Permits, "permits that nobody had used are void"}, {r.Grants, "standing approvals are void"},
		{r.Sessions, "sessions and sign-ins ended"}, {r.Calls, "RAP calls on their way ended"}, {r.Tokens, "tokens are revoked, as they were"},
		{r.Freezes, "freezes are in force, as they were"},
	} {
		if line.n > 0 {
			p.printf("  %d %s\n", line.n, line.text)
		}
	}
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

func (a Assent) prune(ctx context.Context, c StoreConfig, tenant string, age time.Duration, asJSON bool) error {
	if a.Backend.Prune == nil {
		return errNoBackend
	}
	return a.withStore(ctx, c, func(s store.Store) error {
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
