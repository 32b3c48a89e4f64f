package slack_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/server/notify/slack"
)

const (
	approve = "assent_approve"
	deny    = "assent_deny"
)

func (w *world) closedMessage(parts ...string) {
	w.t.Helper()
	p := w.only()
	holds(w.t, texts(p.blocks), parts...)
	if _, ok := p.button(approve); ok {
		w.t.Error("the approve button is still there")
	}
	if _, ok := p.button(deny); ok {
		w.t.Error("the deny button is still there")
	}
	if _, ok := p.button("assent_open"); !ok {
		w.t.Error("the link to the inbox is gone")
	}
}

func TestApproveInSlack(t *testing.T) {
	w, r := asked(t, "trade", `{"amount":5,"what":"gold"}`)
	p := w.only()
	p.shows(t,
		"Approval needed",
		"Agent: trader",
		"tool trade",
		"For: rita@acme.example",
		`"amount": 5`,
		`"what": "gold"`,
		"Needs: 1 of risk",
		"acme.rules trades, acme.policy.yaml:",
		"https://assent.example/requests/"+r.ID,
	)
	b, _ := p.button(approve)
	if b.Confirm == nil || !strings.Contains(b.Confirm.Text.Text, r.ID) ||
		!strings.Contains(b.Confirm.Text.Text, strings.TrimPrefix(r.Binding(), "sha256:")[:16]) {
		t.Errorf("the confirmation names neither request nor binding: %+v", b.Confirm)
	}
	w.click(p, approve, "U0ALICE")
	r = w.request(r.ID)
	if r.State != approval.Approved || len(r.Votes) != 1 || r.Votes[0].Person != "alice@acme.example" ||
		r.Votes[0].Channel != "slack" || !r.Votes[0].Full {
		t.Fatalf("got %s by %+v", r.State, r.Votes)
	}
	w.hears("approved: it may run once")
	// The click itself updates the message, before any delivery.
	w.closedMessage("Approved by alice@acme.example at 2026-03-01 12:00 UTC")
	edits := w.only().edits
	w.deliver()
	w.closedMessage("Approved by alice@acme.example")
	if w.only().edits != edits {
		t.Error("the delivery rewrote what was right")
	}
}

func TestDenyAsksForTheReason(t *testing.T) {
	w, r := asked(t, "trade", `{"amount":5}`)
	w.click(w.only(), deny, "U0ALICE")
	if got := w.request(r.ID); got.State != approval.Pending {
		t.Fatalf("%s before there was a reason", got.State)
	}
	w.submit("U0ALICE", " too <much> & *bold* \n now ")
	r = w.request(r.ID)
	if r.State != approval.Denied || r.By != "alice@acme.example" || r.Reason != "too <much> & *bold* \n now" {
		t.Fatalf("got %s by %s: %q", r.State, r.By, r.Reason)
	}
	w.deliver()
	w.closedMessage("Denied by alice@acme.example at", `Their words: too &lt;much&gt; &amp; *bold* \u{a} now`)
	w.hears("denied: it will not run")
}

func TestTwoPeopleAndAButtonPressedTwice(t *testing.T) {
	w, r := asked(t, "pair", `{}`)
	first := w.only()
	w.click(first, approve, "U0ALICE")
	w.hears("1 of 2")
	w.shows("Needs: 2 of risk. Approvals so far: 1")
	w.click(first, approve, "U0ALICE")
	w.hears("said so before")
	if got := w.request(r.ID); got.State != approval.Pending || len(got.Votes) != 1 {
		t.Fatalf("got %s with %d votes", got.State, len(got.Votes))
	}
	w.click(first, approve, "U0BOB") // mapped by the short name, which is valid for our own workspace
	w.deliver()
	w.closedMessage("Approved by alice@acme.example, bob@acme.example at")
}

func TestOldButtonAfterTheDecision(t *testing.T) {
	w, r := asked(t, "trade", `{"amount":5}`)
	old := w.only()
	w.click(old, approve, "U0ALICE")
	w.slack.heard()
	w.click(old, approve, "U0BOB")
	w.hears("too late: the request is approved")
	w.click(old, deny, "U0BOB") // a late denial still stops a call that has not run
	w.submit("U0BOB", "stop it")
	if r = w.request(r.ID); r.State != approval.Expired || r.Cause != approval.ByLateDeny {
		t.Fatalf("got %s (%s)", r.State, r.Cause)
	}
	w.deliver()
	w.closedMessage("Expired by bob@acme.example at", "late_deny")
}

func TestWhoMayNot(t *testing.T) {
	for name, test := range map[string]struct{ user, team, want string }{
		"not mapped":                          {"U0EVE", team, "not mapped"},
		"requester":                           {"U0RITA", team, "not eligible to answer"},
		"same short name, another workspace":  {"U0BOB", "T0PARTNER", "not mapped"},
		"same long name, another workspace":   {"U0ALICE", "T0PARTNER", "not mapped"},
		"name of a person as the user's name": {"UALICE", team, "not mapped"},
	} {
		t.Run(name, func(t *testing.T) {
			w, r := asked(t, "trade", `{"amount":5}`)
			p := w.only()
			for _, action := range []string{approve, deny} {
				b, _ := p.button(action)
				payload := w.payload(p, action, b.Value, test.user)
				payload["user"] = map[string]any{
					"id":       test.user,
					"name":     "alice@acme.example",
					"username": "alice",
					"team_id":  test.team,
				}
				w.send(payload)
				if name == "requester" &&
					action == deny { // a person who may not deny learns this before they write a reason
					test.want = "not eligible to answer this request: the agent acts for this person"
				}
				w.hears(test.want)
			}

			w.unanswered(r.ID, name)
			if len(w.slack.views) > 0 {
				t.Error("a form was opened for somebody who may not answer")
			}
		})
	}
}

func TestPartnerWithALongNameMay(t *testing.T) {
	w, r := asked(t, "trade", `{"amount":5}`)
	p, b := w.button(approve)
	payload := w.payload(p, approve, b.Value, "U0CARL")
	payload["user"] = map[string]any{"id": "U0CARL", "team_id": "T0PARTNER"}
	w.send(payload)
	if got := w.request(r.ID); got.State != approval.Approved || got.By != "carl@acme.example" {
		t.Errorf("got %s by %s", got.State, got.By)
	}
}

func TestArgumentsStayOutUnlessConfigured(t *testing.T) {
	w, r := asked(t, "trade", `{"amount":5,"what":"gold"}`, func(c *slack.Config) { c.Arguments = false })
	p := w.only()
	lacks(t, texts(p.blocks), "gold", "amount")
	w.closedMessage("Approval needed", "not shown in Slack")
	w.forge(p, r, "not configured", "not shown fully")
}

// forge clicks an approve button that the message doesn't have.
func (w *world) forge(p posted, r *approval.Request, name, want string) {
	w.t.Helper()
	value := r.ID + " 0 " + strings.TrimPrefix(r.Revisions[0].Binding, "sha256:")[:16]
	w.send(w.payload(p, approve, value, "U0ALICE"))
	w.hears(want)
	w.unanswered(r.ID, name)
}

func TestHiddenValuesStayHidden(t *testing.T) {
	w, r := asked(t, "pay", `{"card":"4111-1111","to":{"name":"Zoe","iban":"DE1"},"amount":5}`)
	p := w.only()
	lacks(t, texts(p.blocks), "4111", "Zoe")
	p.shows(t,
		`"card": (hidden string),`,
		`"name": (hidden string),`,
		`"iban": "DE1"`,
		"A policy hides values",
		"message is not shown",
	)
	w.closedMessage()
	w.forge(p, r, "hidden", "not shown fully")
}

func TestNothingHiddenNothingMissing(t *testing.T) {
	w, r := asked(t, "pay", `{"amount":5}`)
	w.click(w.only(), approve, "U0ALICE")
	if got := w.request(r.ID); got.State != approval.Approved {
		t.Errorf("got %s", got.State)
	}
}

func TestLongArgumentsAreAnnouncedAndCantBeApproved(t *testing.T) {
	for name, args := range map[string]string{
		"long text":    `{"cmd":"` + strings.Repeat("a ", 4000) + `; rm -rf /"}`,
		"many members": `{"a":[` + strings.Repeat(`"0123456789",`, 2000) + `"x"]}`,
		"huge":         `{"a":[` + strings.Repeat(`1,`, 20_000) + `1]}`,
		"long key":     `{"` + strings.Repeat("k", 5000) + `":1}`,
	} {
		w, r := asked(t, "trade", args)
		w.closedMessage("Not everything is shown", "can only be approved there")
		w.forge(w.only(), r, name, "not shown fully")
	}
}

func TestPaddingIsCountedNotShown(t *testing.T) {
	w, _ := asked(t, "trade", `{"cmd":"ls`+strings.Repeat(" ", 5000)+`; rm -rf /"}`)
	w.shows(`"cmd": "ls\u{20*5000}; rm -rf /"`)
}

func TestEditVoidsOldButtons(t *testing.T) {
	w, r := asked(t, "pair", `{"amount":5}`)
	old := w.only()
	if _, err := w.service.Edit(t.Context(), approval.EditInput{
		Tenant:  tenant,
		ID:      r.ID,
		Binding: r.Binding(),
		Person:  "bob@acme.example",
		Args:    `{"amount":4}`,
		Channel: "inbox",
		Full:    true,
	}); err != nil {
		t.Fatal(err)
	}

	w.click(old, approve, "U0ALICE")
	w.hears("not what was shown")
	w.deliver()
	w.shows("Edited by bob@acme.example, revision 1", `"amount": 4`)
	w.click(w.only(), approve, "U0ALICE")
	if got := w.request(r.ID); got.State != approval.Approved || string(got.Current().Call.Args) != `{"amount":4}` {
		t.Errorf("got %s of %s", got.State, got.Current().Call.Args)
	}
}

// TestJoiningVoidsOldButtons checks that an approval from a message that showed one caller is
// not valid for two.
func TestJoiningVoidsOldButtons(t *testing.T) {
	w, r := asked(t, "trade", `{"amount":5}`)
	old := w.only()
	_, err := w.service.Open(t.Context(), approval.OpenInput{
		Tenant: tenant,
		Agent:  r.Agent.ID,
		Asker:  approval.Asker{Token: "second"},
		Call:   &r.Revisions[0].Call,
	})
	must.Do(t, err)
	w.click(old, approve, "U0ALICE")
	w.hears("changed meanwhile")
	if got := w.request(r.ID); got.State != approval.Pending || len(got.Votes) > 0 {
		t.Errorf("got %s with %+v", got.State, got.Votes)
	}
	w.shows("second")
	w.click(w.only(), approve, "U0ALICE")
	if got := w.request(r.ID); len(got.ApprovedBy()) != 1 {
		t.Errorf("got %+v", got.Votes)
	}
}

func TestWhateverChannelDecides(t *testing.T) {
	for want, act := range map[string]func(w *world, r *approval.Request) error{
		"Approved by bob@acme.example": (*world).byBob,
		"Cancelled by ci": func(w *world, r *approval.Request) error {
			_, err := w.service.Cancel(t.Context(), tenant, r.ID, "ci", "")
			return err
		},
		"Expired at 2026-03-01 13:00 UTC (deadline)": func(w *world, _ *approval.Request) error {
			w.pass(time.Hour)
			return nil
		},
	} {
		w, r := asked(t, "trade", `{"amount":5}`)
		must.Do(t, act(w, r))
		w.deliver()
		w.closedMessage(want)
	}
}

func TestConsumedIsShown(t *testing.T) {
	w, r := asked(t, "trade", `{"amount":5}`)
	w.click(w.only(), approve, "U0ALICE")
	if _, err := w.service.Consume(t.Context(), approval.ConsumeInput{
		Tenant:  tenant,
		ID:      r.ID,
		Asker:   approval.Asker{Token: "ci"},
		Binding: r.Binding(),
		Key:     "k",
	}); err != nil {
		t.Fatal(err)
	}

	w.deliver()
	w.closedMessage("Approved by alice@acme.example at", "Run by ci at 2026-03-01 12:00 UTC")
}

func TestDecidedBeforeTheFirstMessage(t *testing.T) {
	w := newWorld(t)
	r := w.ask("trade", `{"amount":5}`)
	if _, err := w.service.Cancel(t.Context(), tenant, r.ID, "ci", ""); err != nil {
		t.Fatal(err)
	}
	w.deliver()
	if got := w.slack.now(); len(got) != 0 {
		t.Errorf("posted %d messages about something that is over", len(got))
	}
}

func TestReminderGoesIntoTheThreadOnce(t *testing.T) {
	w, r := asked(t, "trade", `{"amount":5}`)
	// The version has changed, so the delivery of the reminder rewrites the message first,
	// which fails.
	w.slack.order("chat.update", failure{status: 500})
	w.pass(30 * time.Minute)
	w.deliver()
	w.pass(2 * time.Minute)
	w.deliver()
	replies := w.slack.replies()
	if len(replies) != 1 || replies[0].thread != w.only().ts || !replies[0].broadcast {
		t.Fatalf("got %d replies: %+v", len(replies), replies)
	}
	holds(t, texts(replies[0].blocks), "Still waiting", r.ID, "until 2026-03-01 13:00 UTC")
}

func TestEscalationReachesTheOtherChannel(t *testing.T) {
	w, r := asked(t, "stuck", `{}`)
	w.pass(11 * time.Minute)
	w.deliver()
	var channels []string
	for _, p := range w.slack.now() {
		channels = append(channels, p.channel)
		p.shows(t, "leads is called in and may approve in place of risk")
	}
	if !slices.Equal(channels, []string{"C0RISK", "C0LEADS"}) {
		t.Fatalf("got messages in %v", channels)
	}
	w.click(w.slack.now()[1], approve, "U0ALICE")
	w.deliver()
	for _, p := range w.slack.now() {
		p.shows(t, "Approved by alice@acme.example")
	}
	if got := w.request(r.ID); got.State != approval.Approved {
		t.Errorf("got %s", got.State)
	}
}

func TestDeletedMessageComesBackWhilePeopleAreAsked(t *testing.T) {
	w, _ := asked(t, "pair", `{}`)
	old := w.only()
	w.slack.mu.Lock()
	w.slack.messages[0].deleted = true
	w.slack.mu.Unlock()
	w.click(old, approve, "U0ALICE")
	w.deliver()
	if p := w.only(); p.ts == old.ts {
		t.Error("the deleted message was kept")
	}
}

func TestOtherTenantsStayOut(t *testing.T) {
	w, _ := asked(t, "trade", `{"amount":5}`, func(c *slack.Config) { c.Tenant = "globex" })
	jobs, err := w.store.Jobs(t.Context(), tenant, "dead", 10)
	if err != nil || len(jobs) != 1 || !strings.Contains(jobs[0].Problem, "another tenant") || len(w.slack.now()) != 0 {
		t.Errorf("got %+v, %v", jobs, err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	good := newWorld(t)
	for want, change := range map[string]func(*slack.Config){
		"tenant":            func(c *slack.Config) { c.Tenant = "" },
		"team":              func(c *slack.Config) { c.Team = "acme" },
		"token":             func(c *slack.Config) { c.Token = "" },
		"signing secret":    func(c *slack.Config) { c.SigningSecret = "" },
		"expected at least": func(c *slack.Config) { c.Channels = nil },
		"not its name":      func(c *slack.Config) { c.Channels = map[string]string{"": "#risk"} },
		"expected a voter":  func(c *slack.Config) { c.Voter = nil },
		"inbox":             func(c *slack.Config) { c.Inbox = "assent" },
		"api":               func(c *slack.Config) { c.API = "http://slack.example/api/" },
		"ends in a slash":   func(c *slack.Config) { c.API = "https://slack.example/api" },
	} {
		cfg := slack.Config{
			Tenant:        tenant,
			Team:          team,
			Token:         botToken,
			SigningSecret: signing,
			Channels:      map[string]string{"": "C0RISK"},
			Inbox:         "https://assent.example",
			Voter:         good.service,
			Requests:      good.service,
			People:        good.people,
			Values:        good.store,
		}
		if _, err := slack.New(cfg); err != nil {
			t.Fatal(err)
		}
		change(&cfg)
		if _, err := slack.New(cfg); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "%!") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
