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
	"github.com/assent-dev/assent/cmd/internal/system"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/store"
)

// upkeep are the commands that maintain a store.
type upkeep struct{ Commands }

// storeUsage is the help of --store if ASSENT_STORE may be used instead.
const storeUsage = "`PATH` or postgres:// URL; ASSENT_STORE"

func (a upkeep) migrateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate --store STORE",
		Short: "Make the tables of a store, or bring them up to date, and say from which step to which",
		Long: "Every command that opens a store does it too. With PostgreSQL and a role of servers that may not change " +
			"tables, run it with the owner's role before\n" +
			"servers of a new version start; those of the old version go on meanwhile (docs/guides/postgresql.md).",
	}
	return a.onStore(cmd, config.DefaultStore, storeUsage, a.migrate)
}

func (a upkeep) migrate(ctx context.Context, c config.Store, asJSON bool) error {
	c.Create = true
	doc := migrated{Store: config.ShownStore(c.Where)}
	err := a.withStore(ctx, c, func(s store.Store) error {
		id, err := s.Identity(ctx)
		doc.From, doc.To = id.SchemaBefore, id.Schema
		return err
	})
	if err != nil {
		return err
	}
	return term.Print(a.Streams, asJSON, doc, func(p *term.Printer, m migrated) {
		switch {
		case m.From == m.To:
			p.Printf("%s: the tables are at step %d already\n", m.Store, m.To)
		default:
			p.Printf("%s: the tables went from step %d to step %d\n", m.Store, m.From, m.To)
		}
	})
}

// migrated is the JSON document of assent migrate.
type migrated struct {
	Store string `json:"store"`
	From  int    `json:"from"` // 0: there were no tables
	To    int    `json:"to"`
}

func (a upkeep) backupCommand() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "backup --store STORE --to FILE",
		Short: "Write everything that a store holds to one file, while it is in use",
		Long: "The file holds what the store holds, arguments and hashes of tokens included: it is made readable " +
			"for its owner only. The ledger's key is not in\n" +
			"it; nothing restores a backup without that key.",
	}
	cmd.Flags().StringVar(&to, "to", "", "`FILE` to write; it must not exist yet")
	term.Required(cmd, "to")
	return a.onStore(
		cmd, config.DefaultStore, storeUsage, func(ctx context.Context, c config.Store, asJSON bool) error {
			return a.backup(ctx, c, to, asJSON)
		},
	)
}

func (a upkeep) backup(ctx context.Context, c config.Store, to string, asJSON bool) error {
	if term.Exists(to) == nil {
		return fmt.Errorf("%s exists: a backup never overwrites anything", to)
	}
	err := a.withStore(ctx, c, func(s store.Store) error {
		return system.Create(to, 0o600, func(w io.Writer) error { return a.Backend.Backup(ctx, s, w) })
	})
	if err != nil {
		return err
	}
	doc := map[string]string{"store": config.ShownStore(c.Where), "to": to}
	return term.Print(a.Streams, asJSON, doc, func(p *term.Printer, _ map[string]string) {
		p.Printf("%s: written\n", to)
	})
}

func (a upkeep) restoreCommand() *cobra.Command {
	var from string
	var inPlace bool
	cmd := &cobra.Command{
		Use:   "restore --store STORE (--from FILE | --in-place)",
		Short: "Fill an empty store from a backup, or go on from a snapshot that was put back",
		Long: "What happened after the backup was made is lost, so nothing that it still holds may run by itself: " +
			"permits that nobody used, standing approvals,\n" +
			"sessions and calls on their way are void, and what was frozen or revoked stays so, also where only " +
			"the watermark knows it. Requests\n" +
			"that wait can be answered. The ledger tells of it. --in-place does the same to a store that was put " +
			"back as a whole, such as by a snapshot of its\n" +
			"volume; no server may run on it meanwhile.",
		PreRunE: func(*cobra.Command, []string) error {
			if (from == "") != inPlace {
				return errors.New("expected one of --from FILE and --in-place")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "`FILE` that assent backup wrote")
	cmd.Flags().
		BoolVar(&inPlace, "in-place", false, "go on from what the store holds, as after a snapshot was put back")
	return a.onStore(
		cmd, "", "`PATH` or postgres:// URL; it may be of the other engine than the backup's",
		func(ctx context.Context, c config.Store, asJSON bool) error { return a.restore(ctx, c, from, asJSON) },
	)
}

// Restored reports what a restore voided.
type Restored struct {
	Permits  int `json:"permits"`
	Grants   int `json:"grants"`
	Sessions int `json:"sessions"`
	Calls    int `json:"calls"`   // calls of RAP and MCP on their way, and what users of gateways allowed for a session
	Tokens   int `json:"tokens"`  // that were good in the backup, and known to be revoked
	Freezes  int `json:"freezes"` // that only the watermark knew
	Lost     int `json:"lost"`    // ledger entries that are known to have been behind the backup
	// Unknown is true if there is no watermark, so that it is unknown what was frozen, revoked or
	// recorded after the backup.
	Unknown bool `json:"unknown,omitempty"`
}

func (a upkeep) restore(ctx context.Context, c config.Store, from string, asJSON bool) (err error) {
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
	if _, ok := errors.AsType[*store.WatermarkError](err); ok {
		return fmt.Errorf(
			"%w\nGive --config FILE, the configuration of the server, or --watermark FILE, the watermark that it names "+
				"(the file used is %s); if that file is lost, --watermark none goes on without it and says so in the ledger",
			err, c.Watermark,
		)
	}
	if err != nil {
		return err
	}
	doc := restoredDoc{config.ShownStore(c.Where), from, done}
	return term.Print(a.Streams, asJSON, doc, printRestored)
}

// restoredDoc is the JSON document of a restore.
type restoredDoc struct {
	Store string `json:"store"`
	From  string `json:"from,omitempty"`
	Restored
}

func printRestored(p *term.Printer, r restoredDoc) {
	if r.From == "" {
		p.Printf("restored in place\n")
	} else {
		p.Printf("restored from %s\n", r.From)
	}
	if r.Unknown {
		p.Printf("  what was frozen, revoked or recorded after it is not known: there was no watermark\n")
	}
	for _, line := range []struct {
		n    int
		text string
	}{
		{r.Lost, "ledger entries behind it are lost"},
		{r.Permits, "permits that nobody had used are void"},
		{r.Grants, "standing approvals are void"},
		{r.Sessions, "sessions and sign-ins ended"},
		{r.Calls, "calls of RAP and MCP on their way ended"},
		{r.Tokens, "tokens are revoked, as they were"},
		{r.Freezes, "freezes are in force, as they were"},
	} {
		if line.n > 0 {
			p.Printf("  %d %s\n", line.n, line.text)
		}
	}
}

func (a upkeep) pruneCommand() *cobra.Command {
	var f pruneFlags
	cmd := &cobra.Command{
		Use:   "prune --store STORE --older-than 90d",
		Short: "Redact what people wrote and what calls carried, of requests that ended long ago",
		Long: "What ended before that time loses its arguments and texts, in the ledger too. Its entries and hashes " +
			"stay, so it verifies as before. Requests that\n" +
			"wait, and standing approvals that may be used, keep theirs. Nothing brings back what was redacted, except " +
			"a backup: look with --dry-run first.",
	}
	flags := cmd.Flags()
	flags.StringVar(&f.tenant, "tenant", config.DefaultTenant, "`NAME` of the tenant")
	flags.StringVar(&f.age, "older-than", "", "`TIME` such as 90d; at least 1d without --recent")
	flags.BoolVar(&f.recent, "recent", false, "allow an --older-than below 1d")
	flags.BoolVar(&f.dry, "dry-run", false, "redact nothing, only count")
	term.Required(cmd, "older-than")
	return a.onStore(
		cmd, config.DefaultStore, storeUsage, func(ctx context.Context, c config.Store, asJSON bool) error {
			return a.prune(ctx, c, f, asJSON)
		},
	)
}

// pruneFlags are the flags of assent prune.
type pruneFlags struct {
	tenant string
	age    string
	recent bool
	dry    bool
}

// leastPruneAge is the minimum of --older-than without --recent, because a smaller value is
// probably a mistake.
const leastPruneAge = 24 * time.Hour

func (a upkeep) prune(ctx context.Context, c config.Store, f pruneFlags, asJSON bool) error {
	age, err := term.ParseAge(f.age)
	if err != nil {
		return fmt.Errorf("--older-than: %w", err)
	}
	if age < leastPruneAge && !f.recent {
		return fmt.Errorf("--older-than: expected at least 1d, and found %s; --recent allows less", f.age)
	}
	tenant, err := c.Tenant(f.tenant)
	if err != nil {
		return err
	}
	doc := pruned{DryRun: f.dry}
	err = a.withStore(ctx, c, func(s store.Store) (err error) {
		doc.Requests, doc.Entries, err = a.Backend.Prune(ctx, s, tenant, time.Now().Add(-age), f.dry)
		return err
	})
	if err != nil {
		return err
	}
	return term.Print(a.Streams, asJSON, doc, func(p *term.Printer, x pruned) {
		if x.DryRun {
			p.Printf("would redact %d requests and %d ledger entries\n", x.Requests, x.Entries)
			return
		}
		p.Printf("redacted %d requests and %d ledger entries\n", x.Requests, x.Entries)
	})
}

// pruned is the JSON document of assent prune.
type pruned struct {
	DryRun   bool `json:"dry_run,omitempty"`
	Entries  int  `json:"entries"`
	Requests int  `json:"requests"`
}
