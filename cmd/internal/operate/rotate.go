package operate

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/keyfile"
	"github.com/assent-dev/assent/cmd/internal/term"
)

func (a upkeep) keyCommand() *cobra.Command {
	return term.Parent("key", "Make or change the key that a store is signed with", "",
		a.newKeyCommand(), a.rotateCommand())
}

func (a upkeep) newKeyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "new FILE",
		Short: "Make a key, before the first start of replicas that share it",
		Long: "FILE holds the key and FILE.pub the public key, which auditors need. A server on one machine makes its own " +
			"key on its first start.\nA file that is there already is left alone, and is an error.",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			host, err := os.Hostname()
			if err != nil {
				return err
			}
			key, made, err := keyfile.Make(args[0], host)
			if err != nil {
				return err
			}
			if !made {
				return fmt.Errorf("%s is there already: it was left alone", args[0])
			}
			_, err = fmt.Fprintf(a.Out, "%s\n", key.Signer.PublicKey())

			return err
		},
	}
}

func (a upkeep) rotateCommand() *cobra.Command {
	var next, watermark string
	cmd := &cobra.Command{
		Use:   "rotate --store STORE --key OLD --new-key NEW",
		Short: "Bind a store to another key",
		Long: "Stop all servers of the store first: those that hold the old key answer 503 from then on. NEW " +
			"is made, with NEW.pub, when it is not there. The\n" +
			"last entry of each ledger under the old key names the new one, and the checkpoint there is signed by " +
			"both, so that auditors who have the old\n" +
			"public key can go on (assent audit verify). All rows are authenticated with the new key, in one " +
			"transaction. Give servers the new file as\n" +
			"--key then, and NEW.watermark as --watermark where it is not beside it.",
	}
	cmd.Flags().StringVar(&next, "new-key", "", "`FILE` of the new key")
	cmd.Flags().
		StringVar(
			&watermark,
			"new-watermark",
			"",
			"`FILE` of the new key's watermark, or none; FILE.watermark beside the new key",
		)
	term.Required(cmd, "new-key")
	return a.onStore(
		cmd, "", "`PATH` or postgres:// URL", func(ctx context.Context, c config.Store, asJSON bool) error {
			return a.rotate(ctx, c, next, watermark, asJSON)
		},
	)
}

func (a upkeep) rotate(ctx context.Context, c config.Store, next, watermark string, asJSON bool) (err error) {
	if c, err = c.WithDefaults(); err != nil {
		return err
	}
	if next == c.KeyFile {
		return errors.New(
			"--new-key: expected another file than that of the old key: auditors may still need the old one",
		)
	}
	if watermark == "" {
		watermark = next + ".watermark"
	}
	before, after, err := a.Backend.RotateKey(ctx, c, next, watermark)
	if err != nil {
		return err
	}
	doc := map[string]string{"store": config.ShownStore(c.Where), "old": before, "new": after}
	return term.Print(a.Streams, asJSON, doc, func(p *term.Printer, _ map[string]string) {
		p.Printf("the store is signed by %s from now on, and no longer by %s\n", after, before)
		p.Printf("start the servers with --key %s; keep %s.pub for auditors\n", next, c.KeyFile)
	})
}
