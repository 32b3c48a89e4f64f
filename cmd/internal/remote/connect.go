package remote

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/template"
)

// DefaultServer is the default address of `assent serve`.
const DefaultServer = "http://127.0.0.1:7717"

// Connection holds the flags of every command that connects to a server.
type Connection struct {
	server    string
	tokenFile string
	AsJSON    bool
}

// Connected adds the flags of a connection to a command.
func Connected(cmd *cobra.Command, c *Connection) *cobra.Command {
	flags := cmd.Flags()
	flags.StringVar(
		&c.server,
		"server",
		"",
		"`URL` of the server; ASSENT_SERVER, then server in the configuration, then "+DefaultServer,
	)
	flags.StringVar(
		&c.tokenFile,
		"token-file",
		"",
		"`FILE` that holds the token; ASSENT_TOKEN, then token_file in the configuration",
	)
	flags.BoolVar(&c.AsJSON, "json", false, "print the API's JSON document")
	return cmd
}

// TokenFile returns the file that a flag names, or an empty string if none does.
func (c Connection) TokenFile() string { return c.tokenFile }

// Dial creates the client. It doesn't contact the server yet.
func (a Caller) Dial(c Connection) (*client.Client, error) {
	cfg, err := a.UserConfig()
	if err != nil {
		return nil, err
	}
	server := cmp.Or(c.server, a.Getenv("ASSENT_SERVER"), cfg.Server, DefaultServer)
	token, err := a.token(c, cfg)
	if err != nil {
		return nil, err
	}
	a.WarnIfExposed(server)
	return client.New(server, token, client.Options{UserAgent: "assent/" + term.Version})
}

func (a Caller) WarnIfExposed(server string) {
	if Exposed(server) {
		fmt.Fprintf(
			a.Err,
			"assent: warning: %s is not https, so the token can be read on the way\n",
			template.Escape(server),
		)
	}
}

// Exposed reports whether a token would be sent to another machine unencrypted.
func Exposed(server string) bool {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" {
		return false
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() != "localhost" && (err != nil || !addr.IsLoopback())
}

func (a Caller) token(c Connection, cfg config.UserConfig) (string, error) {
	if token := a.Getenv("ASSENT_TOKEN"); token != "" && c.tokenFile == "" {
		return token, nil
	}
	file := cmp.Or(c.tokenFile, cfg.TokenFile)
	if file == "" {
		return "", errors.New(
			"no token: set ASSENT_TOKEN or give --token-file (`assent login` gets one of yours, `assent token " +
				"create` makes one for a runtime)",
		)
	}

	text, err := term.ReadFile(file, nil)
	if err != nil {
		return "", fmt.Errorf("the token: %w", err)
	}
	if token := strings.TrimSpace(string(text)); token != "" {
		return token, nil
	}
	return "", fmt.Errorf("the token: %s is empty", file)
}

// Explain turns an error of a client into one for the command line: the problem and the next step.
// The answer "no" has its own exit code.
func Explain(err error) error {
	var p *client.Problem
	if !errors.As(err, &p) {
		var lost *url.Error
		if errors.As(err, &lost) {
			return fmt.Errorf(
				"the server can't be reached: %w; nothing was changed as far as we know, look and try again",
				lost,
			)
		}

		return err
	}

	text := template.Escape(cmp.Or(p.Detail, p.Title)) + " (" + template.Escape(string(p.Problem.Code)) + ")"
	if next := nextStep(p); next != "" {
		text += "\nnext: " + next
	}
	return term.ExitWith(problemCode(p), errors.New(text))
}

// ExplainMissing is like Explain for commands in which "not found" is not about the id of a
// request. next is the advice for that case; if it is empty, there is none.
func ExplainMissing(err error, next string) error {
	p, ok := errors.AsType[*client.Problem](err)
	if !ok || p.Problem.Code != openapi.CodeNotFound {
		return Explain(err)
	}
	text := template.Escape(cmp.Or(p.Detail, p.Title))
	if next != "" {
		text += "\nnext: " + next
	}
	return term.ExitWith(problemCode(p), errors.New(text))
}

// problemCode returns the exit code for a problem: a refusal by the server, or a failure to answer.
func problemCode(p *client.Problem) int {
	switch p.Status {
	case http.StatusForbidden,
		http.StatusConflict,
		http.StatusPreconditionFailed,
		http.StatusLocked,
		http.StatusGone:
		return term.ExitNo
	}

	return term.ExitFailure
}

// nextStep returns what the user should do about a problem.
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
		if p.Detail != "" { // the server has said what is missing, and it is not an id
			return ""
		}
		return "look at the id: `assent list --state all`, `assent grants --all` and `assent freeze --list` show " +
			"what this token may see"
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

// Ask runs a command that makes one request to the server and prints the answer, as the API's
// document or for people.
func Ask[T any](a Caller, c Connection, ask func(*client.Client) (T, error), show func(*term.Printer, T)) error {
	server, err := a.Dial(c)
	if err != nil {
		return err
	}
	doc, err := ask(server)
	if err != nil {
		return Explain(err)
	}
	return term.Print(a.Streams, c.AsJSON, doc, show)
}
