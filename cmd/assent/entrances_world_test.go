package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	mcpconfig "github.com/assent-dev/assent/mcp/config"
	"github.com/assent-dev/assent/server/notify/slack"
	"github.com/assent-dev/assent/server/notify/webhook"
	"github.com/assent-dev/assent/server/openapi"
)

// entrancesAgent restarts after people agreed, wipes by its own file
// (the tool calls itself destructive), and looks. Otto owns it, by its
// file; olga does, by the directory. The gates of restart and of the
// server are misspelt, which is a reason of every request about them.
const entrancesAgent = `schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Runs machines., labels: {owner: otto}}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Work., model: any}}
action_space:
  local_tools: [{alias: restart, aproval: false}, {alias: wipe}, {alias: look}]
  mcp_servers: [{alias: files, server_ref: files, description: Files., aproval: false}]
`

// spareAgent is frozen from the start: administrators ask to let it go on.
const spareAgent = `schema_version: "1.0.0"
metadata: {id: spare, name: Spare, version: "1.0.0", description: Is frozen.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Wait., model: any}}
`

const entrancesPolicy = `schema_version: "1.0.0"
policy_ref: acme.entrances
applies: implicit
rules:
  - id: restarts
    match: {targets: [restart, write_file]}
    approval: true
    require: {stages: [{group: ops}]}
  - id: restarts-of-two
    match: {targets: [restart, write_file]}
    approval: {condition: {args_match: {seats: 2}}}
    require: {stages: [{group: ops, people: 2}]}
`

// All of them except wes are approvers, so a person who is refused is refused only because of their
// relation to the call.
const entrancesPeople = `schema_version: "1.0.0"
people:
  - {id: mara, groups: [ops, admins], also: ["slack:U0MARA"]}
  - {id: zoe, groups: [ops, admins], also: ["z.zimmer@example.com", "slack:U0ZOE"]}
  - {id: olga, groups: [ops, admins], owns: [desk, assent-administration], also: ["slack:U0OLGA"]}
  - {id: otto, groups: [ops, admins], also: ["slack:U0OTTO"]}
  - {id: wes, groups: [sales], also: ["slack:U0WES"]}
  - {id: ben, groups: [ops, admins], also: ["slack:U0BEN"]}
  - {id: cleo, groups: [ops, admins], also: ["slack:U0CLEO"]}
`

// gonePeople is a line of the directory that is taken out once gone has
// signed in.
const gonePeople = `  - {id: gone, groups: [ops, admins], also: ["slack:U0GONE"]}
`

const wordSchema = `{"type":"object"}`

// Names of principals: an alias of zoe, and a name that the directory doesn't know.
const (
	aliasOfZoe = "z.zimmer@example.com"
	stranger   = "somebody@elsewhere.example"
)

// entrances is a running service with every entrance of the product.
type entrances struct {
	*testServer
	// replica is another server of the same store in this process. It is used for the functions of
	// an embedding program and for sign-in links.
	replica  *app
	machines *machines
	runtime  *runtimePeer // what calls the gateways
	gateway  string       // URL of the gateway that runs by itself
	slack    *slackPeer
	hooks    *keeper // of webhooks
	visitors map[string]*visitor
	seals    *sealsTaken
	words    atomic.Int64
}

// newEntrances starts all of it, until the test ends.
func newEntrances(t *testing.T) *entrances {
	t.Helper()
	w := &entrances{
		testServer: &testServer{dir: t.TempDir(), token: map[string]string{}},
		machines:   newMachines(t),
		runtime:    newRuntimePeer(t),
		slack:      newSlackPeer(t),
		hooks:      newKeeper(t, ""),
		visitors:   map[string]*visitor{},
		seals:      &sealsTaken{of: map[string]string{}},
	}
	w.machines.says(func(c machineCall) string {
		if c.Operation == "look" {
			return w.machines.question(c)
		}
		return ""
	})
	for name, text := range map[string]string{
		"desk.agf.yaml":   entrancesAgent,
		"spare.agf.yaml":  spareAgent,
		"ops.policy.yaml": entrancesPolicy,
		"people.yaml":     entrancesPeople + gonePeople,
		"word.json":       wordSchema,
		"caller.token":    "secret-of-the-caller",
		"slack.token":     "xoxb-1",
		"slack.signing":   slackSigning,
		"hook.secret":     "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32)),
	} {
		w.writes(t, name, text)
	}

	var cfg config.Serve
	startWith(t, w.testServer, func(c *config.Serve) {
		w.configure(c)
		cfg = *c
	})
	w.replicate(t, cfg)
	w.makeTokens(t)
	w.startGateway(t)
	w.signIn(t)
	w.forget(t)
	if _, err := w.client(t, "mara-admin").Freeze(t.Context(), "spare", "odd"); err != nil {
		t.Fatal(err)
	}

	return w
}

func (w *entrances) writes(t *testing.T, name, text string) {
	t.Helper()
	testfiles.Write(t, filepath.Join(w.dir, name), text)
}

// configure opens every entrance that a configuration has.
func (w *entrances) configure(c *config.Serve) {
	tenant := &c.Tenants[0]
	c.Dev = true
	c.DevPerson = "ben"
	tenant.Policies = []string{w.dir}
	tenant.Notify.Say("slack", &slack.Settings{
		Team:              slackTeam,
		TokenFile:         filepath.Join(w.dir, "slack.token"),
		SigningSecretFile: filepath.Join(w.dir, "slack.signing"),
		Channels:          map[string]string{"": slackChannel},
		Arguments:         true,
		API:               w.slack.URL + "/api/",
		Loopback:          true,
	})
	tenant.Notify.Say("webhooks", []webhook.Settings{{
		Name:        "ops",
		URL:         w.hooks.URL,
		SecretFiles: []string{filepath.Join(w.dir, "hook.secret")},
		Loopback:    true,
	}})
	behind := config.RAPServer{
		Name:       "machines",
		URL:        w.machines.URL,
		Allow:      []string{signInOrigin},
		AnsweredBy: []string{"ops"},
	}
	caller := config.RAPCaller{
		Name:      "laptop",
		Person:    "mara",
		TokenFile: filepath.Join(w.dir, "caller.token"),
		Callbacks: []string{w.runtime.URL},
	}
	tenant.MCP = []mcpconfig.Served{{
		Name:  "machines",
		Agent: "desk",
		Works: mcpconfig.Works{Upstream: []mcpconfig.Upstream{{Alias: "files", Command: "files-server", Cwd: w.dir}}},
		Hold:  time.Millisecond,
	}}
	tenant.RAP = &config.RAP{
		Runtimes: []config.RAPRuntime{{Agent: "desk", Servers: []config.RAPServer{behind}}},
		Gateways: []config.RAPGateway{
			{
				Name:        "front",
				Description: "Machines.",
				Agent:       "desk",
				Callers:     []config.RAPCaller{caller},
				Operations: []config.RAPOperation{{
					Name:        "restart",
					Description: "Restarts.",
					URL:         w.machines.URL + "/restart",
					SchemaFile:  filepath.Join(w.dir, "word.json"),
				}},
			},
			{
				Name:        "relay",
				Description: "Machines.",
				Agent:       "desk",
				Callers:     []config.RAPCaller{caller},
				Upstream:    []config.RAPServer{{Name: "machines", URL: w.machines.URL}},
			},
		},
	}
}

// replicate builds another server of the store that answers no requests.
func (w *entrances) replicate(t *testing.T, cfg config.Serve) {
	t.Helper()
	cfg.Tenants = []config.Tenant{cfg.Tenants[0]}
	cfg.Tenants[0].Notify = config.Notify{}
	cfg.Tenants[0].RAP, cfg.Tenants[0].MCP = nil, nil
	w.replica = &app{cfg: cfg, log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	var err error
	if w.replica.tenants, err = loadTenants(cfg, w.replica.log); err != nil {
		t.Fatal(err)
	}
	if w.replica.store, err = openStore(t.Context(), cfg.Location(), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.replica.store.Close() })
	w.replica.key = w.replica.store.key
	must.Do(t, w.replica.build(t.Context()))
	t.Cleanup(func() { w.replica.unlisten() })
}

// people returns all people who try to answer.
func (w *entrances) people() []string {
	return []string{"mara", "zoe", "olga", "otto", "wes", "gone", "ben", "cleo"}
}

// makeTokens creates a token for every person who answers, two tokens of mara's that ask, and two
// for administration: one of mara's and one without a person.
func (w *entrances) makeTokens(t *testing.T) {
	t.Helper()
	answers, admin := []openapi.Scope{openapi.ScopeRead, openapi.ScopeVote}, []openapi.Scope{openapi.ScopeAdmin}
	asks := []openapi.Scope{openapi.ScopeRequest}
	bodies := []openapi.TokenBody{
		{Name: "rt-mara", Scopes: asks, Person: "mara"}, {Name: "rt-mara-2", Scopes: asks, Person: "mara"},
		{Name: "mara-admin", Scopes: admin, Person: "mara"}, {Name: "root", Scopes: admin},
	}
	for _, who := range w.people() {
		bodies = append(bodies, openapi.TokenBody{Name: who + "-cli", Scopes: answers, Person: who})
	}

	w.makes(t, w.replica.store, bodies...)
}

// startGateway runs assent rap gateway, which asks the approvers of the
// service by a token of mara's.
func (w *entrances) startGateway(t *testing.T) {
	t.Helper()
	files := map[string]string{
		"desk.agf.yaml":   entrancesAgent,
		"ops.policy.yaml": entrancesPolicy,
		"caller.token":    "secret-of-the-caller",
		"rt-mara.token":   w.token["rt-mara"],
	}
	w.gateway, _ = gatewayOf(t, files, `
name: alone
description: Machines.
agent: desk
agents: desk.agf.yaml
policies: .
server: `+w.ready.API+`
server_token_file: rt-mara.token
callers: {name: laptop, token_file: caller.token, callbacks: "`+w.runtime.URL+`"}
upstream: {name: machines, url: "`+w.machines.URL+`"}
`)
}

// signIn signs everybody in to the inbox.
func (w *entrances) signIn(t *testing.T) {
	t.Helper()
	for _, who := range w.people() {
		link, err := w.replica.auth.DevLink(t.Context(), "default", who)
		must.Do(t, err)
		w.visitors[who] = w.signedInBy(t, strings.TrimPrefix(link, w.replica.base.String()))
	}
}

// forget takes gone out of the directory, and waits until the service
// has read it; its replica, which doesn't run, reads it here.
func (w *entrances) forget(t *testing.T) {
	t.Helper()
	w.writes(t, "people.yaml", entrancesPeople)
	testwait.Until(t, "the directory knows gone no more", func() bool {
		_, err := w.client(t, "gone-cli").Requests(t.Context(), client.Query{Mine: true})
		return err != nil
	})
	w.replica.tenants[ownTenant].reloadPeople()
}

// visitor returns a person's browser for one test.
func (w *entrances) visitor(t *testing.T, who string) *visitor {
	v := *w.visitors[who]
	v.t = t

	return &v
}

// askedCall is a call that people are to be asked about.
type askedCall struct {
	word      string // in its arguments, that no other call has
	principal string
	seats     int
}

// call returns one of its own.
func (w *entrances) call(principal string, seats int) askedCall {
	return askedCall{word: fmt.Sprintf("word-%d", w.words.Add(1)), principal: principal, seats: seats}
}

func (c askedCall) args() string { return fmt.Sprintf(`{"word":%q,"seats":%d}`, c.word, c.seats) }

// text returns the call of a tool in its JSON form.
func (c askedCall) text(tool string) []byte {
	return fmt.Appendf(nil, `{"kind":"tool","tool":%q,"args":%s,"principal":%q}`, tool, c.args(), c.principal)
}

// asked waits until people are asked about a call, and returns the request.
func (w *entrances) asked(t *testing.T, c askedCall) *approval.Request {
	t.Helper()
	var found *approval.Request
	testwait.Until(t, "people are asked about "+c.word, func() bool {
		pending := approval.Filter{States: []approval.State{approval.Pending}, Limit: 500}
		page, err := w.replica.store.Requests(t.Context(), "default", pending)
		must.Do(t, err)
		for _, s := range page.Requests {
			r := w.request(t, s.ID)
			if strings.Contains(string(r.Current().Call.Args), `"`+c.word+`"`) {
				found = r
			}
		}

		return found != nil
	})

	return found
}

// request returns the current state of a request.
func (w *entrances) request(t *testing.T, id string) *approval.Request {
	t.Helper()
	r, err := w.replica.service.Request(t.Context(), "default", id)
	must.Do(t, err)

	return r
}
