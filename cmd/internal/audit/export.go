package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/remote"
	"github.com/assent-dev/assent/cmd/internal/system"
	"github.com/assent-dev/assent/cmd/internal/term"
)

// exportFlags are the flags of the audit commands that read from a server.
type exportFlags struct {
	remote.Connection
	out       string
	publicKey string
}

func (a commands) exportCommand() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export [--out FILE]",
		Short: "Export the ledger, for assent audit verify",
		Long: "The export holds arguments and texts that were not redacted: with --out it is readable for its " +
			"owner only, and verified once it is written.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.export(cmd.Context(), f) },
	}
	flags := remote.Connected(cmd, &f.Connection).Flags()
	flags.StringVar(&f.out, "out", "", "`FILE` to write; it must not exist yet; without it, standard output")
	flags.StringVar(
		&f.publicKey,
		"public-key",
		"",
		"with --out: `KEY` that must have signed, or the file that holds it",
	)
	return cmd
}

func (a commands) export(ctx context.Context, f exportFlags) error {
	if f.out == "" && a.OutTerminal {
		return errors.New("an export is for a file, not for a terminal: give --out FILE or redirect it")
	}
	server, err := a.Dial(f.Connection)
	if err != nil {
		return err
	}
	const empty = "run this again once something was asked, decided or changed"
	if f.out == "" {
		return remote.ExplainMissing(server.Export(ctx, a.Out), empty)
	}
	if err := system.Create(f.out, 0o600, func(w io.Writer) error {
		return remote.ExplainMissing(server.Export(ctx, w), empty)
	}); err != nil {
		return err
	}
	verify := verifyFlags{asJSON: f.AsJSON}
	if f.publicKey != "" {
		verify.publicKeys = []string{f.publicKey}
	}
	err = a.verify(ctx, verify, f.out)
	if term.CodeOf(
		err,
	) == term.ExitLoose { // it was written, and is whole: whether it is all is for the auditor to ask
		return nil
	}
	return err
}

func (a commands) proofCommand() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "proof INDEX [--out FILE]",
		Short: "Prove one entry of the ledger, for assent audit verify",
		Args:  term.OneOf("the INDEX of an entry, as `assent show ID --all` lists them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			index, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || index < 0 {
				return fmt.Errorf("%q is no index, expected a whole number from 0", args[0])
			}
			return a.proof(cmd.Context(), f, index)
		},
	}
	remote.Connected(cmd, &f.Connection).
		Flags().
		StringVar(&f.out, "out", "", "`FILE` to write; it must not exist yet; without it, standard output")
	return cmd
}

func (a commands) proof(ctx context.Context, f exportFlags, index int64) error {
	server, err := a.Dial(f.Connection)
	if err != nil {
		return err
	}
	proof, err := server.Proof(ctx, index)
	if err != nil {
		return remote.ExplainMissing(err, "take an index from `assent show ID --all`, which lists them from 0 on")
	}
	text, err := proof.MarshalJSON()
	if err != nil {
		return err
	}
	if f.out == "" {
		return a.WriteOut(string(text)+"\n", term.JSONSafe)
	}
	return system.Create(f.out, 0o600, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}

func (a commands) checkpointCommand() *cobra.Command {
	var c remote.Connection
	cmd := &cobra.Command{
		Use:   "checkpoint",
		Short: "Print the signed checkpoint of the ledger; keep it for assent audit verify --since",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			server, err := a.Dial(c)
			if err != nil {
				return err
			}
			checkpoint, err := server.Checkpoint(cmd.Context())
			switch {
			case err != nil:
				return remote.Explain(err)
			case c.AsJSON:
				return a.Printer().Document(checkpoint)
			case checkpoint.Checkpoint == "":
				return term.No("the ledger has no entry yet, so there is nothing to sign")
			}

			return a.WriteOut(checkpoint.Checkpoint, term.Scrub)
		},
	}
	return remote.Connected(cmd, &c)
}
