package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store"
)

// Assent is the command assent.
type Assent struct {
	Streams
	// Backend is the heavy half, wired by cmd/assent. Commands whose part is nil say that they are not built in.
	Backend Backend

	channel string // what votes say they came through; "" means cli
}

// Backend is what the commands need beside a client: the service itself and its stores.
type Backend struct {
	// OpenStore opens a store. Unless Create is set, one that is not there is an error.
	OpenStore func(ctx context.Context, c StoreConfig) (store.Store, error)
	// CreateToken, RevokeToken, Thaw and Prune work on a store directly, and record it in the ledger.
	CreateToken func(ctx context.Context, s store.Store, tenant string, body openapi.TokenBody) (*openapi.CreatedToken, error)
	RevokeToken func(ctx context.Context, s store.Store, tenant, id string) error
	Thaw        func(ctx context.Context, s store.Store, tenant, agent, reason string) error
	Prune       func(ctx context.Context, s store.Store, tenant string, before time.Time) (requests, entries int, err error)
	// Backup writes a store to a file, and records it in the ledger.
	Backup func(ctx context.Context, s store.Store, w io.Writer) error
	// Restore fills a store from a backup, or goes on from what it holds when there is none (nil), and voids what must not outlive that.
	Restore func(ctx context.Context, c StoreConfig, from io.Reader) (Restored, error)
	// RotateKey binds a store to another key, which it makes when the file is not there, and returns both public keys.
	RotateKey func(ctx context.Context, c StoreConfig, keyFile, watermark string) (before, after string, err error)
	// Serve runs the service until ctx ends. It calls ready once, when it answers.
	Serve func(ctx context.Context, c ServeConfig, log io.Writer, ready func(Ready)) error
	// Check reads everything that Serve would, and tells what is wrong. It opens no store and reaches nobody.
	Check func(ctx context.Context, c ServeConfig) Checked
	// CheckOIDC asks the identity providers of a configuration what they offer.
	CheckOIDC func(ctx context.Context, c ServeConfig) (Checked, error)
	// Gateway runs one RAP gateway without a service beside it, until ctx ends. It calls ready once, when it answers.
	Gateway func(ctx context.Context, c GatewayConfig, log io.Writer, ready func(Ready)) error
}

// Run executes the command and returns its exit code.
func (a Assent) Run(args []string) int { return run(a.command(), a.Streams, args) }

// The groups of commands in the help.
const (
	groupDecide  = "decide"
	groupAnswer  = "answer"
	groupAudit   = "audit"
	groupOperate = "operate"
)

func (a Assent) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "assent",
		Short:   "Decide when an agent must stop and ask, ask people, and prove what ran",
		Version: Version,
		Args:    noCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetVersionTemplate("assent {{.Version}}\n")
	cmd.AddGroup(
		&cobra.Group{ID: groupDecide, Title: "For runtimes:"},
		&cobra.Group{ID: groupAnswer, Title: "For the people who answer:"},
		&cobra.Group{ID: groupAudit, Title: "For auditors:"},
		&cobra.Group{ID: groupOperate, Title: "For operators:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			cmd.AddCommand(c)
		}
	}
	add(groupDecide, a.decideCommand(), a.requestCommand(), a.rapCommand())
	add(groupAnswer, a.listCommand(), a.showCommand(), a.approveCommand(), a.denyCommand(), a.respondCommand(), a.chooseCommand(),
		a.dismissCommand(), a.editCommand(), a.cancelCommand(), a.watchCommand(), a.grantsCommand(), a.revokeCommand(), a.loginCommand())
	add(groupAudit, a.auditCommand(), a.statsCommand())
	add(groupOperate, a.serveCommand(), a.demoCommand(), a.tokenCommand(), a.freezeCommand(), a.thawCommand(), a.deliveriesCommand(), a.backupCommand(),
		a.restoreCommand(), a.pruneCommand(), a.keyCommand(), a.oidcCommand())
	return cmd
}

// noCommand refuses a word that is no command, and names the nearest.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return fmt.Errorf("there is no command %q, did you mean %s", args[0], strings.Join(near, " or "))
	}
	return fmt.Errorf("there is no command %q, `%s --help` lists them", args[0], cmd.CommandPath())
}

// untilSignal is a context that an interrupt or a request to stop ends. A second signal ends the process at once.
func untilSignal(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
