package approval

import (
	"context"
	"slices"
)

// mostPages is how many pages of the store one page of a list is made of, at most.
const mostPages = 50

// Waiting lists the pending requests that wait for a person: those that they have not answered as they stand now, and to
// which their answer would count. The filter's states and groups are not looked at. ErrUnknownName: nobody is known by the
// name. Total counts what was left out only as far as it was read, so that it may be too large.
func (s *Service) Waiting(ctx context.Context, tenant, person string, f Filter) (Page, error) {
	p, known, err := s.known(ctx, tenant, person)
	if err != nil {
		return Page{}, err
	}
	if !known {
		return Page{}, ErrUnknownName
	}
	f.States = []State{Pending}
	f.Groups = append(slices.Clone(p.Groups), "")
	list := waitingList{s: s, tenant: tenant, person: p, out: Page{Requests: []Summary{}}}

	return list.read(ctx, f)
}

// waitingList fills one page from pages of the store.
type waitingList struct {
	s      *Service
	tenant string
	person Person
	out    Page
	others int // requests that wait for other people
}

func (l *waitingList) read(ctx context.Context, f Filter) (Page, error) {
	if f.Limit == 0 {
		f.Limit = 50
	}
	wanted := f.Limit
	for range mostPages {
		f.Limit = wanted - len(l.out.Requests)
		page, err := l.s.store.Requests(ctx, l.tenant, f)
		if err != nil {
			return Page{}, err
		}
		if err := l.pick(ctx, page.Requests); err != nil {
			return Page{}, err
		}
		l.out.Total = max(l.out.Total, page.Total)
		l.out.Next = page.Next
		f.Cursor = page.Next
		if page.Next == "" || len(l.out.Requests) == wanted {
			break
		}
	}
	l.out.Total -= l.others

	return l.out, nil
}

func (l *waitingList) pick(ctx context.Context, all []Summary) error {
	for _, summary := range all {
		waits, err := l.s.waitsFor(ctx, l.tenant, summary, l.person)
		switch {
		case err != nil:
			return err
		case waits:
			l.out.Requests = append(l.out.Requests, summary)
		default:
			l.others++
		}
	}

	return nil
}

// waitsFor reports whether a pending request waits for a person.
func (s *Service) waitsFor(ctx context.Context, tenant string, summary Summary, p Person) (bool, error) {
	a := summary.Answering
	if a.Agent == "" { // kept before lists carried this
		r, err := s.store.Request(ctx, tenant, summary.ID)
		if err != nil {
			return false, err
		}
		a = r.answering()
	}
	w, err := s.standing(ctx, tenant, &a, s.clock.Now(), p)
	if err != nil {
		return false, err
	}

	return w.eligibility(&a, p.ID).Waiting, nil
}
