package directory_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/server/directory"
)

// values keeps values in memory.
type values struct {
	mu   sync.Mutex
	all  map[string]value
	lost error
}

type value struct {
	bucket, key string
	text        []byte
	expires     time.Time
}

func newValues() *values { return &values{all: map[string]value{}} }

func (v *values) SetValue(_ context.Context, bucket, key string, text []byte, expires time.Time) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all[bucket+"\x00"+key] = value{bucket, key, slices.Clone(text), expires}
	return v.lost
}

func (v *values) Value(_ context.Context, bucket, key string, now time.Time) ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	one, ok := v.all[bucket+"\x00"+key]
	if v.lost != nil {
		return nil, v.lost
	}
	if !ok || !now.Before(one.expires) {
		return nil, approval.ErrNotFound
	}
	return one.text, nil
}

func (v *values) ListValues(_ context.Context, bucket string, now time.Time) (map[string][]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := map[string][]byte{}
	for _, one := range v.all {
		if one.bucket == bucket && now.Before(one.expires) {
			out[one.key] = one.text
		}
	}
	return out, v.lost
}

// harness is a joined directory with a clock.
type harness struct {
	*directory.Joined
	values *values
	now    time.Time
	t      rapid.TB
}

const tenant = "acme"

func join(t rapid.TB, text string) *harness {
	d, findings := people.Parse("people.yaml", []byte("schema_version: \"1.0.0\"\n"+text))
	if d == nil {
		t.Fatalf("%+v", findings)
	}
	h := &harness{values: newValues(), now: time.Unix(1_800_000_000, 0), t: t}
	h.Joined = directory.With(
		directory.Tenants{tenant: d, "other": d},
		h.values,
		func() time.Time { return h.now },
	)
	return h
}

func (h *harness) signIn(c directory.Claims) (approval.Person, error) {
	if c.Issuer == "" {
		c.Issuer = "https://idp.example"
	}
	return h.SignIn(context.Background(), tenant, c, h.now.Add(time.Hour))
}

func (h *harness) groups(name string) []string {
	h.t.Helper()
	p, ok, err := h.Person(context.Background(), tenant, name)
	if err != nil {
		h.t.Fatal(err)
	}
	if !ok {
		return nil
	}
	return p.Groups
}

const (
	aliceAndBob = "people:\n  - {id: alice@example.com, groups: [risk]}\n  - {id: bob, also: " +
		"[\"oidc:https://idp.example|b1\"]}\n"
	closedList = "groups: {risk: {}, ops: {}}\n"
)

func TestSignInAddsGroups(t *testing.T) {
	h := join(t, aliceAndBob+closedList)
	p, err := h.signIn(directory.Claims{
		Subject:       "a1",
		Email:         "Alice@example.com",
		EmailVerified: true,
		Name:          "Someone Else",
		Groups:        []string{"ops", "staff", "", "o\u200bps", "ops"},
	})
	if want := (approval.Person{ID: "alice@example.com", Groups: []string{"ops", "risk"}}); err != nil ||
		!reflect.DeepEqual(p, want) {
		t.Fatalf("%+v %v", p, err)
	}
	for _, name := range []string{"alice@example.com", "oidc:https://idp.example|a1"} {
		if got := h.groups(name); !slices.Equal(got, []string{"ops", "risk"}) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if _, ok, _ := h.Person(t.Context(), "other", "oidc:https://idp.example|a1"); ok {
		t.Error("a sign-in counts in another tenant")
	}
	if p, err := h.signIn(directory.Claims{
		Subject:       "a1",
		Email:         "alice@example.com",
		EmailVerified: true,
	}); err != nil || len(p.Groups) != 1 {
		t.Errorf("groups of an earlier sign-in stay: %v %v", p, err)
	}

	if _, err := h.signIn(directory.Claims{Subject: "b1", Groups: []string{"ops"}}); err != nil ||
		!slices.Equal(h.groups("bob"), []string{"ops"}) {
		t.Errorf("by subject: %v", err)
	}
	h.now = h.now.Add(time.Hour)
	if got := h.groups("bob"); got == nil || len(got) != 0 {
		t.Errorf("groups did not lapse: %v", got)
	}
	if got := h.groups("oidc:https://idp.example|a1"); got != nil {
		t.Errorf("a name outlives its sign-in: %v", got)
	}
}

func TestStrangers(t *testing.T) {
	h := join(t, "people: []\n"+closedList)
	p, err := h.signIn(directory.Claims{
		Subject:       "c1",
		Email:         "carol@example.com",
		EmailVerified: true,
		Name:          "Carol",
		Groups:        []string{"ops"},
	})
	if err != nil || p.ID != "carol@example.com" || p.Name != "Carol" {
		t.Fatalf("%+v %v", p, err)
	}
	// The id stays if the address changes or is no longer verified: one human has one id.
	for _, c := range []directory.Claims{{Subject: "c1", Groups: []string{"ops"}}, {
		Subject:       "c1",
		Email:         "c@example.com",
		EmailVerified: true,
		Groups:        []string{"ops"},
	}} {
		h.now = h.now.Add(40 * time.Minute)
		if p, err := h.signIn(c); err != nil || p.ID != "carol@example.com" {
			t.Errorf("%+v: %+v %v", c, p, err)
		}
	}

	for _, name := range []string{"CAROL@example.com", "c@example.com", "oidc:https://idp.example|c1"} {
		if h.groups(name) == nil {
			t.Errorf("%s is nobody", name)
		}
	}
	if _, err := h.signIn(directory.Claims{
		Subject:       "c2",
		Email:         "c@example.com",
		EmailVerified: true,
		Groups:        []string{"ops"},
	}); !errors.Is(err, directory.ErrConflict) {
		t.Errorf("another account took the address: %v", err)
	}

	p, err = h.signIn(directory.Claims{Subject: "d1", Email: "dan@example.com", Groups: []string{"ops"}})
	if err != nil || p.ID != "oidc:https://idp.example|d1" || h.groups("dan@example.com") != nil {
		t.Errorf("an address that is not verified: %+v %v", p, err)
	}
	members, err := h.Members(t.Context(), tenant, "ops")
	if err != nil || len(members) != 2 || members[0].ID != "carol@example.com" ||
		members[1].ID != "oidc:https://idp.example|d1" {
		t.Errorf("members: %+v %v", members, err)
	}
	h.now = h.now.Add(time.Hour)
	if members, _ := h.Members(t.Context(), tenant, ""); members != nil || h.groups("carol@example.com") != nil {
		t.Errorf("a sign-in did not lapse: %v", members)
	}
}

func TestSignInRefused(t *testing.T) {
	both := "people:\n  - {id: alice@example.com, also: [\"oidc:https://idp.example|a1\"]}\n  - {id: bob@example.com}\n"
	ops := []string{"ops"}
	for name, c := range map[string]struct {
		dir    string
		claims directory.Claims
		want   error
	}{
		"no group": {both, directory.Claims{
			Subject:       "x",
			Email:         "x@example.com",
			EmailVerified: true,
		}, directory.ErrUnknown},
		"group not on list": {
			both + closedList,
			directory.Claims{Subject: "x", Groups: []string{"staff"}},
			directory.ErrUnknown,
		},
		"no subject": {both, directory.Claims{
			Email:         "bob@example.com",
			EmailVerified: true,
			Groups:        ops,
		}, directory.ErrUnknown},
		"odd subject": {both, directory.Claims{Subject: "x\u200b", Groups: ops}, directory.ErrUnknown},
		"two people": {both, directory.Claims{
			Subject:       "a1",
			Email:         "bob@example.com",
			EmailVerified: true,
		}, directory.ErrConflict},
		"unverified": {both, directory.Claims{Subject: "x", Email: "bob@example.com"}, directory.ErrUnknown},
		"kelvin sign": {"people: [{id: kim@example.com}]\n", directory.Claims{
			Subject:       "x",
			Email:         "\u212aim@example.com",
			EmailVerified: true,
		}, directory.ErrUnknown},
		"dotted capital": {"people: [{id: ike@example.com}]\n", directory.Claims{
			Subject:       "x",
			Email:         "\u0130ke@example.com",
			EmailVerified: true,
		}, directory.ErrUnknown},
		"address with scheme": {"people: [{id: \"slack:U1\"}]\n", directory.Claims{
			Subject:       "x",
			Email:         "slack:U1",
			EmailVerified: true,
		}, directory.ErrUnknown},
		"plain name as mail": {"people: [{id: root}]\n", directory.Claims{
			Subject:       "x",
			Email:         "root",
			EmailVerified: true,
		}, directory.ErrUnknown},
		"issuer of no scheme": {both, directory.Claims{
			Issuer:  "idp",
			Subject: "a1",
			Groups:  ops,
		}, directory.ErrUnknown},
		"same sub, other idp": {
			both,
			directory.Claims{Issuer: "https://evil.example", Subject: "a1"},
			directory.ErrUnknown,
		},
		"invisible address": {both, directory.Claims{
			Subject:       "x",
			Email:         "bob\u200b@example.com",
			EmailVerified: true,
		}, directory.ErrUnknown},
		"several addresses": {both, directory.Claims{
			Subject:       "x",
			Email:         "bob@example.com,x@x.example",
			EmailVerified: true,
		}, directory.ErrUnknown},
		"domain in the middle": {both, directory.Claims{
			Subject:       "x",
			Email:         "bob@example.com@x.example",
			EmailVerified: true,
		}, directory.ErrUnknown},
	} {
		if p, err := join(t, c.dir).signIn(c.claims); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v %v", name, p, err)
		}
	}
}

// TestWithoutAListOfGroupsSignInsBringNone checks that a person who is only known to the
// provider stays unknown, and that others gain no group.
func TestWithoutAListOfGroupsSignInsBringNone(t *testing.T) {
	h := join(t, aliceAndBob)
	if p, err := h.signIn(directory.Claims{
		Subject:       "e1",
		Email:         "eve@example.com",
		EmailVerified: true,
		Groups:        []string{"Domain Users", "admins", "risk"},
	}); !errors.Is(err, directory.ErrUnknown) {
		t.Errorf("eve is %+v, %v", p, err)
	}

	if p, err := h.signIn(directory.Claims{Subject: "b1", Groups: []string{"admins", "risk"}}); err != nil ||
		len(p.Groups) > 0 {
		t.Errorf("bob is %+v, %v", p, err)
	}
}

// TestAReservedGroupComesFromTheFileOnly checks that a provider can't give a reserved
// group, even if it is on the list.
func TestAReservedGroupComesFromTheFileOnly(t *testing.T) {
	text := "schema_version: \"1.0.0\"\npeople:\n  - {id: alice@example.com, groups: [admins]}\n  - {id: bob, also: " +
		"[\"oidc:https://idp.example|b1\"]}\n" +
		"groups: {admins: {}, ops: {}}\n"
	d, _ := people.Parse("f", []byte(text))
	h := join(t, aliceAndBob)
	h.Joined = directory.With(directory.Reserve(d, "admins"), h.values, func() time.Time { return h.now })
	if p, err := h.signIn(directory.Claims{Subject: "b1", Groups: []string{"admins", "ops"}}); err != nil ||
		!slices.Equal(p.Groups, []string{"ops"}) {
		t.Errorf("bob is %+v, %v", p, err)
	}
	if p, err := h.signIn(directory.Claims{Subject: "e1", Groups: []string{"admins"}}); !errors.Is(
		err,
		directory.ErrUnknown,
	) {
		t.Errorf("eve is %+v, %v", p, err)
	}

	if got := h.groups("alice@example.com"); !slices.Equal(got, []string{"admins"}) {
		t.Errorf("alice is in %v", got)
	}
	if members, err := h.Members(t.Context(), tenant, "admins"); err != nil || len(members) != 1 {
		t.Errorf("the group has %+v, %v", members, err)
	}
}

// swap is a base that can be replaced, like a watched file.
type swap struct{ directory.Base }

func TestTakenOutOfTheFile(t *testing.T) {
	h := join(t, aliceAndBob+closedList)
	d, _ := people.Parse("f", []byte("schema_version: \"1.0.0\"\n"+aliceAndBob+closedList))
	empty, _ := people.Parse("f", []byte("schema_version: \"1.0.0\"\npeople: []\n"+closedList))
	base := &swap{d}
	h.Joined = directory.With(base, h.values, func() time.Time { return h.now })
	if _, err := h.signIn(directory.Claims{
		Subject:       "a1",
		Email:         "alice@example.com",
		EmailVerified: true,
		Groups:        []string{"ops"},
	}); err != nil {
		t.Fatal(err)
	}

	base.Base = empty
	for _, name := range []string{"alice@example.com", "oidc:https://idp.example|a1"} {
		if got := h.groups(name); got != nil {
			t.Errorf("%s is still somebody, in %v", name, got)
		}
	}
	if m, err := h.Members(t.Context(), tenant, ""); m != nil || err != nil {
		t.Errorf("%v %v", m, err)
	}
	if _, err := h.signIn(directory.Claims{
		Subject:       "a1",
		Email:         "alice@example.com",
		EmailVerified: true,
		Groups:        []string{"ops"},
	}); err != nil || h.groups("alice@example.com") == nil {
		t.Errorf("a new sign-in, as one whom only the provider knows: %v", err)
	}
}

func TestStoreLost(t *testing.T) {
	h := join(t, aliceAndBob)
	h.values.lost = errors.New("lost")
	if _, ok, err := h.Person(t.Context(), tenant, "bob"); ok || !errors.Is(err, h.values.lost) {
		t.Errorf("person: %t %v", ok, err)
	}
	if m, err := h.Members(t.Context(), tenant, ""); m != nil || !errors.Is(err, h.values.lost) {
		t.Errorf("members: %v %v", m, err)
	}
	if _, err := h.signIn(directory.Claims{
		Subject:       "a1",
		Email:         "alice@example.com",
		EmailVerified: true,
	}); !errors.Is(err, h.values.lost) {
		t.Errorf("sign-in: %v", err)
	}

	h.values.lost = nil
	for _, key := range []string{"person/bob", "name/carol"} {
		must.Do(t, h.values.SetValue(t.Context(), "claims:"+tenant, key, []byte("{"), h.now.Add(time.Hour)))
		if _, ok, err := h.Person(t.Context(), tenant, key[len("person/"):]); key == "person/bob" &&
			(ok || err == nil) {
			t.Error("a broken value lets somebody in")
		}
	}

	if _, err := h.Members(t.Context(), tenant, ""); err == nil {
		t.Error("a broken value makes no member")
	}
	if o, err := h.Owners(t.Context(), tenant, "x"); o != nil || err != nil {
		t.Errorf("owners: %v %v", o, err)
	}
}

// TestOneHumanOnePerson signs accounts in, in any order. A name must never lead to two
// people, groups must be those of the file and the latest sign-in, and after all sign-ins
// expired only the file must count.
func TestOneHumanOnePerson(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := join(t, aliceAndBob+"groups: {risk: {}, ops: {}, it: {}}\n")
		subjects, mails := []string{"a1", "b1", "c1", "c2"}, []string{
			"alice@example.com",
			"carol@example.com",
			"dan@example.com",
			"",
		}
		for range rapid.IntRange(1, 8).Draw(t, "sign-ins") {
			c := directory.Claims{
				Subject:       rapid.SampledFrom(subjects).Draw(t, "subject"),
				Email:         rapid.SampledFrom(mails).Draw(t, "mail"),
				EmailVerified: rapid.Bool().Draw(t, "verified"),
				Groups: rapid.SliceOfN(rapid.SampledFrom([]string{"risk", "ops", "it"}), 0, 2).
					Draw(t, "groups"),
			}
			p, err := h.signIn(c)
			if err != nil {
				continue
			}
			for _, name := range []string{p.ID, people.Subject("https://idp.example", c.Subject)} {
				if q, ok, err := h.Person(context.Background(), tenant, name); !ok || err != nil ||
					!reflect.DeepEqual(p, q) {
					t.Fatalf("%s signed in as %+v and is %+v %t %v", name, p, q, ok, err)
				}
			}

			for _, g := range c.Groups {
				if !p.Holds(g) {
					t.Fatalf("%+v is not in %s", p, g)
				}
			}
			h.now = h.now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "minutes")) * time.Minute)
		}

		members, _ := h.Members(context.Background(), tenant, "")
		if compact := slices.CompactFunc(slices.Clone(members), func(a, b approval.Person) bool {
			return a.ID == b.ID
		}); len(compact) != len(members) {
			t.Fatalf("somebody is there twice: %+v", members)
		}
		for _, m := range members {
			if p, ok, _ := h.Person(context.Background(), tenant, m.ID); !ok || !reflect.DeepEqual(p, m) {
				t.Fatalf("member %+v is %+v %t", m, p, ok)
			}
		}
		h.now = h.now.Add(time.Hour)
		if members, _ := h.Members(context.Background(), tenant, ""); len(members) != 2 ||
			len(members[0].Groups)+len(members[1].Groups) != 1 {
			t.Fatalf("not lapsed: %+v", members)
		}
	})
}

// blockedNow returns the directory after a list of blocked names was added to its file,
// with the earlier sign-ins.
func (h *harness) blockedNow(text, blocked string) *harness {
	text = "schema_version: \"1.0.0\"\n" + text + "blocked: [" + blocked + "]\n"
	d, findings := people.Parse("people.yaml", []byte(text))
	if d == nil {
		h.t.Fatalf("%+v", findings)
	}
	next := *h
	next.Joined = directory.With(directory.Tenants{tenant: d}, h.values, func() time.Time { return h.now })
	return &next
}

// TestBlockedPeopleAreNobody checks that sessions of blocked people end, and that their
// next sign-in is refused by any of their names, even if the provider gives them a valid
// group.
func TestBlockedPeopleAreNobody(t *testing.T) {
	for _, c := range []struct {
		name, blocked, id string
		claims            directory.Claims
	}{
		{"a person of the file, by id", `alice@example.com`, "alice@example.com",
			directory.Claims{Subject: "a1", Email: "alice@example.com", EmailVerified: true, Groups: []string{"ops"}}},
		{"a person of the file, by another name", `"oidc:https://idp.example|b1"`, "bob",
			directory.Claims{Subject: "b1", Groups: []string{"ops"}}},
		{"a person of the file, by the subject of the sign-in", `"oidc:https://idp.example|a1"`, "alice@example.com",
			directory.Claims{Subject: "a1", Email: "alice@example.com", EmailVerified: true, Groups: []string{"ops"}}},
		{"somebody whom only the provider knows", `mallory@example.com`, "mallory@example.com",
			directory.Claims{Subject: "m1", Email: "mallory@example.com", EmailVerified: true,
				Groups: []string{"risk"}}},
		{"the same, by subject", `"oidc:https://idp.example|m1"`, "mallory@example.com",
			directory.Claims{Subject: "m1", Email: "mallory@example.com", EmailVerified: true,
				Groups: []string{"risk"}}},
	} {
		h := join(t, aliceAndBob+closedList)
		if p, err := h.signIn(c.claims); err != nil || p.ID != c.id {
			t.Fatalf("%s: before: %+v, %v", c.name, p, err)
		}
		after := h.blockedNow(aliceAndBob+closedList, c.blocked)
		if p, ok, err := after.Person(t.Context(), tenant, c.id); ok || err != nil {
			t.Errorf("%s: still known as %+v, %v", c.name, p, err)
		}
		for _, group := range []string{"", "risk", "ops"} {
			all, err := after.Members(t.Context(), tenant, group)
			if err != nil || slices.ContainsFunc(all, func(p approval.Person) bool { return p.ID == c.id }) {
				t.Errorf("%s: a member of %q: %+v, %v", c.name, group, all, err)
			}
		}
		if p, err := after.signIn(c.claims); !errors.Is(err, directory.ErrBlocked) {
			t.Errorf("%s: signed in as %+v, %v", c.name, p, err)
		}
		if p, err := after.signIn(directory.Claims{Subject: "o1", Groups: []string{"ops"}}); err != nil {
			t.Errorf("%s: somebody else: %+v, %v", c.name, p, err)
		}
	}
}
