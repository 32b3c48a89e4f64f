package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/resolve"
)

// TestAnApprovalIsForTheCallersThatWereShown: for every way to ask, another caller of an identical
// call joins the request while it is pending, and people have to look at it again. After the
// approval, another caller asks a new request.
func TestAnApprovalIsForTheCallersThatWereShown(t *testing.T) {
	t.Parallel()
	w := newEntrances(t)
	for _, way := range waysToAsk() {
		if way.question || way.administers {
			continue
		}
		r := w.asks(t, way, aliasOfZoe, 1)
		if out := w.alsoOpens(t, r); !out.Shared || out.Request.ID != r.ID {
			t.Errorf("%s: another caller does not join: %+v", way.name, out.Request)
		}
		if told := votesOverHTTP(t, w, "ben", r); w.request(t, r.ID).State != approval.Pending {
			t.Errorf("%s: approved by who was shown one caller of two: %s", way.name, told)
		}

		r = w.asks(t, way, aliasOfZoe, 1)
		w.counts(t, r, "ben", approval.Approved, votesOverHTTP(t, w, "ben", r))
		if out := w.alsoOpens(t, r); out.Outcome != resolve.Ask || out.Shared || out.Request.ID == r.ID {
			t.Errorf("%s: another caller takes the approval: %s %+v", way.name, out.Outcome, out.Request)
		}
	}

	c := w.call(aliasOfZoe, 1)
	overMCP(t, w, c)
	r := w.asked(t, c)
	w.counts(t, r, "ben", approval.Approved, votesOverHTTP(t, w, "ben", r))
	l := &listening{t: t, url: w.ready.API + "/mcp/machines"}
	l.open("Bearer "+w.token["rt-mara-2"]).says("write_file", c.args(), "Not run yet.")
}

// alsoOpens asks for the identical call with another token of mara's.
func (w *entrances) alsoOpens(t *testing.T, r *approval.Request) *approval.Opened {
	t.Helper()
	out, err := w.replica.service.Open(t.Context(), approval.OpenInput{
		Tenant: "default",
		Agent:  "desk",
		Asker:  approval.Asker{Token: "rt-mara-2", Person: "mara"},
		Call:   &r.Revisions[0].Call,
	})
	must.Do(t, err)

	return out
}

// TestAnEditIsFoundByTheOriginalCallAtEveryEntrance: after the caller has stopped waiting, the same
// call made again runs the approver's edit, and people are not asked twice.
func TestAnEditIsFoundByTheOriginalCallAtEveryEntrance(t *testing.T) {
	t.Parallel()
	w := newEntrances(t)
	all := waysToAsk()
	for name, again := range map[string]func(c askedCall) string{
		"HTTP, a request": func(c askedCall) string {
			out, err := w.client(t, "rt-mara").Open(t.Context(), "desk", c.text("restart"), client.OpenOptions{})
			must.Do(t, err)
			return string(out.Request.Current().Call.Args)
		},
		"the command line": func(c askedCall) string {
			screen := &terminal{in: strings.NewReader(string(c.text("restart")))}
			w.run(t, screen, "rt-mara", "request", "--agent", "desk", "--call", "-", "--wait")
			return screen.out.String()
		},
		"a coding agent's hook in front of a server": func(c askedCall) string {
			doc := hookDocs()["codex"](toolCall{"restart", c.args(), c.word + "-again"})
			screen := &terminal{in: strings.NewReader(doc)}
			w.run(t, screen, "rt-mara", "hook", "codex", "--agent", "desk", "--wait", "0s", "--principal", c.principal)
			return screen.out.String()
		},
		"a gateway for MCP of the service": func(c askedCall) string {
			l := &listening{t: t, url: w.ready.API + "/mcp/machines"}
			return testwait.Value(t, "the gateway has read the answer", func() (string, bool) {
				text := l.open("Bearer "+w.token["rt-mara"]).call("write_file", c.args())
				return text, !strings.Contains(text, "Not run yet")
			})
		},
	} {
		way := all[slices.IndexFunc(all, func(way wayToAsk) bool { return way.name == name })]
		c := w.call(aliasOfZoe, 1)
		way.ask(t, w, c)
		r := w.asked(t, c)
		w.counts(t, r, "ben", approval.Approved, editsOverHTTP(t, w, "ben", r))
		told := again(c)
		pending := approval.Filter{States: []approval.State{approval.Pending}, Limit: 500}
		if page := must.Get(w.replica.store.Requests(t.Context(), "default", pending))(t); page.Total > 0 {
			t.Errorf("%s: people are asked again", name)
		}
		if strings.Contains(told, "Not run yet") || !strings.Contains(told, "edit") && !way.unnamed {
			t.Errorf("%s: told %s, want the edited arguments", name, told)
		}
	}
}
