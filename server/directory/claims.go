package directory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/policy/people"
)

// Errors of a sign-in. In all these cases the sign-in fails.
var (
	// ErrUnknown means that the provider knows the person and the directory doesn't.
	ErrUnknown = errors.New("nobody is known here by these names")
	// ErrConflict means that the names of one sign-in belong to two people.
	ErrConflict = errors.New("the names of this account belong to two people")
	// ErrBlocked means that people.yaml blocks the person.
	ErrBlocked = errors.New("whoever has these names is blocked here")
)

// Claims are an identity provider's statements about the person who signed in. The caller
// has verified them.
type Claims struct {
	Issuer        string
	Subject       string
	Email         string
	EmailVerified bool
	Name          string
	Groups        []string
}

// Values stores the results of sign-ins; store.Values implements it.
type Values interface {
	SetValue(ctx context.Context, bucket, key string, value []byte, expires time.Time) error
	Value(ctx context.Context, bucket, key string, now time.Time) ([]byte, error)
	ListValues(ctx context.Context, bucket string, now time.Time) (map[string][]byte, error)
}

// Joined is a directory from files, joined with the groups from sign-ins.
type Joined struct {
	base   Base
	values Values
	now    func() time.Time
}

// With joins a directory with the results of sign-ins. A person in the files has the groups
// of the files and those of the latest sign-in. A person who is only known to the provider
// exists while a sign-in is valid that had at least one group on the files' list. If a
// value can't be read, lookups return an error and the person gets no access.
func With(base Base, values Values, now func() time.Time) *Joined {
	return &Joined{base: base, values: values, now: now}
}

// record is the stored result of a sign-in, under the key of the person. The same record is
// stored under each name that the provider gave, so that all of them lead to the same
// person.
type record struct {
	ID     string   `json:"id"`
	Listed bool     `json:"listed"` // the files knew the person
	By     string   `json:"by"`     // Subject of the account
	Name   string   `json:"name,omitempty"`
	Groups []string `json:"groups"`
	Names  []string `json:"names,omitempty"` // verified by the provider
}

const (
	personKey = "person/"
	nameKey   = "name/"
)

// Bucket returns the bucket for the sign-ins of a tenant.
func Bucket(tenant string) string { return "claims:" + tenant }

// SignIn stores a sign-in until its groups expire, and returns the person. It tries the
// names as exact matches: first the subject, then the verified mail address.
func (j *Joined) SignIn(ctx context.Context, tenant string, c Claims, until time.Time) (approval.Person, error) {
	names := c.names()
	if len(names) == 0 {
		return approval.Person{}, ErrUnknown
	}
	if slices.ContainsFunc(names, func(name string) bool { return j.base.Blocked(tenant, name) }) {
		return approval.Person{}, ErrBlocked
	}
	r, err := j.identify(ctx, tenant, names, c)
	if err != nil {
		return approval.Person{}, err
	}
	if r.Names = names; j.blocks(tenant, &r) {
		return approval.Person{}, ErrBlocked
	}
	for _, g := range unique(c.Groups) {
		if message, _ := people.TextProblem(g); message == "" && j.base.Declares(tenant, g) {
			r.Groups = append(r.Groups, g)
		}
	}
	if !r.Listed && len(r.Groups) == 0 {
		return approval.Person{}, ErrUnknown
	}
	if err := j.keep(ctx, tenant, r, names, until); err != nil {
		return approval.Person{}, err
	}
	p, ok, err := j.Person(ctx, tenant, r.ID)
	if err == nil && !ok {
		err = ErrUnknown
	}
	return p, err
}

// names returns the names that the claims prove. An address that is not normalized (NFC)
// proves nothing, because two mailboxes could have the same key.
func (c Claims) names() []string {
	names := []string{people.Subject(c.Issuer, c.Subject)}
	if message, _ := people.IdentityProblem(names[0]); message != "" {
		return nil
	}
	if c.EmailVerified && people.IsMail(c.Email) {
		if message, _ := people.IdentityProblem(c.Email); message == "" {
			names = append(names, c.Email)
		}
	}
	return names
}

// identify finds the only person to whom all names lead. A new account of a person who is
// in no file gets its address as id, or its subject, and keeps it while its sign-in is
// valid, so that one human does not become two people.
func (j *Joined) identify(ctx context.Context, tenant string, names []string, c Claims) (record, error) {
	r := record{By: names[0], Groups: []string{}}
	if message, _ := people.TextProblem(c.Name); message == "" {
		r.Name = c.Name
	}
	for _, name := range names {
		id, listed, err := j.holder(ctx, tenant, name, names[0])
		switch {
		case err != nil:
			return record{}, err
		case id == "":
		case r.ID != "" && r.ID != id:
			return record{}, fmt.Errorf("%w: %s and %s", ErrConflict, r.ID, id)
		default:
			r.ID, r.Listed = id, listed
		}
	}

	if r.ID == "" {
		r.ID = names[len(names)-1]
	}
	return r, nil
}

// holder returns the id of the person who has a name, or an empty string. A name with which
// another account has signed in is in use.
func (j *Joined) holder(ctx context.Context, tenant, name, account string) (id string, listed bool, err error) {
	p, ok, err := j.base.Person(ctx, tenant, name)
	if err != nil || ok {
		return p.ID, ok, err
	}
	held, err := j.record(ctx, tenant, nameKey+people.Key(name))
	switch {
	case err != nil || held == nil:
		return "", false, err
	case held.By != account:
		return "", false, fmt.Errorf("%w: another account signed in as %s not long ago", ErrConflict, name)
	}

	p, ok, err = j.base.Person(ctx, tenant, held.ID)
	if ok {
		return p.ID, true, err
	}
	if held.Listed { // removed from the file, so the account starts over
		return "", false, err
	}
	return held.ID, false, err
}

func (j *Joined) keep(ctx context.Context, tenant string, r record, names []string, until time.Time) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("keep the sign-in: %w", err)
	}
	// the id remains a name even if the address has changed since
	keys := []string{personKey + people.Key(r.ID), nameKey + people.Key(r.ID)}
	for _, name := range names {
		keys = append(keys, nameKey+people.Key(name))
	}
	for _, k := range keys {
		if err := j.values.SetValue(ctx, Bucket(tenant), k, text, until); err != nil {
			return fmt.Errorf("keep the sign-in: %w", err)
		}
	}
	return nil
}

// record reads the record of a key. It returns nil if there is none or it has expired.
func (j *Joined) record(ctx context.Context, tenant, k string) (*record, error) {
	text, err := j.values.Value(ctx, Bucket(tenant), k, j.now())
	if errors.Is(err, approval.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the sign-in: %w", err)
	}
	return parseRecord(text)
}

func parseRecord(text []byte) (*record, error) {
	r := new(record)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("read the sign-in: %w", err)
	}
	return r, nil
}

// Blocked reports whether the files block the person with a name.
func (j *Joined) Blocked(tenant, name string) bool { return j.base.Blocked(tenant, name) }

// blocks reports whether the files block the person of a sign-in by any of their names.
func (j *Joined) blocks(tenant string, r *record) bool {
	return slices.ContainsFunc(append(slices.Clone(r.Names), r.ID, r.By), func(name string) bool {
		return j.base.Blocked(tenant, name)
	})
}

// Person resolves any name of a person, in the files and among sign-ins.
func (j *Joined) Person(ctx context.Context, tenant, name string) (approval.Person, bool, error) {
	if message, _ := people.IdentityProblem(name); message != "" {
		return approval.Person{}, false, nil
	}
	p, ok, err := j.base.Person(ctx, tenant, name)
	if err != nil {
		return approval.Person{}, false, err
	}
	k := personKey + people.Key(p.ID)
	if !ok {
		k = nameKey + people.Key(name)
	}
	r, err := j.record(ctx, tenant, k)
	switch {
	case err != nil:
		return approval.Person{}, false, err
	case r != nil && j.blocks(tenant, r), j.base.Blocked(tenant, name):
		return approval.Person{}, false, nil
	case ok:
		return j.with(tenant, p, r), true, nil
	case r == nil:
		return approval.Person{}, false, nil
	}

	return j.signedIn(ctx, tenant, r.ID)
}

// signedIn returns a person by the id of a sign-in.
func (j *Joined) signedIn(ctx context.Context, tenant, id string) (approval.Person, bool, error) {
	p, listed, err := j.base.Person(ctx, tenant, id)
	if err != nil {
		return approval.Person{}, false, err
	}
	r, err := j.record(ctx, tenant, personKey+people.Key(id))
	if err != nil || r == nil && !listed || r != nil && j.blocks(tenant, r) {
		return approval.Person{}, false, err
	}
	if listed {
		return j.with(tenant, p, r), true, nil
	}
	p, ok := j.stranger(tenant, r)
	return p, ok, nil
}

// with adds the groups of a sign-in to a person in the files.
func (j *Joined) with(tenant string, p approval.Person, r *record) approval.Person {
	if r != nil {
		p.Groups = unique(append(p.Groups, j.allowed(tenant, r.Groups)...))
	}
	return p
}

// stranger returns a person who is not in the files. A person who was removed from the
// files since the sign-in is unknown until the next one.
func (j *Joined) stranger(tenant string, r *record) (approval.Person, bool) {
	p := approval.Person{ID: r.ID, Name: r.Name, Groups: j.allowed(tenant, r.Groups)}
	return p, !r.Listed && len(p.Groups) > 0
}

// allowed filters groups by the files' current list, which may have changed since the
// sign-in.
func (j *Joined) allowed(tenant string, groups []string) []string {
	return slices.DeleteFunc(slices.Clone(groups), func(g string) bool { return !j.base.Declares(tenant, g) })
}

// Members lists the people in a group, by id. An empty group lists everybody.
func (j *Joined) Members(ctx context.Context, tenant, group string) ([]approval.Person, error) {
	all, err := j.base.Members(ctx, tenant, "")
	if err != nil {
		return nil, err
	}
	kept, err := j.values.ListValues(ctx, Bucket(tenant), j.now())
	if err != nil {
		return nil, fmt.Errorf("read the sign-ins: %w", err)
	}
	records := map[string]*record{}
	for k, text := range kept {
		r, err := parseRecord(text)
		if err != nil {
			return nil, err
		}
		if k == personKey+people.Key(r.ID) {
			records[people.Key(r.ID)] = r
		}
	}

	return j.members(tenant, group, all, records), nil
}

func (j *Joined) members(
	tenant, group string,
	listed []approval.Person,
	records map[string]*record,
) []approval.Person {
	var members []approval.Person
	add := func(p approval.Person) {
		if p.Holds(group) {
			members = append(members, p)
		}
	}
	for key, r := range records {
		if j.blocks(tenant, r) {
			listed = slices.DeleteFunc(listed, func(p approval.Person) bool { return people.Key(p.ID) == key })
			delete(records, key)
		}
	}
	for _, p := range listed {
		add(j.with(tenant, p, records[people.Key(p.ID)]))
		delete(records, people.Key(p.ID))
	}
	for _, r := range records {
		if p, ok := j.stranger(tenant, r); ok {
			add(p)
		}
	}
	slices.SortFunc(members, byID)
	return members
}

// Owners lists the owners of an agent in the files. Sign-ins have no agents.
func (j *Joined) Owners(ctx context.Context, tenant, agent string) ([]string, error) {
	return j.base.Owners(ctx, tenant, agent)
}

// Reading returns what a person may read according to the files, with the groups of the
// sign-in in p, and with the names that the sign-in proved.
func (j *Joined) Reading(ctx context.Context, tenant string, p approval.Person) (people.Reading, error) {
	out, err := j.base.Reading(ctx, tenant, p)
	if err != nil {
		return out, err
	}
	r, err := j.record(ctx, tenant, personKey+people.Key(p.ID))
	if err != nil || r == nil || r.ID != p.ID {
		return out, err
	}
	for _, name := range r.Names {
		// a name may belong to another person since the sign-in
		if now, ok, err := j.Person(ctx, tenant, name); err != nil {
			return out, err
		} else if ok && now.ID == p.ID {
			out.Names = append(out.Names, name)
		}
	}
	return out, nil
}

// unique sorts names and removes duplicates. It never returns nil.
func unique(names []string) []string {
	sorted := slices.Sorted(slices.Values(names))

	return append([]string{}, slices.Compact(sorted)...)
}
