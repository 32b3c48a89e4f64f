package durabletest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/hold"
	"github.com/assent-dev/assent/store"
)

const peopleNamespace = "durabletest/people"

// people approve every request on the second look. Requests are records, so that they outlive
// the processes.
type people struct {
	records store.Records

	mu      sync.Mutex
	changed []func(ref string)
}

// request is the stored state of a request.
type request struct {
	State hold.State `json:"state"`
	By    string     `json:"by,omitempty"` // the key that claimed its one run
}

// As returns p for every asker: the keys of requests are unique.
func (p *people) As(approval.Asker) hold.Requests { return p }

// Watch calls changed for each request that is approved, until ctx ends.
func (p *people) Watch(ctx context.Context, changed func(ref string)) error {
	p.mu.Lock()
	p.changed = append(p.changed, changed)
	p.mu.Unlock()
	changed("")
	<-ctx.Done()
	return ctx.Err()
}

// change changes a request by compare-and-set.
func (p *people) change(ctx context.Context, ref string, change func(*request) error) (request, error) {
	for {
		r, err := p.records.Record(ctx, peopleNamespace, ref)
		if err != nil && !errors.Is(err, approval.ErrNotFound) {
			return request{}, err
		}
		var now request
		if err == nil {
			if err := json.Unmarshal(r.Value, &now); err != nil {
				return request{}, err
			}
		}
		if err := change(&now); err != nil {
			return now, err
		}

		value, err := json.Marshal(now)
		if err != nil {
			return now, err
		}
		_, err = p.records.PutRecord(ctx, store.Record{
			Namespace: peopleNamespace,
			Key:       ref,
			Version:   r.Version,
			Value:     value,
		})
		if !errors.Is(err, approval.ErrVersion) {
			return now, err
		}
	}
}

// Open stores a request, and approves it in the background.
func (p *people) Open(ctx context.Context, key string, _ hold.Verdict) (hold.Held, error) {
	ref := "request " + key
	now, err := p.change(ctx, ref, func(r *request) error {
		if r.State == "" {
			r.State = hold.Pending
		}
		return nil
	})
	if err != nil {
		return hold.Held{}, err
	}
	go p.approve(ref)
	return hold.Held{Ref: ref, State: now.State}, nil
}

func (p *people) approve(ref string) {
	_, err := p.change(context.Background(), ref, func(r *request) error {
		if r.State == hold.Pending {
			r.State = hold.Approved
		}
		return nil
	})
	if err != nil {
		return // Look approves it then
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, changed := range p.changed {
		changed(ref)
	}
}

// Look returns the state of a request. It approves a pending one.
func (p *people) Look(ctx context.Context, ref string) (hold.Held, error) {
	now, err := p.change(ctx, ref, func(r *request) error {
		switch r.State {
		case "":
			return hold.ErrNoRequest
		case hold.Pending:
			r.State = hold.Approved
		}

		return nil
	})
	return hold.Held{Ref: ref, State: now.State, By: "somebody"}, err
}

// Claim assigns the one run of a request to a key.
func (p *people) Claim(ctx context.Context, ref, key string, _ hold.Verdict) error {
	_, err := p.change(ctx, ref, func(r *request) error {
		switch {
		case r.State != hold.Approved:
			return fmt.Errorf("it is %s: %w", r.State, hold.ErrNotClaimed)
		case r.By != "" && r.By != key:
			return fmt.Errorf("taken before: %w", hold.ErrNotClaimed)
		}

		r.By = key
		return nil
	})
	return err
}

// Cancel withdraws a pending request.
func (p *people) Cancel(ctx context.Context, ref, _ string) error {
	_, err := p.change(ctx, ref, func(r *request) error {
		if r.State == hold.Pending {
			r.State = hold.Cancelled
		}
		return nil
	})
	return err
}

// Ask returns an error: the suite has no questions for people.
func (p *people) Ask(context.Context, string, hold.Question) (string, error) {
	return "", errors.New("nobody answers questions here")
}

// Answer returns hold.ErrNoRequest, because there are no questions.
func (p *people) Answer(context.Context, string) (hold.Answer, error) {
	return hold.Answer{}, hold.ErrNoRequest
}
