package answer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/remote"
	"github.com/assent-dev/assent/cmd/internal/system"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/server/openapi"
)

// loginFlags are the flags of assent login.
type loginFlags struct {
	server    string
	tokenFile string
	name      string
	asJSON    bool
}

func (a commands) loginCommand() *cobra.Command {
	var f loginFlags
	cmd := &cobra.Command{
		Use:   "login [--server URL] [--token-file FILE]",
		Short: "Sign this command line in as yourself, with a code that you type in the inbox",
		Long: "login prints an address and a code. Open the address, sign in there, and type the code: the command " +
			"line then has a token of\n" +
			"yours that reads and answers, for 12 hours. It is kept in FILE, readable by you alone; without " +
			"--token-file, where token_file in\n" +
			"the configuration says, or else in the file token beside the configuration.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := system.UntilSignal(cmd)
			defer stop()
			return a.login(ctx, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(
		&f.server,
		"server",
		"",
		"`URL` of the server; ASSENT_SERVER, then server in the configuration, then "+remote.DefaultServer,
	)
	flags.StringVar(&f.tokenFile, "token-file", "", "`FILE` to keep the token in")
	flags.StringVar(
		&f.name,
		"name",
		"",
		"what to call this command line in the inbox and the ledger: a `NAME` of letters, digits and ._-; the machine's",
	)
	flags.BoolVar(&f.asJSON, "json", false, "print the token as the API's JSON document, and keep it nowhere")

	return cmd
}

func (a commands) login(ctx context.Context, f loginFlags) error {
	cfg, err := a.UserConfig()
	if err != nil {
		return err
	}
	file := cmp.Or(f.tokenFile, cfg.TokenFile, a.InConfigDir("token"))
	if file == "" && !f.asJSON {
		return errors.New(
			"--token-file: expected a file, since this machine names no directory for configuration (HOME, " +
				"XDG_CONFIG_HOME)",
		)
	}

	address := cmp.Or(f.server, a.Getenv("ASSENT_SERVER"), cfg.Server, remote.DefaultServer)
	server, err := client.New(address, "", client.Options{UserAgent: "assent/" + term.Version})
	if err != nil {
		return err
	}
	a.WarnIfExposed(address)
	made, err := a.signIn(ctx, server, cmp.Or(f.name, machineName()))
	if err != nil {
		return err
	}
	if f.asJSON {
		return a.Printer().Document(made)
	}
	if err := a.keepToken(file, address, cfg, made.Secret); err != nil {
		return err
	}
	p := a.Printer()
	p.Printf(
		"signed in as %s until %s; the token is in %s\n",
		made.Token.Person,
		term.Stamp(made.Token.Expires),
		file,
	)

	return p.Done()
}

// signIn shows the code and waits until the person has signed in.
func (a commands) signIn(ctx context.Context, server *client.Client, name string) (*openapi.CreatedToken, error) {
	device, err := server.BeginDevice(ctx, name)
	if err != nil {
		return nil, remote.Explain(err)
	}
	fmt.Fprintf(a.Err, "Open %s, sign in, and type this code:\n\n    %s\n\nWaiting until %s.\n",
		term.ScrubLine(device.VerificationURL), term.ScrubLine(device.UserCode), term.Stamp(device.Expires))
	ctx, cancel := context.WithDeadline(ctx, device.Expires.Add(time.Second))
	defer cancel()
	made, err := server.WaitDevice(ctx, device)
	switch {
	case ctx.Err() != nil:
		return nil, term.No("nobody confirmed the code")
	case err != nil:
		return nil, remote.Explain(err)
	}

	return made, nil
}

// keepToken writes the token to a file that only its owner can read. If no token file is
// configured, it creates the person's configuration. If the configuration exists already, it prints
// the line to add.
func (a commands) keepToken(file, server string, cfg config.UserConfig, secret string) error {
	if err := system.ReplacePrivate(file, secret+"\n"); err != nil {
		return fmt.Errorf("keep the token: %w", err)
	}
	config := a.InConfigDir("config")
	if cfg.TokenFile != "" || config == "" {
		return nil
	}
	full, err := filepath.Abs(file)
	if err != nil {
		return fmt.Errorf("keep the token: %w", err)
	}
	if _, err := os.Stat(config); err == nil {
		fmt.Fprintf(a.Err, "assent: put this line into %s, or give --token-file:\ntoken_file: %q\n", config, full)
		return nil
	}
	if err := system.ReplacePrivate(config, fmt.Sprintf("server: %q\ntoken_file: %q\n", server, full)); err != nil {
		return fmt.Errorf("keep where the token is: %w", err)
	}

	return nil
}

// machineName derives a name from the machine's name.
func machineName() string {
	host, _ := os.Hostname() // only a name for people to tell command lines apart
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return -1
	}, host)
	name = strings.TrimLeft(name, "-.")
	if len(name) > 60 {
		name = name[:60]
	}

	return cmp.Or(name, "command-line")
}
