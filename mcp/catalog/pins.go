package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/jsonmsg"
)

// Pins are the accepted definitions by server. The zero value has none.
type Pins struct {
	Servers []Pinned // by alias, in its order
	extra   []jsonmsg.Member
}

// Pinned is a server with the accepted definitions of its tools.
type Pinned struct {
	Alias  string
	Server Server
	Tools  []Pin // by name, in its order
	extra  []jsonmsg.Member
}

// Pin is one accepted definition. A tool may have several, because servers may define it
// differently for clients with different capabilities.
type Pin struct {
	Name       string
	Digest     string // see Server.Digest
	Definition []byte // as received, without what changes all the time
	By         By
	extra      []jsonmsg.Member
}

// By is the way in which a definition was accepted.
type By string

// The values of By.
const (
	ByOperator   By = "operator"    // an operator reviewed and pinned it
	ByFirstSight By = "first_sight" // pins: trust_first
	ByOnChange   By = "on_change"   // on_change: accept
)

// Of returns the pins of a server, or nil if there are none.
func (p *Pins) Of(alias string) *Pinned {
	for i := range p.Servers {
		if p.Servers[i].Alias == alias {
			return &p.Servers[i]
		}
	}
	return nil
}

// Of returns the accepted definitions of a tool.
func (p *Pinned) Of(name string) []Pin {
	if p == nil {
		return nil
	}
	var out []Pin
	for _, pin := range p.Tools {
		if pin.Name == name {
			out = append(out, pin)
		}
	}

	return out
}

// NewPin returns the pin for a server's tool that an operator accepts.
func NewPin(server Server, t *Tool, volatile []string) (Pin, error) {
	if t.Problem != "" {
		return Pin{}, fmt.Errorf("the tool %q can't be accepted: %s", t.Name, t.Problem)
	}
	sum, err := server.Digest(t.Raw, volatile)
	if err != nil {
		return Pin{}, err
	}
	return Pin{
		Name:       t.Name,
		Digest:     sum,
		Definition: steady(t.Raw, volatile),
		By:         ByOperator,
	}, nil
}

// Keep selects what happens to other definitions of a tool that is pinned.
type Keep bool

// The values of Keep.
const (
	Instead Keep = false // the new definition is the only one
	Beside  Keep = true  // the others stay accepted
)

// Add pins definitions of a server. If the server differs from the pinned one, all of its other
// pins are removed, because they were accepted for another server.
func (p *Pins) Add(alias string, server Server, tools []Pin, keep Keep) {
	at, found := slices.BinarySearchFunc(p.Servers, alias, func(s Pinned, alias string) int {
		return cmp.Compare(s.Alias, alias)
	})
	if !found {
		p.Servers = slices.Insert(p.Servers, at, Pinned{Alias: alias, Server: server})
	}
	s := &p.Servers[at]
	if !s.Server.Equal(server) {
		s.Server, s.Tools = server, nil
	}
	for _, pin := range tools {
		s.add(pin, keep)
	}
}

func (p *Pinned) add(pin Pin, keep Keep) {
	for i, other := range p.Tools {
		if other.Name == pin.Name && (keep == Instead || other.Digest == pin.Digest) {
			pin.extra = other.extra
			p.Tools = slices.Delete(p.Tools, i, i+1)
			p.add(pin, keep)
			return
		}
	}

	at, _ := slices.BinarySearchFunc(p.Tools, pin, func(a, b Pin) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Digest, b.Digest))
	})
	p.Tools = slices.Insert(p.Tools, at, pin)
}

// Equal reports whether two servers are the same.
func (s Server) Equal(other Server) bool {
	a, errA := s.Text()
	b, errB := other.Text()
	return errA == nil && errB == nil && string(a) == string(b)
}

// Clone returns a copy that can be added to.
func (p *Pins) Clone() *Pins {
	out := &Pins{Servers: slices.Clone(p.Servers), extra: p.extra}
	for i := range out.Servers {
		out.Servers[i].Tools = slices.Clone(out.Servers[i].Tools)
	}
	return out
}
