package approval

import "fmt"

// Permits sign what tools can check for themselves: that people
// approved the call which a runtime took.
type Permits interface {
	// Fit says why the call of an approved request can't be put into
	// the permit that its tool expects; nil: it can, or the tool
	// expects none.
	Fit(tenant string, r *Request) error
	// Sign returns the permit of a consumed request, "" where the tool
	// expects none. The same request gets the same permit.
	Sign(tenant string, r *Request) (string, error)
}

// fits refuses a call that its tool could not hold against a permit,
// before the approval is used up.
func (s *Service) fits(tenant string, r *Request) error {
	if s.cfg.Permits == nil || r.State != Approved {
		return nil
	}
	if err := s.cfg.Permits.Fit(tenant, r); err != nil {
		return &InputError{"arguments", "what the permit for the tool can stand for: " + err.Error()}
	}
	return nil
}

// signed is a consumed request with the permit for its tool. What is
// stored has none: it can be signed again.
func (s *Service) signed(tenant string, r *Request) (*Request, error) {
	if s.cfg.Permits == nil {
		return r, nil
	}
	text, err := s.cfg.Permits.Sign(tenant, r)
	if err != nil {
		return nil, fmt.Errorf("the permit for the tool: %w", err)
	}

	out, used := *r, *r.Permit
	used.Signed = text
	out.Permit = &used
	return &out, nil
}
