package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"
)

// exportFlags are the flags of the audit commands that read from a server.
type exportFlags struct {
	connection
	out       string
	publicKey string
}

func (a Assent) exportCommand() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export [--out FILE]",
		Short: "Export the ledger, for assent audit verify",
		Long:  "The export holds arguments and texts that were not redacted: with --out it is readable for its owner only, and verified once it is written.",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.export(cmd.Context(), f) },
	}
	flags := connected(cmd, &f.connection).Flags()
	flags.StringVar(&f.out, "out", "", "`FILE` to write; it must not exist yet; without it, standard output")
	flags.StringVar(&f.publicKey, "public-key", "", "with --out: `KEY` that must have signed, or the file that holds it")
	return cmd
}

func (a Assent) export(ctx context.Context, f exportFlags) error {
	if f.out == "" && a.OutTerminal {
		return errors.New("an export is for a file, not for a terminal: give --out FILE or redirect it")
	}
	server, err := a.dial(f.connection)
	if err != nil {
		return err
	}
	if f.out == "" {
		return answer(server.Export(ctx, a.Out))
	}
	if err := writeThrough(f.out, func(w io.Writer) error { return answer(server.Export(ctx, w)) }); err != nil {
		return err
	}
	verify := verifyFlags{asJSON: f.asJSON}
	if f.publicKey != "" {
		verify.publicKeys = []string{f.publicKey}
	}
	err = a.verify(ctx, verify, f.out)
	var loose *exitError
	if errors.As(err, &loose) && loose.code == ExitLoose { // it was written, and is whole: whether it is all is for the auditor to ask
		return nil
	}
	return err
}

// writeThrough writes a new file, readable for its owner only, whole or not at all.
func writeThrough(path string, fill func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return unmade(path, err)
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	if err := errors.Join(fill(f), f.Sync(), f.Close()); err != nil {
		return err
	}
	return unmade(path, os.Link(f.Name(), path))
}

func (a Assent) proofCommand() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "proof INDEX [--out FILE]",
		Short: "Prove one entry of the ledger, for assent audit verify",
		Args:  oneOf("the INDEX of an entry, as `assent show ID --all` lists them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			index, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || index < 0 {
				return fmt.Errorf("%q is no index, expected a whole number from 0", args[0])
			}
			return a.proof(cmd.Context(), f, index)
		},
	}
	connected(cmd, &f.connection).Flags().StringVar(&f.out, "out", "", "`FILE` to write; it must not exist yet; without it, standard output")
	return cmd
}

func (a Assent) proof(ctx context.Context, f exportFlags, index int64) error {
	server, err := a.dial(f.connection)
	if err != nil {
		return err
	}
	proof, err := server.Proof(ctx, index)
	if err != nil {
		return answer(err)
	}
	text, err := proof.MarshalJSON()
	if err != nil {
		return err
	}
	if f.out == "" {
		return a.writeOut(string(text)+"\n", jsonSafe)
	}
	return writeThrough(f.out, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}

// writeOut writes a text byte for byte, but to a terminal only what is safe there.
func (a Assent) writeOut(text string, safe func(string) string) error {
	if a.OutTerminal {
		text = safe(text)
	}
	if _, err := io.WriteString(a.Out, text); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

func (a Assent) checkpointCommand() *cobra.Command {
	var c connection
	cmd := &cobra.Command{
		Use:   "checkpoint",
		Short: "Print the signed checkpoint of the ledger; keep it for assent audit verify --since",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			server, err := a.dial(c)
			if err != nil {
				return err
			}
			checkpoint, err := server.Checkpoint(cmd.Context())
			switch {
			case err != nil:
				return answer(err)
			case c.asJSON:
				return a.printer().document(checkpoint)
			case checkpoint.Checkpoint == "":
				return &exitError{ExitNo, errors.New("the ledger has no entry yet, so there is nothing to sign")}
			}
			return a.writeOut(checkpoint.Checkpoint, scrub)
		},
	}
	return connected(cmd, &c)
}
