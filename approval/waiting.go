package approval

import (
	"context"
	"slices"
)

// mostPages is how many pages of the store one page of a list is made
// of, at most.
const mostPages = 50

// Waiting lists the pending requests that wait for a person: those that
// they have not answered as they stand now, and to which their answer
// would count. The filter's states and groups are not looked at.
// ErrUnknownName: nobody is known by the name. Total counts what was
// left out only as far as it was read, so that it may be too large.
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
	list := pickedList{wanted: func(x Summary) (bool, error) { return s.waitsFor(ctx, tenant, x, p) }}

	return list.read(ctx, s.store, tenant, f)
}

// AnsweredBy lists the pending requests that a person has answered as
// they stand now, and that wait for others. Everything else is as for
// Waiting.
func (s *Service) AnsweredBy(ctx context.Context, tenant, person string, f Filter) (Page, error) {
	p, known, err := s.known(ctx, tenant, person)
	if err != nil {
		return Page{}, err
	}
	if !known {
		return Page{}, ErrUnknownName
	}
	f.States, f.Groups = []State{Pending}, nil
	list := pickedList{wanted: func(x Summary) (bool, error) {
		a, err := s.answeringOf(ctx, tenant, x)
		return slices.Contains(a.Answered, p.ID), err
	}}

	return list.read(ctx, s.store, tenant, f)
}

// pickedList fills one page with some of the requests on pages of the store.
type pickedList struct {
	wanted func(Summary) (bool, error)
	out    Page
	others int // requests that were left out
}

func (l *pickedList) read(ctx context.Context, store Store, tenant string, f Filter) (Page, error) {
	l.out.Requests = []Summary{}
	if f.Limit == 0 {
		f.Limit = 50
	}
	wanted := f.Limit
	for range mostPages {
		f.Limit = wanted - len(l.out.Requests)
		page, err := store.Requests(ctx, tenant, f)
		if err != nil {
			return Page{}, err
		}
		if err := l.pick(page.Requests); err != nil {
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

func (l *pickedList) pick(all []Summary) error {
	for _, summary := range all {
		wanted, err := l.wanted(summary)
		switch {
		case err != nil:
			return err
		case wanted:
			l.out.Requests = append(l.out.Requests, summary)
		default:
			l.others++
		}
	}

	return nil
}

// waitsFor reports whether a pending request waits for a person.
func (s *Service) waitsFor(ctx context.Context, tenant string, summary Summary, p Person) (bool, error) {
	a, err := s.answeringOf(ctx, tenant, summary)
	if err != nil {
		return false, err
	}
	w, err := s.standing(ctx, tenant, &a, s.clock.Now(), p)
	if err != nil {
		return false, err
	}

	return w.eligibility(&a, p.ID).Waiting, nil
}

// answeringOf tells whose answer a request of a list waits for.
func (s *Service) answeringOf(ctx context.Context, tenant string, summary Summary) (Answering, error) {
	if summary.Answering.Agent != "" {
		return summary.Answering, nil
	}
	r, err := s.store.Request(ctx, tenant, summary.ID) // kept before lists carried this
	if err != nil {
		return Answering{}, err
	}

	return r.answering(), nil
}
