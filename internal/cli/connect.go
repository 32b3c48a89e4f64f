package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/template"
)

// defaultServer is where `assent serve` listens unless it is told otherwise.
const defaultServer = "http://127.0.0.1:7717"

// connection is what every command that speaks to a server is told.
type connection struct {
	server    string
	tokenFile string
	asJSON    bool
}

// connected adds the flags of a connection to a command.
func connected(cmd *cobra.Command, c *connection) *cobra.Command {
	flags := cmd.Flags()
	flags.StringVar(&c.server, "server", "", "`URL` of the server; ASSENT_SERVER, then server in the configuration, then "+defaultServer)
	flags.StringVar(&c.tokenFile, "token-file", "", "`FILE` that holds the token; ASSENT_TOKEN, then token_file in the configuration")
	flags.BoolVar(&c.asJSON, "json", false, "print the API's JSON document")
	return cmd
}

// dial makes the client. It doesn't speak to the server yet.
func (a Assent) dial(c connection) (*client.Client, error) {
	cfg, err := a.userConfig()
	if err != nil {
		return nil, err
	}
	server := cmp.Or(c.server, a.env("ASSENT_SERVER"), cfg.server, defaultServer)
	token, err := a.token(c, cfg)
	if err != nil {
		return nil, err
	}
	a.warnIfExposed(server)
	return client.New(server, token, client.Options{UserAgent: "assent/" + Version})
}

func (a Assent) warnIfExposed(server string) {
	if exposed(server) {
		fmt.Fprintf(a.Err, "assent: warning: %s is not https, so the token can be read on the way\n", template.Escape(server))
	}
}

// exposed tells whether a token would leave the machine in the clear.
func exposed(server string) bool {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" {
		return false
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() != "localhost" && (err != nil || !addr.IsLoopback())
}

func (a Assent) token(c connection, cfg userConfig) (string, error) {
	if token := a.env("ASSENT_TOKEN"); token != "" && c.tokenFile == "" {
		return token, nil
	}
	file := cmp.Or(c.tokenFile, cfg.tokenFile)
	if file == "" {
		return "", errors.New("no token: set ASSENT_TOKEN or give --token-file (`assent login` gets one of yours, `assent token create` makes one for a runtime)")
	}
	text, err := readInput(file, nil)
	if err != nil {
		return "", fmt.Errorf("the token: %w", err)
	}
	if token := strings.TrimSpace(string(text)); token != "" {
		return token, nil
	}
	return "", fmt.Errorf("the token: %s is empty", file)
}

// userConfig is the configuration of a person: assent/config in their configuration directory, YAML with server and token_file.
type userConfig struct {
	server    string
	tokenFile string
}

// inConfigDir names a file beside the configuration of a person; "" when the environment names no place for it.
func (a Assent) inConfigDir(name string) string {
	dir := a.env("XDG_CONFIG_HOME")
	if dir == "" && a.env("HOME") != "" {
		dir = filepath.Join(a.env("HOME"), ".config")
	}
	if dir == "" {
		return ""
	}

	return filepath.Join(dir, "assent", name)
}

func (a Assent) userConfig() (userConfig, error) {
	var cfg userConfig
	file := a.inConfigDir("config")
	if file == "" {
		return cfg, nil
	}
	src, err := readInput(file, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return cfg, nil
	}
	if err != nil {
		return cfg, err
	}
	err = a.readConfig(file, src, func(r *configReader, root *yamldoc.Node) {
		r.mapping(root, fields{"server": r.text(&cfg.server), "token_file": r.path(&cfg.tokenFile)})
	})
	return cfg, err
}

// answer turns an error of a client into one for the command line: what was wrong, and what to do next. The answer "no" has its own exit code.
func answer(err error) error {
	var p *client.Problem
	if !errors.As(err, &p) {
		var lost *url.Error
		if errors.As(err, &lost) {
			return fmt.Errorf("the server can't be reached: %w; nothing was changed as far as we know, look and try again", lost)
		}
		return err
	}
	text := template.Escape(cmp.Or(p.Detail, p.Title)) + " (" + template.Escape(string(p.Problem.Code)) + ")"
	if next := nextStep(p); next != "" {
		text += "\nnext: " + next
	}
	return &exitError{code: problemCode(p), err: errors.New(text)}
}

// problemCode tells a no of the server from everything that kept it from answering.
func problemCode(p *client.Problem) int {
	switch p.Status {
	case http.StatusForbidden, http.StatusConflict, http.StatusPreconditionFailed, http.StatusLocked, http.StatusGone:
		return ExitNo
	}
	return ExitFailure
}

// nextStep says what a person does about a problem.
func nextStep(p *client.Problem) string {
	switch p.Problem.Code {
	case openapi.CodeVersionMismatch:
		return "the request changed since it was read: look at it again (assent show) and answer what it is now"
	case openapi.CodeBindingMismatch:
		return "an approver may have edited the call: look at it again (assent show), and answer or run what it is now"
	case openapi.CodeUnauthenticated, openapi.CodeTokenExpired, openapi.CodeTokenRevoked:
		return "get a token from whoever runs the server (assent token create), and set ASSENT_TOKEN"
	case openapi.CodeMissingScope, openapi.CodeNoPerson, openapi.CodeUnknownPerson:
		return "use a token with that scope and person (assent token create --scopes … --person …)"
	case openapi.CodeNotFound:
		return "look at the id: `assent list --state all`, `assent grants --all` and `assent freeze --list` show what this token may see"
	case openapi.CodeUnavailable:
		return retryStep("the server can't work with its store (its log says why): ", p.RetryAfter)
	}
	switch p.NextAction {
	case openapi.NextActionRetry:
		return retryStep("", p.RetryAfter)
	case openapi.NextActionRequest:
		return "present the call again: it needs a new request"
	}
	return ""
}

func retryStep(why string, seconds int) string {
	if seconds > 0 {
		return fmt.Sprintf("%stry the same again in %d seconds", why, seconds)
	}
	return why + "try the same again later"
}

// existing checks that a file is there, for a clear message before anything else happens.
func existing(path string) error {
	_, err := os.Stat(path)
	return err
}
