package approval

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assent-dev/assent/policy/people"
)

// Prefixes of the keys of readers: their groups, their names, and the agents that they own.
const (
	keyGroup = "group:"
	keyName  = "name:"
	keyOwns  = "agent:"
)

// Prefixes of further keys by which lists find a request; see Summary.Keys.
const (
	keyAsked    = "asked:"    // a group that may answer now, and so may read
	keyAnswers  = "answers:"  // a group that may answer according to the list's columns, but does not read by that
	keyAnswered = "answered:" // a person who has answered a pending request
)

// Keys returns the keys by which lists find the request: of those who may read it, of the groups
// that may answer it, and of the people who have answered it. The keys are sorted, without
// duplicates.
func (s *Summary) Keys() []string {
	keys := slices.Clone(s.Answering.Readers)
	groups := s.Groups
	if len(groups) == 0 {
		groups = []string{""}
	}
	for _, group := range groups {
		kind := keyAnswers
		if at := slices.Index(keys, keyGroup+group); at >= 0 {
			keys, kind = slices.Delete(keys, at, at+1), keyAsked
		}
		keys = append(keys, kind+group)
	}
	if s.State == Pending {
		for _, person := range s.Answering.Answered {
			keys = append(keys, keyAnswered+person)
		}
	}
	slices.Sort(keys)

	return slices.Compact(keys)
}

// Keys returns keys, at least one of which a request must have to be in the list. It returns false
// if any request may be in the list. If the filter has Readers, Groups must be checked separately.
func (f *Filter) Keys() (keys []string, ok bool) {
	switch {
	case f.AnsweredBy != "":
		return []string{keyAnswered + f.AnsweredBy}, true
	case f.Readers != nil:
		for _, key := range f.Readers {
			keys = append(keys, key)
			if group, is := strings.CutPrefix(key, keyGroup); is {
				keys = append(keys, keyAsked+group)
			}
		}
	case len(f.Groups) > 0:
		for _, group := range append([]string{""}, f.Groups...) {
			keys = append(keys, keyAsked+group, keyAnswers+group)
		}
	default:
		return nil, false
	}
	slices.Sort(keys)

	return slices.Compact(keys), true
}

// readers returns the keys of those who may read the request: who may answer it now or later, who
// asked for it, the principal, and the agent's owners.
func (r *Request) readers() []string {
	keys := []string{keyOwns + r.Agent.ID}
	names := slices.Concat([]string{r.Requester.Person, r.Requester.Principal}, r.Requester.AlsoOf, r.Requester.Owners)
	for _, name := range names {
		if message, _ := people.IdentityProblem(name); message == "" {
			keys = append(keys, keyName+people.Key(name))
		}
	}
	if !r.asksUser() || r.Requester.Principal == "" {
		for _, group := range r.askedGroups() {
			keys = append(keys, keyGroup+group)
		}
	}
	slices.Sort(keys)

	return slices.Compact(keys)
}

// askedGroups returns the groups that may answer the request at some time: the groups of its
// stages, of their stand-ins, and of its escalations.
func (r *Request) askedGroups() []string {
	groups := slices.Clone(r.Called)
	for _, stage := range r.allStages() {
		groups = append(groups, stage.Group)
		for _, s := range stage.StandIns {
			groups = append(groups, s.Group)
		}
	}
	for _, next := range r.Scheduled {
		if next.Kind == Escalate {
			groups = append(groups, next.To)
		}
	}
	for _, revision := range r.Revisions { // Scheduled is emptied when the request ends
		if revision.Decision.Require != nil {
			for _, e := range revision.Decision.Require.Escalate {
				groups = append(groups, e.To)
			}
		}
	}

	return groups
}

// Reader decides what one person may read of a tenant, as of the time when it was created. A nil
// Reader may read everything; it is used for callers without a person, such as a token without an
// owner.
type Reader struct {
	service *Service
	tenant  string
	person  string // canonical id; empty if the directory does not contain the name
	all     bool
	keys    []string
}

// Reader returns the Reader of a person. If the directory does not contain the person, that Reader
// may read nothing.
func (s *Service) Reader(ctx context.Context, tenant, name string) (*Reader, error) {
	r := &Reader{service: s, tenant: tenant}
	p, known, err := s.known(ctx, tenant, name)
	if err != nil || !known {
		return r, err
	}
	may, err := s.people.Reading(ctx, tenant, p)
	if err != nil {
		return r, fmt.Errorf("ask the directory: %w", err)
	}
	r.person = p.ID
	r.all = may.All || s.administers(tenant, p)
	r.keys = []string{keyGroup}
	for _, group := range p.Groups {
		r.keys = append(r.keys, keyGroup+group)
	}
	for _, agent := range may.Owns {
		r.keys = append(r.keys, keyOwns+agent)
	}
	for _, name := range may.Names {
		r.keys = append(r.keys, keyName+people.Key(name))
	}
	slices.Sort(r.keys)
	r.keys = slices.Compact(r.keys)

	return r, nil
}

// administers reports whether a person is an administrator. An empty group does not count, because
// everyone is in the group "".
func (s *Service) administers(tenant string, p Person) bool {
	if s.cfg.Admins == nil {
		return false
	}
	group := s.cfg.Admins(tenant)

	return group != "" && p.Holds(group)
}

// All reports whether everything of the tenant may be read.
func (r *Reader) All() bool { return r == nil || r.all }

// Person returns the canonical id of the reader, or an empty string if there is none.
func (r *Reader) Person() string {
	if r == nil {
		return ""
	}
	return r.person
}

// holds reports whether the reader has one of the keys.
func (r *Reader) holds(keys []string) bool {
	return r.All() || slices.ContainsFunc(keys, func(k string) bool {
		_, found := slices.BinarySearch(r.keys, k)
		return found
	})
}

// MayRead reports whether the reader may read a request.
func (r *Reader) MayRead(q *Request) bool { return r.All() || r.holds(q.readers()) }

// mayList reports whether the reader may see a request in a list.
func (r *Reader) mayList(ctx context.Context, x Summary) (bool, error) {
	if r.All() || x.Answering.Readers != nil {
		return r.holds(x.Answering.Readers), nil
	}
	q, err := r.service.store.Request(ctx, r.tenant, x.ID) // stored before summaries had Readers
	if err != nil {
		return false, err
	}

	return r.MayRead(q), nil
}

// Read returns a request if the reader may read it. Otherwise it returns ErrNotFound, as if the
// request didn't exist.
func (s *Service) Read(ctx context.Context, tenant, id string, by *Reader) (*Request, error) {
	r, err := s.Request(ctx, tenant, id)
	if err == nil && !by.MayRead(r) {
		return nil, ErrNotFound
	}

	return r, err
}

// List lists the requests of a filter that the reader may read and for which wanted returns true. A
// nil wanted accepts all. Page.Total excludes only those rejected requests that were actually read.
func (s *Service) List(
	ctx context.Context, tenant string, by *Reader, f Filter, wanted func(Summary) (bool, error),
) (Page, error) {
	if by.All() && wanted == nil {
		return s.store.Requests(ctx, tenant, f)
	}
	if !by.All() {
		f.Readers = append([]string{}, by.keys...) // never nil, also for those who may read nothing
	}

	return Pick(ctx, s.store, tenant, f, func(x Summary) (bool, error) {
		may, err := by.mayList(ctx, x)
		if err == nil && may && wanted != nil {
			return wanted(x)
		}
		return may, err
	})
}

// About is the type and the subject of a ledger entry.
type About struct{ Type, Subject string }

// Entries reports for each ledger entry whether the reader may read it. Readers may read entries
// about requests that they may read, about grants of such requests, and about freezes, which are
// shown to everyone.
func (s *Service) Entries(ctx context.Context, tenant string, by *Reader, entries []About) ([]bool, error) {
	out := make([]bool, len(entries))
	subjects := make([]string, len(entries))
	for i, e := range entries {
		subjects[i] = e.Subject
	}
	may, err := s.subjects(ctx, tenant, by, subjects)
	for i, e := range entries {
		out[i] = err == nil && (by.All() || may[e.Subject] || e.Type == EventFrozen || e.Type == EventThawed)
	}

	return out, err
}

// subjects reports which requests and grants a reader may read, by id. For a reader who may read
// everything it returns an empty map.
func (s *Service) subjects(ctx context.Context, tenant string, by *Reader, ids []string) (map[string]bool, error) {
	out := map[string]bool{}
	if by.All() {
		return out, nil
	}
	of := map[string][]string{} // ids of the request and of its grants, by request
	for _, id := range ids {
		request := id
		if strings.HasPrefix(id, grantPrefix) {
			g, err := s.store.Grant(ctx, tenant, id)
			if errors.Is(err, ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			request = g.Request
		}
		of[request] = append(of[request], id)
	}
	found, err := s.store.Summaries(ctx, tenant, slices.Collect(maps.Keys(of)))
	if err != nil {
		return nil, err
	}
	for request, x := range found {
		may, err := by.mayList(ctx, x)
		if err != nil {
			return nil, err
		}
		for _, id := range of[request] {
			out[id] = may
		}
	}

	return out, nil
}

// Grants returns the grants whose requests the reader may read.
func (s *Service) Grants(ctx context.Context, tenant string, by *Reader, all []Grant) ([]Grant, error) {
	if by.All() {
		return all, nil
	}
	ids := make([]string, len(all))
	for i := range all {
		ids[i] = all[i].Request
	}
	may, err := s.subjects(ctx, tenant, by, ids)

	return slices.DeleteFunc(slices.Clone(all), func(g Grant) bool { return !may[g.Request] }), err
}

// Concerns reports whether something is about the reader, because it is for a person with this name
// or about an agent that they own.
func (r *Reader) Concerns(name, agent string) bool {
	return r.holds([]string{keyName + people.Key(name), keyOwns + agent})
}

// Votes returns the votes whose figures the reader may read, which are their own unless they may
// read everything.
func (r *Reader) Votes(all []VoteFact) []VoteFact {
	if r.All() {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(v VoteFact) bool { return v.Person != r.person })
}
