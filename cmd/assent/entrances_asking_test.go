package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/openapi"
)

// wayToAsk is an entrance by which people are asked, in the name of
// mara's token or program.
type wayToAsk struct {
	name  string
	token string   // who asks, as the request must say
	sites []string // where the product says who asks, and what
	// question: the entrance asks a question, which any single member of the group answers, so
	// there is no second seat.
	question bool
	// administers: an administrative act, which has no principal; its agent has no file.
	administers bool
	// unnamed: the call names no principal.
	unnamed bool
	// single: no asker of this entrance can require two approvals.
	single bool
	ask    func(t *testing.T, w *entrances, c askedCall)
}

// embedder returns the asker in a program that embeds the service.
func embedder() approval.Asker { return approval.Asker{Token: "embedder", Person: "mara"} }

func waysToAsk() []wayToAsk {
	const (
		opens     = "server.requestOps.openRequest"
		puts      = "server.requestOps.askQuestion"
		byToken   = "server.asker"
		caller    = "rap/gateway.CallerAsker"
		heldOpens = "approval/hold.(*embedded).Open"
		deskPuts  = "approval/hold.(*embedded).Ask"
		takesAct  = "server/administration.(*Desk).Take"
		asksAct   = "server.adminOps.act"
		mintsAct  = "approval.AdministrationAsker"
	)

	return []wayToAsk{
		{name: "HTTP, a request", token: "rt-mara", sites: []string{opens, byToken}, ask: overHTTP},
		{
			name:     "HTTP, a question",
			token:    "rt-mara",
			sites:    []string{puts, byToken, "approval.(*Service).Ask"},
			question: true,
			ask:      question,
		},
		{
			name:     "HTTP, a question for a text",
			token:    "rt-mara",
			sites:    []string{puts, byToken, "approval.(*Service).Ask"},
			question: true,
			ask:      questionForText,
		},
		{name: "the Go client", token: "rt-mara", sites: []string{opens}, ask: byClient},
		{name: "the command line", token: "rt-mara", sites: []string{opens}, ask: byCommand},
		{name: "a coding agent's hook in front of a server", token: "rt-mara", sites: []string{opens}, ask: byHook},
		{
			name:  "a coding agent's hook with a store of its own",
			token: "hook/codex",
			sites: []string{heldOpens, "cmd/assent.hooksAlone"},
			ask:   byHookAlone,
		},
		{name: "an agent in front of the service", token: "embedder", sites: []string{heldOpens}, ask: heldByService},
		{name: "an agent in front of a server", token: "rt-mara", sites: []string{opens}, ask: heldByClient},
		{
			name:     "a RAP desk in front of the service",
			token:    "embedder",
			sites:    []string{deskPuts},
			question: true,
			ask:      deskOfService,
		},
		{
			name:     "a RAP desk in front of a server",
			token:    "rt-mara",
			sites:    []string{puts},
			question: true,
			ask:      deskOfClient,
		},
		{
			name:  "hosted RAP, an approval",
			token: "rt-mara",
			sites: []string{heldOpens, byToken},
			ask:   hosted("restart"),
		},
		{
			name:     "hosted RAP, a destructive tool",
			token:    "rt-mara",
			sites:    []string{deskPuts, byToken},
			question: true,
			ask:      hosted("wipe"),
		},
		{
			name:     "hosted RAP, a question of the tool",
			token:    "rt-mara",
			sites:    []string{deskPuts, byToken},
			question: true,
			ask:      hosted("look"),
		},
		{
			name:  "a RAP gateway of the service",
			token: "rap/default/gateway/front/laptop",
			sites: []string{heldOpens, caller},
			ask:   behind("front"),
		},
		{
			name:  "a RAP gateway in front of a tool server",
			token: "rap/default/gateway/relay/laptop",
			sites: []string{heldOpens, caller},
			ask:   behind("relay"),
		},
		{name: "a RAP gateway by itself", token: "rt-mara", sites: []string{opens, caller}, ask: behindAlone},
		{
			name:    "a gateway for MCP of the service",
			token:   "rt-mara",
			sites:   []string{heldOpens, byToken, "server.(*Bearers).Asker", "mcp.CallerAsker"},
			unnamed: true,
			ask:     overMCP,
		},
		{
			name:        "administration, a token",
			token:       "administration/mara-admin",
			sites:       []string{takesAct, asksAct, mintsAct},
			administers: true,
			ask:         makesToken,
		},
		{
			name:        "administration, lifting a freeze",
			token:       "administration/mara-admin",
			sites:       []string{takesAct, asksAct, mintsAct},
			administers: true,
			ask:         lifts,
		},
		{
			name:        "administration, lifting a freeze in the inbox",
			token:       "administration/inbox",
			sites:       []string{takesAct, "server/inbox.adminPages.thaw", mintsAct},
			administers: true,
			single:      true,
			ask:         liftsInInbox,
		},
	}
}

// overHTTP posts the request to the API.
func overHTTP(t *testing.T, w *entrances, c askedCall) {
	body := `{"call":` + string(c.text("restart")) + `}`
	status := w.runtime.post(t, w.ready.API+"/v1/agents/desk/requests", w.token["rt-mara"], body)
	if status != http.StatusCreated {
		t.Fatalf("answered %d", status)
	}
}

func byClient(t *testing.T, w *entrances, c askedCall) {
	if _, err := w.client(t, "rt-mara").Open(t.Context(), "desk", c.text("restart"), client.OpenOptions{}); err != nil {
		t.Fatal(err)
	}
}

func question(t *testing.T, w *entrances, c askedCall) {
	q := yesOrNo()
	q.Groups = []string{"ops"}
	_, err := w.client(t, "rt-mara").Ask(t.Context(), "desk", c.text("restart"), q, client.AskOptions{})
	must.Do(t, err)
}

func questionForText(t *testing.T, w *entrances, c askedCall) {
	q := approval.Question{
		Asker:  "notes-server",
		Prompt: "Which seat?",
		Schema: []byte(`{"type":"string","maxLength":10}`),
		Groups: []string{"ops"},
	}
	_, err := w.client(t, "rt-mara").Ask(t.Context(), "desk", c.text("restart"), q, client.AskOptions{})
	must.Do(t, err)
}

func byCommand(t *testing.T, w *entrances, c askedCall) {
	screen := &terminal{in: strings.NewReader(string(c.text("restart")))}
	if code := w.run(t, screen, "rt-mara", "request", "--agent", "desk", "--call", "-"); code != term.ExitNo {
		t.Fatalf("exit %d\n%s", code, screen.out.String())
	}
}

// byHook asks through the hook of a coding agent.
func byHook(t *testing.T, w *entrances, c askedCall) {
	screen := &terminal{in: strings.NewReader(hookDocs()["codex"](toolCall{"restart", c.args(), c.word}))}
	args := []string{"hook", "codex", "--agent", "desk", "--wait", "0s", "--principal", c.principal}
	if code := w.run(t, screen, "rt-mara", args...); code != 0 || hookRequest(screen.out.String()) == "" {
		t.Fatalf("exit %d\n%s", code, screen.out.String())
	}
}

// byHookAlone opens the service's store and asks there without using the service, like a hook that
// runs on the same machine.
func byHookAlone(t *testing.T, w *entrances, c askedCall) {
	at := func(name string) string { return filepath.Join(w.dir, name) }
	cfg, err := config.Reader{}.Hook(config.HookFlags{
		Agent:      at("desk.agf.yaml"),
		Policies:   []string{w.dir},
		People:     at("people.yaml"),
		Store:      at("s.db"),
		Undeclared: "deny",
	})
	must.Do(t, err)
	cfg.KeyFile, cfg.Mark = at("k"), ""
	desk, err := hooksAlone(t.Context(), cfg, "hook/codex", "mara")
	must.Do(t, err)
	defer desk.Close()
	if o, err := desk.Open(t.Context(), c.word, c.verdict()); err != nil || o.Outcome != resolve.Ask {
		t.Fatalf("%+v, %v", o, err)
	}
}

// resolved returns the call as a plan has it.
func (c askedCall) resolved() *resolve.Call {
	return &resolve.Call{Kind: resolve.Tool, Tool: "restart", Args: []byte(c.args()), Principal: c.principal}
}

// verdict returns the verdict of the agent's plan on the call.
func (c askedCall) verdict() hold.Verdict {
	return hold.Verdict{Decision: resolve.Decision{Outcome: resolve.Ask}, Call: c.resolved()}
}

// embedded returns the people of agent desk for a program that embeds the service.
func (w *entrances) embedded() hold.People {
	return hold.Service(w.replica.service, w.replica.store, hold.Place{Tenant: "default", Agent: "desk"})
}

func heldByService(t *testing.T, w *entrances, c askedCall) {
	opens(t, w.embedded().As(embedder()), c)
}

func heldByClient(t *testing.T, w *entrances, c askedCall) {
	opens(t, client.Holder(w.client(t, "rt-mara"), "desk"), c)
}

// opens asks through an agent's run that holds a call.
func opens(t *testing.T, h hold.Holder, c askedCall) {
	if stands, err := h.Open(t.Context(), c.word, c.verdict()); err != nil || stands.State != hold.Pending {
		t.Fatalf("%+v, %v", stands, err)
	}
}

func deskOfService(t *testing.T, w *entrances, c askedCall) {
	puts(t, w.embedded().As(embedder()), c)
}

func deskOfClient(t *testing.T, w *entrances, c askedCall) {
	clients := map[string]*client.Client{"room": w.client(t, "rt-mara")}
	puts(t, client.People("desk", clients).As(approval.Asker{Token: "room"}), c)
}

// puts asks a question of a tool through a RAP runtime.
func puts(t *testing.T, d hold.Requests, c askedCall) {
	q := hold.Question{
		Call:    c.resolved(),
		Server:  "machines",
		Prompt:  "Really?",
		Choices: []string{"Yes", "No"},
		Default: 1,
		Groups:  []string{"ops"},
	}
	if _, err := d.Ask(t.Context(), c.word, q); err != nil {
		t.Fatal(err)
	}
}

// hosted calls an operation by the runtime of the service.
func hosted(operation string) func(*testing.T, *entrances, askedCall) {
	return func(t *testing.T, w *entrances, c askedCall) {
		w.calls(t, "rt-mara", client.RAPCall{
			Thread:    c.word,
			ID:        "call",
			User:      c.principal,
			Operation: operation,
			Arguments: json.RawMessage(c.args()),
		})
	}
}

// behind calls a gateway of the service.
func behind(name string) func(*testing.T, *entrances, askedCall) {
	return func(t *testing.T, w *entrances, c askedCall) {
		w.invokes(t, w.ready.API+"/rap/default/gateway/"+name, c)
	}
}

// overMCP calls a tool of a server behind a gateway for MCP.
func overMCP(t *testing.T, w *entrances, c askedCall) {
	l := &listening{t: t, url: w.ready.API + "/mcp/machines"}
	l.open("Bearer "+w.token["rt-mara"]).says("write_file", c.args(), "Not run yet.")
}

func behindAlone(t *testing.T, w *entrances, c askedCall) { w.invokes(t, w.gateway, c) }

// invokes calls a gateway as a runtime of mara's.
func (w *entrances) invokes(t *testing.T, gateway string, c askedCall) {
	t.Helper()
	w.runtime.invoke(t, gateway, "secret-of-the-caller", string(mustJSON(t, map[string]any{
		"operation":    "restart",
		"arguments":    json.RawMessage(c.args()),
		"id":           c.word,
		"group_id":     c.word,
		"user_id":      c.principal,
		"callback_url": w.runtime.URL + "/cb",
	})))
}

// administrator returns the client that asks for an act: mara's, so that one other person approves,
// or one without a person, so that two do.
func (w *entrances) administrator(t *testing.T, c askedCall) *client.Client {
	if c.seats > 1 {
		return w.client(t, "root")
	}

	return w.client(t, "mara-admin")
}

func makesToken(t *testing.T, w *entrances, c askedCall) {
	body := openapi.TokenBody{Name: c.word, Scopes: []openapi.Scope{openapi.ScopeRead}}
	_, err := w.administrator(t, c).CreateToken(t.Context(), body)
	administratorsAreAsked(t, err)
}

func lifts(t *testing.T, w *entrances, c askedCall) {
	_, err := w.administrator(t, c).LiftFreeze(t.Context(), "spare", c.word)
	administratorsAreAsked(t, err)
}

func administratorsAreAsked(t *testing.T, err error) {
	t.Helper()
	if _, asked := errors.AsType[*client.AskedError](err); !asked {
		t.Fatal(err)
	}
}

func liftsInInbox(t *testing.T, w *entrances, c askedCall) {
	v := w.visitor(t, "mara")
	form := url.Values{"seen": {seal(v.get("/freeze"))}, "agent": {"spare"}, "reason": {c.word}}
	v.submits("/thaw", form)
}

// wayToTake is an entrance by which the one run of an approval is taken.
type wayToTake struct {
	name  string
	sites []string
	asks  wayToAsk
	// take takes the run for the asker, or for another asker of the same person.
	take func(t *testing.T, w *entrances, c askedCall, r *approval.Request, another bool) error
}

func waysToTake() []wayToTake {
	over := func(name string) wayToAsk {
		all := waysToAsk()

		return all[slices.IndexFunc(all, func(way wayToAsk) bool { return way.name == name })]
	}

	return []wayToTake{
		{
			name:  "HTTP",
			sites: []string{"server.requestOps.consume"},
			asks:  over("HTTP, a request"),
			take:  takesOverHTTP,
		},
		{
			name:  "an agent in front of the service",
			sites: []string{"approval/hold.(*embedded).Consume"},
			asks:  over("an agent in front of the service"),
			take:  claims,
		},
	}
}

func takesOverHTTP(t *testing.T, w *entrances, c askedCall, r *approval.Request, another bool) error {
	token := "rt-mara"
	if another {
		token = "rt-mara-2"
	}
	_, err := w.client(t, token).Consume(t.Context(), r.ID, c.text("restart"), "")

	return err
}

func claims(t *testing.T, w *entrances, c askedCall, r *approval.Request, another bool) error {
	who := embedder()
	if another {
		who.Token = "another"
	}
	h := w.embedded().As(who)

	return h.Claim(t.Context(), r.ID, approval.NewKey(), c.verdict())
}
