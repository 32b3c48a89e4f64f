// Package tokens makes and revokes the credentials of runtimes and of people's command
// lines. All ways to get a token use it: the API, the inbox, the sign-in of a command line,
// and the operator, who has the store and its key.
package tokens

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store"
)

// prefix begins every token, so that scanners for leaked secrets recognize one.
const prefix = "assent_"

// Lifetimes of tokens.
const (
	Age        = 90 * 24 * time.Hour  // default
	MaxAge     = 365 * 24 * time.Hour // maximum
	VoteAge    = 12 * time.Hour       // default for tokens that answer for a person
	MaxVoteAge = 7 * 24 * time.Hour   // maximum for tokens that answer for a person
)

// AllAgents as the only element of a list of agents means every agent of the tenant,
// including later ones.
const AllAgents = "*"

// Maker makes and ends tokens.
type Maker struct {
	Store     store.Tokens
	Directory approval.Directory // if nil, names of people are not checked
	Record    func(ctx context.Context, tenant, event, subject, actor string, facts map[string]any) error
	Now       func() time.Time
	Random    io.Reader
}

// Spec describes a token to be made.
type Spec struct {
	Name     string
	Scopes   []string
	Agents   []string      // may act for these only; AllAgents for all
	Person   string        // whose answers it gives; empty for a token that gives none
	Age      time.Duration // 0 for the default of its kind
	Replaces string        // id of a token with the same name and person that it replaces; may be empty
}

// SpecOf reads a body of the API. Its age is a duration such as 720h.
func SpecOf(body openapi.TokenBody) (Spec, error) {
	spec := Spec{
		Name:     body.Name,
		Agents:   body.Agents,
		Person:   body.Person,
		Replaces: body.Replaces,
	}
	for _, scope := range body.Scopes {
		spec.Scopes = append(spec.Scopes, string(scope))
	}
	if body.ExpiresIn == "" {
		return spec, nil
	}
	age, err := time.ParseDuration(body.ExpiresIn)
	if err != nil {
		return Spec{}, fmt.Errorf("expires: %w", err)
	}
	spec.Age = age

	return spec, nil
}

// Shown returns a token in the API's form, without its hash.
func Shown(t store.Token) openapi.Token {
	return openapi.Token{
		ID:      t.ID,
		Tenant:  t.Tenant,
		Name:    t.Name,
		Scopes:  append([]string{}, t.Scopes...),
		Agents:  t.Agents,
		Person:  t.Person,
		Maker:   t.Maker,
		Created: t.Created,
		Expires: t.Expires,
		Revoked: t.Revoked,
	}
}

// By is the maker of a token. Exactly one of Token, Person and Operator is set.
type By struct {
	Token    *store.Token // an administrator's token: tokens that it makes end with it
	Person   string       // id of a signed-in person, who may make only their own tokens
	Operator bool         // the operator, who has the store and its key
}

// actor returns the maker's name for the ledger.
func (b By) actor() string {
	switch {
	case b.Token != nil && b.Token.Person != "":
		return b.Token.Person
	case b.Token != nil:
		return b.Token.Name
	case b.Person != "":
		return b.Person
	}

	return "operator"
}

// Make makes a token. It returns the secret, which can't be read again.
func (m *Maker) Make(
	ctx context.Context,
	tenant string,
	spec Spec,
	by By,
) (t store.Token, secret string, err error) {
	if t, err = m.Check(ctx, tenant, spec, by); err != nil {
		return store.Token{}, "", err
	}
	secret, hash, err := NewSecret(m.Random)
	if err != nil {
		return store.Token{}, "", err
	}
	if spec.Replaces != "" {
		if err := m.End(ctx, tenant, spec.Replaces, by); err != nil {
			return store.Token{}, "", err
		}
	}

	t.ID = "tok_" + hash[:20]
	t.Hash = hash
	if err := m.Store.PutToken(ctx, t); errors.Is(err, store.ErrNameTaken) { // another caller was first
		return store.Token{}, "", nameTaken("another one")
	} else if err != nil {
		return store.Token{}, "", err
	}
	facts := map[string]any{
		"name":    t.Name,
		"scopes":  list(t.Scopes),
		"agents":  list(t.Agents),
		"person":  t.Person,
		"maker":   t.Maker,
		"expires": t.Expires.Format(time.RFC3339),
	}
	if err := m.Record(ctx, tenant, "token_created", t.ID, by.actor(), facts); err != nil {
		return store.Token{}, "", err
	}

	return t, secret, nil
}

// End revokes a token, and all tokens that were made by it, directly or indirectly.
func (m *Maker) End(ctx context.Context, tenant, id string, by By) error {
	all, err := m.Store.Tokens(ctx, tenant)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(t store.Token) bool { return t.ID == id }) {
		return approval.ErrNotFound
	}
	// The tokens that it made are revoked first: after a crash, the remaining ones can
	// still be found through it.
	for _, one := range slices.Backward(descent(all, id)) {
		if err := m.Store.RevokeToken(ctx, tenant, one, m.Now()); err != nil {
			return fmt.Errorf("revoke the token %s: %w", one, err)
		}
		facts := map[string]any{}
		if one != id {
			facts["with"] = id
		}
		if err := m.Record(ctx, tenant, "token_revoked", one, by.actor(), facts); err != nil {
			return err
		}
	}

	return nil
}

// descent lists a token and the live tokens that were made by it, directly or indirectly.
// Makers come before the tokens that they made.
func descent(all []store.Token, id string) []string {
	out := []string{id}
	for i := 0; i < len(out); i++ {
		for _, t := range all {
			if t.Maker == out[i] && t.Revoked == nil && !slices.Contains(out, t.ID) {
				out = append(out, t.ID)
			}
		}
	}

	return out
}

// Check returns the token that Make would make. It returns an error if the token could not
// do what it says, is not permitted, or would live too long. It makes nothing.
func (m *Maker) Check(ctx context.Context, tenant string, spec Spec, by By) (store.Token, error) {
	t := store.Token{
		Tenant: tenant,
		Name:   spec.Name,
		Scopes: slices.Clone(spec.Scopes),
		Agents: slices.Clone(spec.Agents),
		Person: spec.Person,
	}
	slices.Sort(t.Scopes)
	t.Scopes = slices.Compact(t.Scopes)
	err := errors.Join(checkName(t.Name), checkScopes(&t), checkAgents(&t, by))
	if err == nil {
		err = m.checkPerson(ctx, &t, by)
	}
	if err == nil {
		err = m.checkName(ctx, &t, spec)
	}
	if err == nil {
		err = m.setTimes(&t, spec, by)
	}

	return t, err
}

// plainName is the form of a token's name. It has no slash, which the names of programs
// inside assent have.
var plainName = pattern.Of(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

func checkName(name string) error {
	if !plainName().MatchString(name) {
		return refuse("name", "letters, digits and ._-, a letter or digit first, at most 100")
	}
	return nil
}

func refuse(field, expected string) error {
	return &approval.InputError{Field: field, Expected: expected}
}

// AgentScopes returns the scopes that a token bound to agents may use: those of operations
// that name an agent.
func AgentScopes() []string {
	return []string{string(openapi.ScopeDecide), string(openapi.ScopeRequest), string(openapi.ScopeVote)}
}

func checkScopes(t *store.Token) error {
	has := func(s openapi.Scope) bool { return slices.Contains(t.Scopes, string(s)) }
	for _, s := range t.Scopes {
		if !openapi.Scope(s).Valid() {
			return refuse("scopes", "some of decide, request, read, vote, admin, witness")
		}
	}
	switch {
	case len(t.Scopes) == 0:
		return refuse("scopes", "at least one")
	case has(openapi.ScopeVote) && has(openapi.ScopeRequest):
		return refuse("scopes", "not request beside vote: whoever holds one token must not ask and answer")
	case has(openapi.ScopeAdmin) && (has(openapi.ScopeRequest) || has(openapi.ScopeDecide)):
		return refuse("scopes", "neither request nor decide beside admin: administration asks for no calls")
	}

	return nil
}

// checkAgents returns an error for a runtime's token that does not say for which agents it
// may act.
func checkAgents(t *store.Token, by By) error {
	acts := func(s string) bool {
		return s == string(openapi.ScopeDecide) || s == string(openapi.ScopeRequest)
	}
	switch {
	case slices.Equal(t.Agents, []string{AllAgents}):
		t.Agents = nil
	case slices.Contains(t.Agents, AllAgents):
		return refuse("agents", `either "*" alone, for all of them, or ids`)
	case len(t.Agents) == 0 && slices.ContainsFunc(t.Scopes, acts) && !by.Operator:
		return refuse("agents", `the ids of the agents that it may act for, or "*" for all of them`)
	}

	for _, s := range t.Scopes {
		if len(t.Agents) > 0 && !slices.Contains(AgentScopes(), s) {
			return refuse("scopes", "neither read, admin nor witness for a token that is bound to agents")
		}
	}

	return nil
}

// checkPerson replaces the person's name by the directory's id. A token that answers for a
// person may be made only by that person or an operator, and one that administers as a
// person also by another token of that person. Otherwise one administrator could act as
// two.
func (m *Maker) checkPerson(ctx context.Context, t *store.Token, by By) error {
	votes := slices.Contains(t.Scopes, string(openapi.ScopeVote))
	switch {
	case t.Person == "" && votes:
		return refuse("person", "whose answers the token gives, for scope vote")
	case by.Person != "" && t.Person != by.Person:
		return refuse("person", "yourself: nobody makes a token of somebody else's")
	case t.Person == "":
		return nil
	case votes && by.Token != nil:
		return refuse(
			"person",
			"nobody: a token that answers is made by its person, who signs in to the inbox or runs `assent login`",
		)
	case m.Directory == nil:
		return checkAdministrator(t, by)
	}

	p, known, err := m.Directory.Person(ctx, t.Tenant, t.Person)
	if err != nil {
		return fmt.Errorf("ask the directory: %w", err)
	}
	if !known {
		return refuse("person", "somebody whom the directory knows")
	}
	t.Person = p.ID

	return checkAdministrator(t, by)
}

// checkAdministrator returns an error for a token that would administer as another person
// than the one of the token that makes it.
func checkAdministrator(t *store.Token, by By) error {
	if slices.Contains(t.Scopes, string(openapi.ScopeAdmin)) && by.Token != nil && t.Person != by.Token.Person {
		return refuse(
			"person",
			"nobody, or the person of the token that makes it: who administers as a person is that person",
		)
	}

	return nil
}

// OwnPerson reports whether a token was made by its own person, or by another token of that
// person. A token that an operator made counts too. It is for tokens that were made before
// checkPerson required this of administrators.
func (m *Maker) OwnPerson(ctx context.Context, t *store.Token) (bool, error) {
	if t.Person == "" || t.Maker == "" {
		return true, nil
	}
	all, err := m.Store.Tokens(ctx, t.Tenant)
	if err != nil {
		return false, err
	}

	return slices.ContainsFunc(all, func(maker store.Token) bool {
		return maker.ID == t.Maker && maker.Person == t.Person
	}), nil
}

// checkName returns an error if another live token has the name, because names identify
// callers.
func (m *Maker) checkName(ctx context.Context, t *store.Token, spec Spec) error {
	all, err := m.Store.Tokens(ctx, t.Tenant)
	if err != nil {
		return err
	}
	for _, other := range all {
		switch {
		case other.ID == spec.Replaces && (other.Name != t.Name || other.Person != t.Person):
			return refuse("replaces", "a token of the same name and the same person")
		case other.ID == spec.Replaces:
			return nil
		case other.Name == t.Name && other.Revoked == nil && m.Now().Before(other.Expires) && spec.Replaces == "":
			return nameTaken(other.ID)
		}
	}

	if spec.Replaces != "" {
		return refuse("replaces", "the id of a token of this tenant")
	}

	return nil
}

func nameTaken(id string) error {
	return refuse("name", "one that no live token has: "+id+" has it; replace it (replaces), or revoke it first")
}

// setTimes limits a token's life by its kind, and by the life of the token that makes it.
func (m *Maker) setTimes(t *store.Token, spec Spec, by By) error {
	age, most := Age, MaxAge
	if slices.Contains(t.Scopes, string(openapi.ScopeVote)) {
		age, most = VoteAge, MaxVoteAge
	}
	if spec.Age != 0 {
		age = spec.Age
	}
	if age < 0 || age > most {
		return refuse("expires_in", fmt.Sprintf("at most %dh", most/time.Hour))
	}

	t.Created = m.Now().UTC().Truncate(time.Microsecond)
	t.Expires = t.Created.Add(age)
	if by.Token != nil {
		t.Maker = by.Token.ID
		if by.Token.Expires.Before(t.Expires) {
			t.Expires = by.Token.Expires
		}
	}

	return nil
}

// NewSecret makes the secret of a token, 32 random bytes, and the hash under which it is
// stored.
func NewSecret(random io.Reader) (secret, hash string, err error) {
	var raw [32]byte
	if _, err := io.ReadFull(random, raw[:]); err != nil {
		return "", "", fmt.Errorf("make a token: %w", err)
	}
	secret = prefix + base64.RawURLEncoding.EncodeToString(raw[:])

	return secret, Hash(secret), nil
}

// Hash returns the hash under which the token of a secret is stored: hexadecimal SHA-256.
// 256 random bits need no salt and no slow hash.
func Hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))

	return hex.EncodeToString(sum[:])
}

func list(texts []string) []any {
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = t
	}

	return out
}
