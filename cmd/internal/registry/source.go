package registry

import (
	"context"
	"sync"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/policy/policyhttp"
	"github.com/assent-dev/assent/resolve"
)

// Source opens the registries of a decision configuration that may change, and refreshes those that
// are in use.
type Source struct {
	file    string
	trouble func(error)
	changed chan struct{} // holds one when registries were opened or dropped

	mu   sync.Mutex
	open map[resolve.Registry]*policyhttp.Registry
}

// NewSource returns the source for a configuration's file. Errors while writing a cache are passed
// to trouble.
func NewSource(file string, trouble func(error)) *Source {
	return &Source{
		file:    file,
		trouble: trouble,
		changed: make(chan struct{}, 1),
		open:    map[resolve.Registry]*policyhttp.Registry{},
	}
}

// Open returns the locations of a configuration's policies: directories, and a registry or nil. The
// same settings return the same registry while it is retained. A new registry is fetched once;
// until it can be reached, it denies.
func (s *Source) Open(c *resolve.Config) ([]string, policy.Registry, error) {
	d := &term.Decisions{Config: c, File: s.file}
	if c.Registry == nil {
		return d.PolicyDirs(), nil, nil
	}
	s.mu.Lock()
	known := s.open[*c.Registry]
	s.mu.Unlock()
	if known != nil {
		return d.PolicyDirs(), known, nil
	}

	r, err := Open(d, s.trouble)
	if err != nil {
		return nil, nil, err
	}
	r.Refresh(context.Background()) // it ends by its own time limit
	s.mu.Lock()
	s.open[*c.Registry] = r
	s.mu.Unlock()
	s.wake()

	return d.PolicyDirs(), r, nil
}

// Retain drops the registries that are not in used.
func (s *Source) Retain(used []policy.Registry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for settings, r := range s.open {
		if !contains(used, r) {
			delete(s.open, settings)
			s.wake()
		}
	}
}

func contains(all []policy.Registry, r *policyhttp.Registry) bool {
	for _, one := range all {
		if one == policy.Registry(r) {
			return true
		}
	}

	return false
}

// wake makes Run check the open registries.
func (s *Source) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Run refreshes every open registry at the interval of its settings, until ctx ends.
func (s *Source) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	stops := map[*policyhttp.Registry]context.CancelFunc{}
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	for {
		live := map[*policyhttp.Registry]bool{}
		s.mu.Lock()
		for settings, r := range s.open {
			live[r] = true
			if stops[r] == nil {
				one, stop := context.WithCancel(ctx)
				stops[r] = stop
				all.Go(func() { r.Run(one, settings.Every, nil) })
			}
		}

		s.mu.Unlock()
		for r, stop := range stops {
			if !live[r] {
				stop()
				delete(stops, r)
			}
		}

		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		}
	}
}
