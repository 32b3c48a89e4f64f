package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/assent-dev/assent/approval"
)

func (x requestOps) listRequests() error {
	f, err := x.filter()
	if err != nil {
		return err
	}
	list := x.answerable
	if x.query["mine"] == "true" {
		list = x.waitingForMe
	}
	page, err := list(f)
	if err != nil {
		return err
	}
	return x.answer(http.StatusOK, page)
}

// waitingForMe lists the requests that wait for the token's person.
func (x requestOps) waitingForMe(f approval.Filter) (approval.Page, error) {
	if len(f.States) > 0 && !slices.Contains(f.States, approval.Pending) {
		return approval.Page{Requests: []approval.Summary{}}, nil // a request that has ended waits for no answer
	}
	person, err := x.person()
	if err != nil {
		return approval.Page{}, err
	}

	return x.cfg.Service.Waiting(x.r.Context(), x.tenant(), person, f)
}

func (x requestOps) filter() (f approval.Filter, err error) {
	q := x.query
	f = approval.Filter{
		Agent:     q["agent"],
		Target:    q["target"],
		Principal: q["principal"],
		Cursor:    q["cursor"],
	}
	if f.States, err = x.states(); err != nil {
		return f, err
	}
	if f.Since, err = x.time("since"); err != nil {
		return f, err
	}
	limit, err := x.integer("limit", 1, 500, 50)
	if err != nil {
		return f, err
	}
	f.Limit = int(limit)
	order, err := x.word("order", "newest", "due")
	if err != nil {
		return f, err
	}
	f.ByDue = order == "due"
	f.Groups, err = x.groups()
	return f, err
}

// groups returns the value of the query parameter group, or nil. The parameters group and mine can't
// be combined.
func (x requestOps) groups() ([]string, error) {
	mine, err := x.flag("mine")
	group, one := x.query["group"]
	switch {
	case err != nil:
		return nil, err
	case mine && one:
		return nil, &approval.InputError{Field: "group", Expected: "either group or mine"}
	case one:
		return []string{group}, nil
	}

	return nil, nil
}

func (x requestOps) states() ([]approval.State, error) {
	text, ok := x.query["state"]
	if !ok {
		return nil, nil
	}
	all := []approval.State{
		approval.Pending,
		approval.Approved,
		approval.Denied,
		approval.Expired,
		approval.Cancelled,
		approval.Consumed,
		approval.Answered,
	}
	var out []approval.State
	for _, word := range strings.Split(text, ",") {
		switch state := approval.State(word); {
		case word == "open":
			out = append(out, approval.Pending, approval.Approved)
		case slices.Contains(all, state):
			out = append(out, state)
		default:
			return nil, bad("state", fmt.Sprintf("%q is no state, expected open or some of %v", word, all))
		}
	}

	return out, nil
}

// answerable reads a page of requests. The store can filter by groups, but not by the
// person whom a question without groups is for. So if the filter is for what somebody may
// answer, answerable skips questions for other people and fills the page with the next
// requests.
func (x requestOps) answerable(f approval.Filter) (approval.Page, error) {
	by, err := x.reader()
	if err != nil {
		return approval.Page{}, err
	}

	return x.cfg.Service.List(x.r.Context(), x.tenant(), by, f, func(s approval.Summary) (bool, error) {
		return x.isFor(s, f.Groups)
	})
}

// isFor returns false for a question to one person who is in none of the groups. The store
// has already filtered everything else.
func (x requestOps) isFor(s approval.Summary, groups []string) (bool, error) {
	if !s.Question || s.Principal == "" || len(groups) == 0 || len(s.Groups) != 1 || s.Groups[0] != "" {
		return true, nil
	}
	user, known, err := x.cfg.Directory.Person(x.r.Context(), x.tenant(), s.Principal)
	if err != nil {
		return false, fmt.Errorf("ask the directory: %w", err)
	}
	return known && user.Holds(groups[0]), nil
}
