package administration_test

import (
	"context"
	"crypto/rand"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/server/administration"
	"github.com/assent-dev/assent/store/sqlite"
)

// directory has three administrators, and a person who is not one.
type directory struct{}

func (directory) Person(_ context.Context, _, name string) (approval.Person, bool, error) {
	groups := map[string][]string{
		"ann": {"keepers"},
		"bob": {"keepers"},
		"cy":  {"keepers"},
		"dee": {"risk"},
	}
	g, ok := groups[name]

	return approval.Person{ID: name, Groups: g}, ok, nil
}

func (d directory) Members(ctx context.Context, tenant, group string) ([]approval.Person, error) {
	var out []approval.Person
	for _, name := range []string{"ann", "bob", "cy", "dee"} {
		if p, _, _ := d.Person(ctx, tenant, name); p.Holds(group) {
			out = append(out, p)
		}
	}

	return out, nil
}

func (directory) Reading(context.Context, string, approval.Person) (people.Reading, error) {
	return people.Reading{}, nil
}

func (directory) Owners(context.Context, string, string) ([]string, error) { return nil, nil }

// This planner has no agents of its own.
type nobody struct{}

func (nobody) Plan(context.Context, string, string) (*approval.Compiled, error) {
	return nil, approval.ErrUnknownAgent
}

func (nobody) Past(string) *approval.PastRules { return nil }

func keepers(string) string { return "keepers" }

func newDesk(t *testing.T) *administration.Desk {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "assent.db"), sqlite.Options{})
	must.Do(t, err)
	t.Cleanup(func() { store.Close() })
	planner := &administration.Planner{Next: nobody{}, Admins: keepers}
	service := approval.New(store, planner, directory{}, time.Now, rand.Reader, approval.Config{})

	return &administration.Desk{Service: service, Directory: directory{}, Admins: keepers}
}

func token(name string) map[string]any {
	return map[string]any{
		"what":   "a token named " + name,
		"name":   name,
		"scopes": []string{"request"},
	}
}

// asked expects that people are asked about an act, and returns the request.
func asked(t *testing.T, d *administration.Desk, who approval.Asker, args map[string]any) *approval.Request {
	t.Helper()
	err := d.Take(t.Context(), "t", who, administration.CreateToken, args)
	var pending *administration.PendingError
	if !errors.As(err, &pending) {
		t.Fatalf("got %v, want a request", err)
	}

	return pending.Request
}

func vote(
	t *testing.T,
	d *administration.Desk,
	r *approval.Request,
	person string,
	verdict approval.Verdict,
	want approval.VoteOutcome,
) {
	t.Helper()
	v, err := d.Service.Vote(t.Context(), approval.VoteInput{
		Tenant:  "t",
		ID:      r.ID,
		Binding: r.Binding(),
		Person:  person,
		Verdict: verdict,
		Reason:  "because",
		Channel: "test",
		Full:    true,
	})
	if err != nil || v.Outcome != want {
		t.Fatalf("%s by %s: got %+v, %v, want %s", verdict, person, v, err, want)
	}
}

// TestAnAdministratorsActNeedsAnotherAdministrator checks that another administrator must
// approve, and that the act is then permitted once.
func TestAnAdministratorsActNeedsAnotherAdministrator(t *testing.T) {
	d := newDesk(t)
	anns := approval.AdministrationAsker("root", "ann")
	r := asked(t, d, anns, token("rt"))
	vote(t, d, r, "ann", approval.Approve, approval.VoteNotEligible)
	vote(t, d, r, "dee", approval.Approve, approval.VoteNotEligible)
	if again := asked(t, d, anns, token("rt")); again.ID != r.ID {
		t.Error("the same act is asked about twice")
	}
	vote(t, d, r, "bob", approval.Approve, approval.VoteApproved)
	must.Do(t, d.Take(t.Context(), "t", anns, administration.CreateToken, token("rt")))
	if again := asked(t, d, anns, token("rt")); again.ID == r.ID {
		t.Error("one approval is good for two acts")
	}
}

// TestAnActOfNoAdministratorNeedsTwo covers a token without a person and one of a person
// who is not an administrator: two administrators must approve.
func TestAnActOfNoAdministratorNeedsTwo(t *testing.T) {
	for _, who := range []approval.Asker{
		approval.AdministrationAsker("root", ""),
		approval.AdministrationAsker("root", "dee"),
	} {
		d := newDesk(t)
		r := asked(t, d, who, token("rt"))
		vote(t, d, r, "ann", approval.Approve, approval.VoteCounted)
		asked(t, d, who, token("rt"))
		vote(t, d, r, "bob", approval.Approve, approval.VoteApproved)
		if err := d.Take(t.Context(), "t", who, administration.CreateToken, token("rt")); err != nil {
			t.Error(err)
		}
	}
}

// TestAnApprovedActIsNoOtherAct checks that an approval is only for the same act and asker.
func TestAnApprovedActIsNoOtherAct(t *testing.T) {
	d := newDesk(t)
	anns := approval.AdministrationAsker("root", "ann")
	vote(t, d, asked(t, d, anns, token("rt")), "bob", approval.Approve, approval.VoteApproved)
	asked(t, d, anns, token("other"))
	asked(t, d, approval.AdministrationAsker("other", ""), token("rt"))
	if err := d.Take(t.Context(), "t", anns, administration.LiftFreeze, token("rt")); err == nil {
		t.Error("an approval to make a token lifts a freeze")
	}
	if err := d.Take(t.Context(), "t", anns, administration.CreateToken, token("rt")); err != nil {
		t.Error(err)
	}
}

func TestADeniedActSaysWhy(t *testing.T) {
	d := newDesk(t)
	anns := approval.AdministrationAsker("root", "ann")
	vote(t, d, asked(t, d, anns, token("rt")), "bob", approval.Deny, approval.VoteDenied)
	err := d.Take(t.Context(), "t", anns, administration.CreateToken, token("rt"))
	var refused *administration.RefusedError
	if !errors.As(err, &refused) || refused.Reason != "because" {
		t.Errorf("got %v", err)
	}
}

// TestRuntimesKnowNoAdministration checks that runtimes can't request acts, not even to
// have them approved for a later request of an administrator.
func TestRuntimesKnowNoAdministration(t *testing.T) {
	d := newDesk(t)
	r := asked(t, d, approval.AdministrationAsker("root", "ann"), token("rt"))
	_, err := d.Service.Open(t.Context(), approval.OpenInput{
		Tenant: "t",
		Agent:  administration.Agent,
		Asker:  approval.Asker{Token: "root", Person: "ann"},
		Call:   &r.Current().Call,
	})
	if !errors.Is(err, approval.ErrUnknownAgent) {
		t.Errorf("got %v", err)
	}
}

// TestFreezesLeaveAdministrationAlone checks that a freeze of everything does not freeze
// the reserved agent, because then it could not be lifted, and that the reserved agent
// can't be frozen alone.
func TestFreezesLeaveAdministrationAlone(t *testing.T) {
	d := newDesk(t)
	must.Do(t, d.Service.Freeze(t.Context(), "t", "", "ann", "enough"))
	anns := approval.AdministrationAsker("root", "ann")
	args := map[string]any{"agent": "", "what": "everything"}
	err := d.Take(t.Context(), "t", anns, administration.LiftFreeze, args)
	var pending *administration.PendingError
	if !errors.As(err, &pending) {
		t.Fatalf("got %v", err)
	}
	vote(t, d, pending.Request, "bob", approval.Approve, approval.VoteApproved)
	if err := d.Take(t.Context(), "t", anns, administration.LiftFreeze, args); err != nil {
		t.Error(err)
	}

	var wrong *approval.InputError
	if err := d.Service.Freeze(t.Context(), "t", administration.Agent, "ann", "all of it"); !errors.As(err, &wrong) {
		t.Errorf("got %v", err)
	}
}

// TestActsAreShownInWords checks that the message and the arguments show people what they
// approve.
func TestActsAreShownInWords(t *testing.T) {
	d := newDesk(t)
	r := asked(t, d, approval.AdministrationAsker("root", "ann"), token("rt"))
	if got := r.Current().Decision.Message; got != "Make a token named rt?" {
		t.Errorf("got %q", got)
	}
	if groups := approval.Summarize(r).Groups; !slices.Equal(groups, []string{"keepers"}) {
		t.Errorf("asked of %q", groups)
	}
}
