package approval

import (
	"fmt"
	"time"
)

// Permits sign what tools can check for themselves: that people
// approved the call which a runtime took.
type Permits interface {
	// Audience names the tool that the call of an approved request goes
	// to, and says how long its permit is good; "" where the tool
	// expects none. An error says why the call can't be put into one.
	Audience(tenant string, r *Request) (name string, life time.Duration, err error)
	// Sign returns the permit of a consumed request, for its audience.
	// The same request gets the same permit, whatever was configured
	// since.
	Sign(tenant string, r *Request) (string, error)
}

// audience refuses a call that its tool could not hold against a
// permit, before the approval is used up.
func (s *Service) audience(tenant string, r *Request) (name string, life time.Duration, err error) {
	if s.cfg.Permits == nil || r.State != Approved {
		return "", 0, nil
	}
	name, life, err = s.cfg.Permits.Audience(tenant, r)
	if err != nil {
		return "", 0, &InputError{"arguments", "what the permit for the tool can stand for: " + err.Error()}
	}
	return name, life, nil
}

// signed is a consumed request with the permit for its tool. The
// permit itself is not stored: it can be signed again.
func (s *Service) signed(tenant string, r *Request) (*Request, error) {
	if s.cfg.Permits == nil || r.Permit.Audience == "" {
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
