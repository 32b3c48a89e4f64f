package approval

import (
	"fmt"
	"time"
)

// Permits signs permits that tools verify themselves. A permit proves that people approved the call
// that a runtime consumed.
type Permits interface {
	// Audience returns the name of the tool that the call of an approved request goes to, and the
	// lifetime of its permit. The name is empty if the tool expects no permit. It returns an error
	// if a permit can't represent the call.
	Audience(tenant string, r *Request) (name string, life time.Duration, err error)
	// Sign returns the permit of a consumed request for its audience. It returns the same permit
	// for the same request, even if the configuration has changed since.
	Sign(tenant string, r *Request) (string, error)
}

// audience returns an error for a call that its tool could not compare with a permit, before the
// approval is used up.
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

// signed returns a consumed request with the permit for its tool. The permit is not stored, because
// it can be signed again.
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
