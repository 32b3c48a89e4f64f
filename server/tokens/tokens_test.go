package tokens_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	reading "github.com/assent-dev/assent/policy/people"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/server/tokens"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/sqlite"
)

type people struct{}

func (people) Person(_ context.Context, _, name string) (approval.Person, bool, error) {
	known := map[string]string{"mara": "mara", "mara@acme": "mara", "ben": "ben"}
	id, ok := known[name]

	return approval.Person{ID: id}, ok, nil
}

func (people) Members(context.Context, string, string) ([]approval.Person, error) { return nil, nil }

func (people) Reading(context.Context, string, approval.Person) (reading.Reading, error) {
	return reading.Reading{}, nil
}

func (people) Owners(context.Context, string, string) ([]string, error) { return nil, nil }

// world is a maker with a real store, a clock that the test moves, and the recorded ledger
// entries.
type world struct {
	*testing.T
	store   store.Store
	now     time.Time
	maker   *tokens.Maker
	devices *tokens.Devices
	told    []string
	facts   map[string]any // of the last entry
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, now: time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)}
	var err error
	w.store, err = sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "assent.db"), sqlite.Options{})
	must(t, err)
	t.Cleanup(func() { w.store.Close() })
	w.maker = &tokens.Maker{
		Store:     w.store,
		Directory: people{},
		Now:       func() time.Time { return w.now },
		Random:    rand.Reader,
		Record: func(_ context.Context, _, event, subject, actor string, facts map[string]any) error {
			w.told = append(w.told, event+" "+subject+" by "+actor)
			w.facts = facts
			return nil
		},
	}
	w.devices = &tokens.Devices{Maker: w.maker, Values: w.store, Key: make([]byte, 32)}

	return w
}

func (w *world) make(spec tokens.Spec, by tokens.By) store.Token {
	w.Helper()
	t, secret, err := w.maker.Make(w.Context(), "acme", spec, by)
	if err != nil || !strings.HasPrefix(secret, "assent_") || tokens.Hash(secret) != t.Hash {
		w.Fatalf("%+v: got %+v, %v", spec, t, err)
	}

	return t
}

func (w *world) refuses(spec tokens.Spec, by tokens.By, field string) {
	w.Helper()
	_, _, err := w.maker.Make(w.Context(), "acme", spec, by)
	var wrong *approval.InputError
	if !errors.As(err, &wrong) || wrong.Field != field {
		w.Errorf("%+v: got %v, want a wrong %s", spec, err, field)
	}
}

// read returns a token from the store.
func (w *world) read(id string) store.Token {
	w.Helper()
	all, err := w.store.Tokens(w.Context(), "acme")
	must(w, err)
	i := slices.IndexFunc(all, func(t store.Token) bool { return t.ID == id })
	if i < 0 {
		w.Fatalf("there is no token %s", id)
	}

	return all[i]
}

func operator() tokens.By { return tokens.By{Operator: true} }

func runtime(name string) tokens.Spec {
	return tokens.Spec{
		Name:   name,
		Scopes: []string{"decide", "request"},
		Agents: []string{"desk"},
	}
}

// TestATokenThatAnswersIsMadeByItsPerson checks that an administrator can't make a token
// that answers, even for themselves, and that people can make only their own.
func TestATokenThatAnswersIsMadeByItsPerson(t *testing.T) {
	w := newWorld(t)
	root := w.make(tokens.Spec{Name: "root", Scopes: []string{"admin", "read"}, Person: "mara"}, operator())
	for _, person := range []string{"mara", "ben"} {
		w.refuses(tokens.Spec{
			Name:   "cli",
			Scopes: []string{"read", "vote"},
			Person: person,
		}, tokens.By{Token: &root}, "person")
	}

	mara := tokens.By{Person: "mara"}
	w.refuses(tokens.Spec{Name: "cli", Scopes: []string{"vote"}, Person: "ben"}, mara, "person")
	w.refuses(tokens.Spec{Name: "cli", Scopes: []string{"vote"}}, mara, "person")
	w.refuses(runtime("rt"), mara, "person") // a token of no person

	own := w.make(tokens.Spec{Name: "cli", Scopes: []string{"vote", "read"}, Person: "mara"}, mara)
	if got := own.Expires.Sub(own.Created); got != 12*time.Hour {
		t.Errorf("it lives %v", got)
	}
	w.refuses(tokens.Spec{
		Name:   "long",
		Scopes: []string{"vote"},
		Person: "mara",
		Age:    8 * 24 * time.Hour,
	}, mara, "expires_in")
	w.refuses(tokens.Spec{
		Name:   "long",
		Scopes: []string{"vote"},
		Person: "mara",
		Age:    8 * 24 * time.Hour,
	}, operator(), "expires_in")
}

// TestAdministrationAsksNoCalls checks that an admin token can neither ask nor answer.
func TestAdministrationAsksNoCalls(t *testing.T) {
	w := newWorld(t)
	for _, scopes := range [][]string{{"admin", "request"}, {"admin", "decide"}, {"vote", "request"}, {}, {"root"}} {
		w.refuses(tokens.Spec{Name: "t", Scopes: scopes, Person: "mara"}, operator(), "scopes")
	}
}

// TestATokenEndsWithItsMaker checks that a token records its maker, is revoked with it, and
// does not outlive it.
func TestATokenEndsWithItsMaker(t *testing.T) {
	w := newWorld(t)
	root := w.make(tokens.Spec{Name: "root", Scopes: []string{"admin"}, Age: 48 * time.Hour}, operator())
	second := w.make(tokens.Spec{Name: "second", Scopes: []string{"admin"}}, tokens.By{Token: &root})
	third := w.make(runtime("rt"), tokens.By{Token: &second})
	other := w.make(runtime("other"), operator())
	for _, made := range []store.Token{second, third} {
		if !made.Expires.Equal(root.Expires) {
			t.Errorf("%s outlives its maker: %v", made.Name, made.Expires)
		}
	}
	if got := w.read(third.ID); got.Maker != second.ID {
		t.Errorf("the store keeps %+v", got)
	}

	must(t, w.maker.End(t.Context(), "acme", root.ID, operator()))
	for _, made := range []store.Token{root, second, third} {
		if w.read(made.ID).Revoked == nil {
			t.Errorf("%s is good without its maker", made.Name)
		}
	}
	if w.read(other.ID).Revoked != nil {
		t.Error("a token of somebody else's ended too")
	}
	want := []string{
		"token_revoked " + third.ID + " by operator",
		"token_revoked " + second.ID + " by operator",
		"token_revoked " + root.ID + " by operator",
	}
	if got := w.told[len(w.told)-3:]; !slices.Equal(got, want) {
		t.Errorf("the ledger tells %q", got)
	}
	if err := w.maker.End(t.Context(), "acme", "tok_none", operator()); !errors.Is(err, approval.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// TestNamesOfLiveTokensAreUnique checks that two live tokens can't have the same name,
// except that a token may replace another one.
func TestNamesOfLiveTokensAreUnique(t *testing.T) {
	w := newWorld(t)
	first := w.make(runtime("rt"), operator())
	w.refuses(runtime("rt"), operator(), "name")

	of := runtime("rt")
	of.Person = "ben"
	of.Replaces = first.ID
	w.refuses(of, operator(), "replaces") // a token of another person
	of = runtime("rt")
	of.Replaces = "tok_none"
	w.refuses(of, operator(), "replaces")
	of.Replaces = first.ID
	second := w.make(of, operator())
	if w.read(first.ID).Revoked == nil {
		t.Error("both are good")
	}

	must(t, w.maker.End(t.Context(), "acme", second.ID, operator()))
	third := w.make(runtime("rt"), operator())
	w.now = third.Expires
	w.make(runtime("rt"), operator())
}

// TestATokenIsBoundToAgentsUnlessAllAreNamed checks that a runtime's token must say for
// which agents it may act, except if an operator makes it.
func TestATokenIsBoundToAgentsUnlessAllAreNamed(t *testing.T) {
	w := newWorld(t)
	root := w.make(tokens.Spec{Name: "root", Scopes: []string{"admin"}}, operator())
	by := tokens.By{Token: &root}
	unbound := tokens.Spec{Name: "rt", Scopes: []string{"request"}}
	w.refuses(unbound, by, "agents")
	unbound.Agents = []string{"*", "desk"}
	w.refuses(unbound, by, "agents")
	unbound.Agents = []string{"*"}
	if all := w.make(unbound, by); all.Agents != nil {
		t.Errorf("got %q", all.Agents)
	}
	w.refuses(tokens.Spec{Name: "reader", Scopes: []string{"read"}, Agents: []string{"desk"}}, by, "scopes")
}

// TestACommandLineSignsInWithACode checks that after a person has typed the code of a command
// line, the command line gets one token of that person, and that the code can't be used again.
func TestACommandLineSignsInWithACode(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	begun, err := w.devices.Begin("laptop")
	must(t, err)
	take := func(want error) {
		t.Helper()
		if _, _, err := w.devices.Take(ctx, begun.DeviceCode); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	take(tokens.ErrDevicePending)
	typed := strings.ToLower(strings.ReplaceAll(begun.UserCode, "-", " "))
	must(t, w.devices.Answer(ctx, typed, "acme", "mara", true))
	if err := w.devices.Answer(ctx, typed, "acme", "ben", true); !errors.Is(err, tokens.ErrDeviceGone) {
		t.Errorf("a code is good twice: %v", err)
	}
	made, secret, err := w.devices.Take(ctx, begun.DeviceCode)
	if err != nil || made.Person != "mara" || made.Tenant != "acme" ||
		!slices.Equal(made.Scopes, []string{"read", "vote"}) ||
		tokens.Hash(secret) != made.Hash {
		t.Fatalf("got %+v, %v", made, err)
	}
	if want := "laptop-" + strings.ToLower(strings.ReplaceAll(begun.UserCode[:9], "-", "")); made.Name != want {
		t.Errorf("its name is %s, expected %s", made.Name, want)
	}
	take(tokens.ErrDeviceGone)
	must(t, w.devices.Answer(ctx, typed, "acme", "ben", true)) // the use of the code is forgotten by now
	take(tokens.ErrDeviceGone)
}

// TestManyCommandLinesWait checks that codes are random, that a sign-in that has only begun
// stores nothing, so that it can't prevent others, and that few codes of one person may
// wait.
func TestManyCommandLinesWait(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	form := regexp.MustCompile(`^([BCDFGHJKLMNPQRSTVWXZ]{4}-){2}[BCDFGHJKLMNPQRSTVWXZ]{4}$`)
	seen := map[string]bool{}
	strangers := &tokens.Devices{Maker: w.maker, Key: w.devices.Key} // without a store
	for range 10_000 {
		begun, err := strangers.Begin("laptop")
		must(t, err)
		if seen[begun.UserCode] || seen[begun.DeviceCode] || !form.MatchString(begun.UserCode) {
			t.Fatalf("got %+v", begun)
		}
		seen[begun.UserCode], seen[begun.DeviceCode] = true, true
		if want := w.now.Add(10 * time.Minute); !begun.Expires.Equal(want) {
			t.Fatalf("it expires at %v, expected %v", begun.Expires, want)
		}
	}

	answer := func(person string, want error) {
		t.Helper()
		begun, err := w.devices.Begin("laptop")
		must(t, err)
		if err := w.devices.Answer(ctx, begun.UserCode, "acme", person, true); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", person, err, want)
		}
	}
	for range 20 {
		answer("mara", nil)
	}
	answer("mara", tokens.ErrDevicesFull)
	answer("ben", nil)
	w.now = w.now.Add(tokens.DeviceAge) // the ones in the store have expired
	answer("mara", nil)
}

// brokenValues fails after a number of calls.
type brokenValues struct {
	store.Values
	calls int
}

var errBroken = errors.New("broken")

func (b *brokenValues) fails() bool { b.calls--; return b.calls < 0 }

func (b *brokenValues) SetValue(ctx context.Context, bucket, key string, value []byte, expires time.Time) error {
	if b.fails() {
		return errBroken
	}
	return b.Values.SetValue(ctx, bucket, key, value, expires)
}

func (b *brokenValues) Value(ctx context.Context, bucket, key string, now time.Time) ([]byte, error) {
	if b.fails() {
		return nil, errBroken
	}
	return b.Values.Value(ctx, bucket, key, now)
}

func (b *brokenValues) TakeValue(ctx context.Context, bucket, key string, now time.Time) ([]byte, error) {
	if b.fails() {
		return nil, errBroken
	}
	return b.Values.TakeValue(ctx, bucket, key, now)
}

func (b *brokenValues) ListValues(ctx context.Context, bucket string, now time.Time) (map[string][]byte, error) {
	if b.fails() {
		return nil, errBroken
	}
	return b.Values.ListValues(ctx, bucket, now)
}

// TestBrokenStoreSignsNobodyIn checks that a failure of the store in any call prevents the
// sign-in, and is not reported as an expired code.
func TestBrokenStoreSignsNobodyIn(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	broken := func(calls int) *tokens.Devices {
		return &tokens.Devices{Maker: w.maker, Values: &brokenValues{Values: w.store, calls: calls}, Key: w.devices.Key}
	}
	begun, err := w.devices.Begin("laptop")
	must(t, err)
	if err := broken(0).Answer(ctx, begun.UserCode, "acme", "mara", true); !errors.Is(err, errBroken) {
		t.Errorf("answer: %v", err)
	}
	if err := broken(1).Answer(ctx, begun.UserCode, "acme", "mara", true); !errors.Is(err, errBroken) {
		t.Errorf("answer, the write: %v", err)
	}
	if _, _, err := w.devices.Take(ctx, begun.DeviceCode); !errors.Is(err, tokens.ErrDevicePending) {
		t.Errorf("after a failed answer: %v", err)
	}
	must(t, w.devices.Answer(ctx, begun.UserCode, "acme", "mara", true))
	for calls := range 3 {
		if got, _, err := broken(calls).Take(ctx, begun.DeviceCode); !errors.Is(err, errBroken) {
			t.Errorf("take, call %d: %+v, %v", calls, got, err)
		}
	}
	if _, _, err := w.devices.Take(ctx, begun.DeviceCode); !errors.Is(err, tokens.ErrDevicePending) {
		t.Errorf("the answer was used by a failed attempt: %v", err)
	}
}

// TestTheLedgerSaysWhoMadeAToken checks that entries have a token's rights, and who made or
// ended it.
func TestTheLedgerSaysWhoMadeAToken(t *testing.T) {
	w := newWorld(t)
	root := w.make(tokens.Spec{Name: "root", Scopes: []string{"admin"}}, operator())
	personal := w.make(tokens.Spec{Name: "personal", Scopes: []string{"admin"}, Person: "mara@acme"}, operator())
	if !regexp.MustCompile(`^tok_[0-9a-f]{20}$`).MatchString(root.ID) || personal.Person != "mara" {
		t.Errorf("got %+v, %+v", root, personal)
	}
	for actor, by := range map[string]tokens.By{
		"operator": operator(),
		"root":     {Token: &root},
		"mara":     {Token: &personal},
		"ben":      {Person: "ben"},
	} {
		spec := runtime("of-" + actor)
		spec.Scopes = []string{"request", "decide", "request"}
		spec.Agents = []string{"z", "desk"}
		spec.Person = by.Person
		made := w.make(spec, by)
		if got, want := w.told[len(w.told)-1], "token_created "+made.ID+" by "+actor; got != want {
			t.Errorf("the ledger tells %q, expected %q", got, want)
		}
		maker := ""
		if by.Token != nil {
			maker = by.Token.ID
		}
		want := map[string]any{
			"name":    "of-" + actor,
			"scopes":  []any{"decide", "request"},
			"agents":  []any{"z", "desk"},
			"person":  by.Person,
			"maker":   maker,
			"expires": "2026-08-04T07:08:09Z",
		}
		if !reflect.DeepEqual(w.facts, want) {
			t.Errorf("the facts are %v, expected %v", w.facts, want)
		}
	}

	child := w.make(runtime("child"), tokens.By{Token: &root})
	must(t, w.maker.End(t.Context(), "acme", child.ID, tokens.By{Token: &root}))
	if want := "token_revoked " + child.ID + " by root"; w.told[len(w.told)-1] != want || len(w.facts) != 0 {
		t.Errorf("the ledger tells %q: %v", w.told[len(w.told)-1], w.facts)
	}
	spec := runtime("child")
	child = w.make(spec, tokens.By{Token: &personal})
	var with []any
	record := w.maker.Record
	w.maker.Record = func(ctx context.Context, tenant, event, subject, actor string, facts map[string]any) error {
		if subject == child.ID {
			with = append(with, facts["with"])
		}
		return record(ctx, tenant, event, subject, actor, facts)
	}
	must(t, w.maker.End(t.Context(), "acme", personal.ID, operator()))
	if !slices.Equal(with, []any{personal.ID}) || len(w.facts) != 0 {
		t.Errorf("it ended with %v, and its maker with %v", with, w.facts)
	}
}

// TestTokensLiveAsLongAsTheirKind checks the lifetimes. The limits are inclusive.
func TestTokensLiveAsLongAsTheirKind(t *testing.T) {
	w := newWorld(t)
	day := 24 * time.Hour
	for i, c := range []struct {
		scope     string
		age, want time.Duration // want is 0 if it is refused
	}{
		{"read", 0, 90 * day},
		{"read", 1, 1},
		{"read", 365 * day, 365 * day},
		{"read", 365*day + 1, 0},
		{"read", -1, 0},
		{"vote", 0, 12 * time.Hour},
		{"vote", 7 * day, 7 * day},
		{"vote", 7*day + 1, 0},
	} {
		spec := tokens.Spec{Name: fmt.Sprintf("t%d", i), Scopes: []string{c.scope}, Person: "mara", Age: c.age}
		if c.want == 0 {
			w.refuses(spec, operator(), "expires_in")
		} else if made := w.make(spec, operator()); made.Expires.Sub(made.Created) != c.want {
			t.Errorf("%+v lives %v, expected %v", c, made.Expires.Sub(made.Created), c.want)
		}
	}
}

func TestNamesAndPeopleOfTokens(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"", "a b", "-a", "a/b", strings.Repeat("a", 101)} {
		w.refuses(runtime(name), operator(), "name")
	}
	w.make(runtime(strings.Repeat("a", 100)), operator())
	unknown := tokens.Spec{Name: "t", Scopes: []string{"read"}, Person: "eve"}
	w.refuses(unknown, operator(), "person")
	w.maker.Directory = nil
	if made := w.make(unknown, operator()); made.Person != "eve" {
		t.Errorf("got %+v", made)
	}
}

func TestSpecOf(t *testing.T) {
	body := openapi.TokenBody{
		Name:      "t",
		Scopes:    []openapi.Scope{openapi.ScopeRead, openapi.ScopeVote},
		Agents:    []string{"desk"},
		Person:    "mara",
		Replaces:  "tok_1",
		ExpiresIn: "720h",
	}
	want := tokens.Spec{
		Name:     "t",
		Scopes:   []string{"read", "vote"},
		Agents:   []string{"desk"},
		Person:   "mara",
		Replaces: "tok_1",
		Age:      720 * time.Hour,
	}
	if got, err := tokens.SpecOf(body); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	body.ExpiresIn, want.Age = "", 0
	if got, err := tokens.SpecOf(body); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	body.ExpiresIn = "a month"
	if got, err := tokens.SpecOf(body); err == nil || !reflect.DeepEqual(got, tokens.Spec{}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestDeviceCodesEnd(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	refused, err := w.devices.Begin("laptop")
	must(t, err)
	must(t, w.devices.Answer(ctx, refused.UserCode, "acme", "mara", false))
	if _, _, err := w.devices.Take(ctx, refused.DeviceCode); !errors.Is(err, tokens.ErrDeviceRefused) {
		t.Errorf("got %v", err)
	}

	late, err := w.devices.Begin("laptop")
	must(t, err)
	w.now = w.now.Add(tokens.DeviceAge)
	if _, _, err := w.devices.Take(ctx, late.DeviceCode); !errors.Is(err, tokens.ErrDeviceGone) {
		t.Errorf("got %v", err)
	}
	other := "B"
	if strings.HasPrefix(refused.UserCode, other) {
		other = "C"
	}
	codes := []string{"", "nothing", refused.UserCode[:9], other + refused.UserCode[1:]}
	for i := range refused.UserCode { // one wrong letter
		for _, letter := range "BCDFGHJKLMNPQRSTVWXZ" {
			wrong := refused.UserCode[:i] + string(letter) + refused.UserCode[i+1:]
			if wrong != refused.UserCode && refused.UserCode[i] != '-' {
				codes = append(codes, wrong)
			}
		}
	}
	for _, code := range codes {
		if err := w.devices.Answer(ctx, code, "acme", "mara", true); !errors.Is(err, tokens.ErrDeviceGone) {
			t.Errorf("%q: got %v", code, err)
		}
	}
	elsewhere := &tokens.Devices{Maker: w.maker, Values: w.store, Key: []byte("of another server, with thirty-two bytes")}
	for _, code := range []string{"", "nothing", refused.DeviceCode} {
		if _, _, err := elsewhere.Take(ctx, code); !errors.Is(err, tokens.ErrDeviceGone) {
			t.Errorf("%q: got %v", code, err)
		}
	}
	if _, err := w.devices.Begin("a name with spaces"); err == nil {
		t.Error("a name that no token may have")
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
