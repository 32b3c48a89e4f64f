package main

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/term"
)

// TestGatewayStartRefusals: what only the start can tell names the
// field that is wrong, and what helps.
func TestGatewayStartRefusals(t *testing.T) {
	good := `name: tool
agent: tool
agents: tool.agf.yaml
listen: 127.0.0.1:0
store: gateway.db
callers: {name: here, callbacks: "http://127.0.0.1:7717"}
operations: {name: quote, description: Last price., schema: quote.json, url: "http://127.0.0.1:7801/quote"}
`
	for name, c := range map[string]struct{ old, new, want string }{
		"another agent": {
			"agent: tool\n",
			"agent: nobody\n",
			`agent: unknown agent: "nobody": expected the id (metadata.id) of an agent whose file is in agents`,
		},
		"no token of a caller": {"{name: here,", "{name: here, token_file: no.token,", "caller here: token_file: open"},
		"no token we show": {
			"{name: here,",
			"{name: here, callback_token_file: no.token,",
			"caller here: file of its token: open",
		},
		"no schema":     {"quote.json", "none.json", "operation quote: schema: open"},
		"half a schema": {"quote.json", "half.json", "half.json is no JSON: expected a JSON Schema of the arguments"},
		"an upstream not there": {
			"operations:",
			"upstream: {name: shell, url: \"http://" + freeAddress(t) + "\"}\noperations:",
			"upstream shell: discover what shell offers: the manifest could not be read: dial tcp",
		},
		"and what helps": {
			"operations:",
			"upstream: {name: shell, url: \"http://" + freeAddress(t) + "\"}\noperations:",
			"so it must be there before",
		},
	} {
		dir := t.TempDir()
		writeFiles(t, dir, map[string]string{
			"tool.agf.yaml": toolAgent,
			"quote.json":    quoteSchema,
			"half.json":     `{"type":`,
			"gateway.yaml":  strings.Replace(good, c.old, c.new, 1),
		})
		out, errOut, code := ran("", "rap", "gateway", "--config", filepath.Join(dir, "gateway.yaml"))
		if code != term.ExitFailure || out != "" || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, errOut)
		}
	}
}

// nobody is a directory in which only one group has members.
type nobody struct{ approval.Directory }

func (nobody) Members(_ context.Context, _, group string) ([]approval.Person, error) {
	if group == "risk" {
		return []approval.Person{{ID: "mara"}}, nil
	}
	return nil, nil
}

// TestGroupsThatNobodyIsIn: questions that can't be answered cause a warning before the first one
// expires.
func TestGroupsThatNobodyIsIn(t *testing.T) {
	ts := tenants{"acme": {cfg: config.Tenant{RAP: &config.RAP{Runtimes: []config.RAPRuntime{{
		Agent:   "desk",
		Servers: []config.RAPServer{{Name: "files", AnsweredBy: []string{"risk", "rsik"}}, {Name: "shell"}},
	}}}}}}
	var log bytes.Buffer
	ts.warnOfEmptyGroups(t.Context(), nobody{}, slog.New(slog.NewTextHandler(&log, nil)))
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "server=files") ||
		!strings.Contains(got, "group=rsik") ||
		!strings.Contains(got, "people.yaml") {
		t.Errorf("got %q", got)
	}
}

// TestWarnsOfACallerWithoutATokenBesideAPublicURL: a proxy that adds
// no header would count as a program on this machine.
func TestWarnsOfACallerWithoutATokenBesideAPublicURL(t *testing.T) {
	for public, warned := range map[string]bool{
		"https://files.example.com/rap": true,
		"http://127.0.0.1:7718":         false,
		"http://localhost:7718/x":       false,
		"http://[::1]:1":                false,
		"http://10.0.0.1:1":             true,
	} {
		for _, token := range []string{"", "a.token"} {
			var log bytes.Buffer
			c := config.RAPGateway{Callers: []config.RAPCaller{{Name: "here", TokenFile: token}}}
			warnOfLocalCallers(slog.New(slog.NewTextHandler(&log, nil)), c, public)
			if got := strings.Contains(log.String(), "caller=here"); got != (warned && token == "") {
				t.Errorf("%s, token %q: warned %t", public, token, got)
			}
		}
	}
}
