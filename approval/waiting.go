package approval

import (
	"cmp"
	"context"
	"slices"
)

// mostPages limits how many pages of the store are read for one page of a list.
const mostPages = 50

// Waiting lists the pending requests that wait for a person: requests whose current revision they
// have not answered, and for which their answer would count. It ignores the filter's states and
// groups. It returns ErrUnknownName if the directory does not contain the person. Total may be too
// large, because it excludes only those rejected requests that were actually read.
func (s *Service) Waiting(ctx context.Context, tenant, person string, f Filter) (Page, error) {
	p, err := s.somebody(ctx, tenant, person)
	if err != nil {
		return Page{}, err
	}
	f.States, f.Groups = []State{Pending}, append(slices.Clone(p.Groups), "")

	return Pick(ctx, s.store, tenant, f, func(x Summary) (bool, error) { return s.waitsFor(ctx, tenant, x, p) })
}

// AnsweredBy lists the pending requests whose current revision a person has answered, and that wait
// for others. Otherwise it is like Waiting.
func (s *Service) AnsweredBy(ctx context.Context, tenant, person string, f Filter) (Page, error) {
	p, err := s.somebody(ctx, tenant, person)
	if err != nil {
		return Page{}, err
	}
	by, err := s.Reader(ctx, tenant, person)
	if err != nil {
		return Page{}, err
	}
	f.States, f.Groups, f.AnsweredBy = []State{Pending}, nil, p.ID

	return s.List(ctx, tenant, by, f, func(x Summary) (bool, error) {
		a, err := s.answeringOf(ctx, tenant, x)
		return slices.Contains(a.Answered, p.ID), err
	})
}

// Pick fills one page of a list with those requests of the store for which wanted returns true.
// Total excludes only those rejected requests that were actually read.
func Pick(
	ctx context.Context, store Store, tenant string, f Filter, wanted func(Summary) (bool, error),
) (Page, error) {
	out, left := Page{Requests: []Summary{}}, 0
	most := cmp.Or(f.Limit, 50)
	for range mostPages {
		f.Limit = most - len(out.Requests)
		page, err := store.Requests(ctx, tenant, f)
		if err != nil {
			return Page{}, err
		}
		for _, x := range page.Requests {
			picked, err := wanted(x)
			switch {
			case err != nil:
				return Page{}, err
			case picked:
				out.Requests = append(out.Requests, x)
			default:
				left++
			}
		}

		out.Total, out.Next = max(out.Total, page.Total), page.Next
		if f.Cursor = page.Next; page.Next == "" || len(out.Requests) == most {
			break
		}
	}

	out.Total -= left
	return out, nil
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

	return eligibility(w, &a, p.ID).Waiting, nil
}

// answeringOf returns the Answering of a request in a list.
func (s *Service) answeringOf(ctx context.Context, tenant string, summary Summary) (Answering, error) {
	if summary.Answering.Agent != "" {
		return summary.Answering, nil
	}
	r, err := s.store.Request(ctx, tenant, summary.ID) // stored before summaries had Answering
	if err != nil {
		return Answering{}, err
	}

	return r.answering(), nil
}
