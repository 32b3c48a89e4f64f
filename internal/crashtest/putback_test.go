package crashtest

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/client"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/internal/testbin"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store/postgres/pgtest"
	"github.com/assent-dev/assent/store/sqlite/sqlitetest"
)

// exec runs statements on the database, like an attacker without the key.
func (h *harness) exec(statements string) {
	h.t.Helper()
	if strings.HasPrefix(h.store, "postgres") {
		pgtest.Exec(h.t, h.store, statements)
	} else {
		sqlitetest.Exec(h.t, h.store, statements)
	}
}

// keepRows saves the current content of the tables.
func (h *harness) keepRows() {
	for _, table := range []string{"requests", "grants", "entries", "trees", "hashes", "memories"} {
		h.exec("CREATE TABLE saved_" + table + " AS SELECT * FROM " + table)
	}
}

// putRowsBack restores the old rows of requests and grants, and deletes unsealed entries.
func (h *harness) putRowsBack() {
	h.exec("DELETE FROM entries WHERE idx IS NULL")
	for _, table := range []string{"requests", "grants", "memories"} {
		h.exec("DELETE FROM " + table + "; INSERT INTO " + table + " SELECT * FROM saved_" + table)
	}
}

// putAllBack also restores the ledger.
func (h *harness) putAllBack() {
	h.putRowsBack()
	h.exec("DELETE FROM entries WHERE idx >= (SELECT size FROM saved_trees)")
	h.exec("DELETE FROM hashes WHERE pos NOT IN (SELECT pos FROM saved_hashes)")
	h.exec("DELETE FROM trees; INSERT INTO trees SELECT * FROM saved_trees")
}

// once returns a client that does not retry.
func (h *harness) once(address, token string) *client.Client {
	h.t.Helper()
	c, err := client.New("http://"+address, token, client.Options{Attempts: 1})
	must.Do(h.t, err)
	return c
}

// refusedWith checks the code of an error.
func refusedWith(t *testing.T, what string, err error, code openapi.Code) *client.Problem {
	t.Helper()
	var p *client.Problem
	if !errors.As(err, &p) || p.Problem.Code != code {
		t.Errorf("%s: %v, want %s", what, err, code)
	}
	return p
}

// asked holds the targets of an act.
type asked struct {
	call       []byte
	id         string
	bot, admin *client.Client
	people     []*client.Client
}

// acts are acts that use up or revoke something. Each is done once, removed from the database, and
// followed by what it had ruled out.
func acts() map[string]struct {
	approved bool
	grant    *openapi.GrantOffer
	do, then func(context.Context, asked) error
} {
	consume := func(ctx context.Context, a asked) error {
		_, err := a.bot.Consume(ctx, a.id, a.call, "")
		return err
	}
	answerWith := func(verdict approval.Verdict) func(context.Context, asked) error {
		return func(ctx context.Context, a asked) error {
			r, err := a.people[0].Request(ctx, a.id)
			if err != nil {
				return err
			}
			_, err = a.people[0].Vote(ctx, a.id, r.Version, openapi.VoteBody{
				Verdict: verdict, Reason: "because", Binding: r.Binding(), ShownFully: true,
			})
			return err
		}
	}
	open := func(ctx context.Context, a asked) error {
		o, err := a.bot.Open(ctx, "clerk", a.call, client.OpenOptions{})
		if err == nil && o.Outcome != resolve.Allow {
			err = errors.New("it was not covered: " + string(o.Outcome))
		}
		return err
	}
	return map[string]struct {
		approved bool
		grant    *openapi.GrantOffer
		do, then func(context.Context, asked) error
	}{
		"consumed again":           {approved: true, do: consume, then: consume},
		"approved after a denial":  {do: answerWith(approval.Deny), then: answerWith(approval.Approve)},
		"run after a late denial":  {approved: true, do: answerWith(approval.Deny), then: consume},
		"approved after it ended":  {do: cancel, then: answerWith(approval.Approve)},
		"covered once too often":   {approved: true, grant: &openapi.GrantOffer{MaxUses: 1}, do: open, then: open},
		"covered after revocation": {approved: true, grant: &openapi.GrantOffer{MaxUses: 9}, do: revoke, then: open},
	}
}

func cancel(ctx context.Context, a asked) error {
	_, err := a.bot.Cancel(ctx, a.id, "not needed")
	return err
}

func revoke(ctx context.Context, a asked) error {
	grants, err := a.bot.Grants(ctx, false)
	if err != nil {
		return err
	}
	for _, g := range grants {
		if g.Request == a.id {
			_, err := a.admin.RevokeGrant(ctx, g.ID, "enough")
			return err
		}
	}
	return errors.New("no standing approval came out of " + a.id)
}

func engines(t *testing.T, bin string) map[string]func() *harness {
	return map[string]func() *harness{
		"sqlite":   func() *harness { return newHarness(t, bin, "") },
		"postgres": func() *harness { return newHarness(t, bin, pgtest.New(t)) },
	}
}

// TestWhatWasAnsweredIsNotForgotten kills the server right after its answers, and restores the
// earlier content of the database.
func TestWhatWasAnsweredIsNotForgotten(t *testing.T) {
	bin := testbin.Path(t, "cmd/assent")
	for name, begin := range engines(t, bin) {
		t.Run(name, func(t *testing.T) {
			ctx, h := t.Context(), begin()
			h.t = t
			address := h.address()
			server := h.serve(address)
			admin := h.once(address, h.token("root", "admin,read", ""))
			alice, bob := h.once(address, h.alice), h.once(address, h.bob)
			all := map[string]asked{}
			n := 0
			for what, act := range acts() {
				n++
				a := asked{call: call("transfer", n), bot: h.once(address, h.bot), admin: admin}
				a.people = []*client.Client{alice, bob}
				opened, err := a.bot.Open(ctx, "clerk", a.call, client.OpenOptions{})
				must.Do(t, err)
				a.id = opened.Request.ID
				for _, c := range a.people {
					if !act.approved {
						break
					}
					body := openapi.VoteBody{Verdict: approval.Approve}
					if act.grant != nil {
						body.Grant = *act.grant
					}
					_, err := answer(ctx, c, a.id, body)
					must.Do(t, err)
				}
				all[what] = a
			}
			for _, a := range all {
				sealed(ctx, t, a.bot, a.id, approval.EventOpened)
			}
			h.settle(ctx, admin)
			h.keepRows()

			for what, act := range acts() {
				if err := act.do(ctx, all[what]); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
			}
			server.kill()

			h.putRowsBack()
			server = h.serve(address)
			for what, act := range acts() {
				refusedWith(t, what, act.then(ctx, all[what]), openapi.CodeTampered)
			}
			server.kill()

			h.putAllBack()
			key := filepath.Join(h.dir, "assent.key")
			if code, said := h.attempt(ctx, key, address); code != 2 ||
				!strings.Contains(said, "an older state of the database was put back") {
				t.Errorf("with an older log it ends with code %d\n%s", code, said)
			}
			must.Do(t, os.Truncate(key+".watermark.sealed", 100))
			if code, said := h.attempt(ctx, key, address); code != 2 || !strings.Contains(said, "it was cut") {
				t.Errorf("with a journal that was cut it ends with code %d\n%s", code, said)
			}
		})
	}
}

// settle waits until everything is sealed: a restart in the tests that
// follow is no reason for entries of its own to wait.
func (h *harness) settle(ctx context.Context, c *client.Client) {
	h.t.Helper()
	var export strings.Builder // an export waits for what was recorded before it
	must.Do(h.t, c.Export(ctx, &export))
}

// TestTwoReplicasRunACallOnce: no process is killed. Right after the first replica has answered,
// its traces are removed from the database, and the second one is asked.
func TestTwoReplicasRunACallOnce(t *testing.T) {
	h := newHarness(t, testbin.Path(t, "cmd/assent"), pgtest.New(t))
	addresses := []string{h.address(), h.address()}
	for _, address := range addresses {
		h.serve(address)
	}
	ctx := t.Context()
	first, second := h.once(addresses[0], h.bot), h.once(addresses[1], h.bot)
	opened, err := first.Open(ctx, "clerk", call("transfer", 1), client.OpenOptions{})
	must.Do(t, err)
	id := opened.Request.ID
	for _, token := range []string{h.alice, h.bob} {
		_, err := vote(ctx, h.client(addresses[0], token), id)
		must.Do(t, err)
	}
	sealed(ctx, t, first, id, approval.EventApproved)
	h.keepRows()
	_, err = first.Consume(ctx, id, call("transfer", 1), "")
	must.Do(t, err)
	h.putRowsBack()
	_, err = second.Consume(ctx, id, call("transfer", 1), "")
	refusedWith(t, "the second replica", err, openapi.CodeTampered)
}

// TestNothingIsSpentWhileSealingFails: the answer says why, and afterwards
// the same approval may be used.
func TestNothingIsSpentWhileSealingFails(t *testing.T) {
	h := newHarness(t, testbin.Path(t, "cmd/assent"), "")
	address := h.address()
	h.serve(address)
	ctx := t.Context()
	bot := h.once(address, h.bot)
	alice, bob := h.client(address, h.alice), h.client(address, h.bob)
	opened, err := bot.Open(ctx, "clerk", call("transfer", 1), client.OpenOptions{})
	must.Do(t, err)
	h.exec("CREATE TRIGGER stop BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'no'); END")
	id := opened.Request.ID
	for _, c := range []*client.Client{alice, bob} {
		_, err := vote(ctx, c, id) // an approval takes nothing away
		must.Do(t, err)
	}
	_, err = bot.Consume(ctx, id, call("transfer", 1), "")
	p := refusedWith(t, "while sealing fails", err, openapi.CodeUnavailable)
	if p != nil && (p.Status != http.StatusServiceUnavailable || !strings.Contains(p.Detail, "must be sealed")) {
		t.Errorf("it is refused with %d: %s", p.Status, p.Detail)
	}
	if r, err := bot.Request(ctx, id); err != nil || r.State != approval.Approved {
		t.Errorf("the request is %v (%v)", r, err)
	}
	h.exec("DROP TRIGGER stop")
	_, err = bot.Consume(ctx, id, call("transfer", 1), "")
	must.Do(t, err)
}
