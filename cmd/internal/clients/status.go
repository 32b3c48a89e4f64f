package clients

import (
	"os"
	"reflect"

	"github.com/assent-dev/assent/cmd/internal/edits"
	"github.com/assent-dev/assent/internal/settings"
	"github.com/assent-dev/assent/mcp/config"
)

// The states of a client's file.
const (
	stateAbsent       = "absent"        // there is no file
	stateNotInstalled = "not_installed" // no gateway in it
	stateInstalled    = "installed"
	stateChanged      = "changed" // the gateway's entry is not what install wrote
	stateUnreadable   = "unreadable"
)

// status is the state of a client's file.
type status struct {
	Client string `json:"client"`
	Scope  string `json:"scope"`
	File   string `json:"file"`
	State  string `json:"state"`
	Config string `json:"config,omitempty"`
	// Behind are the aliases of the servers behind the gateway.
	Behind []string `json:"behind,omitempty"`
	// Beside are servers that the client uses without the gateway.
	Beside []string `json:"beside,omitempty"`
	// Since reports whether the file was changed by others since the install.
	Since    bool     `json:"changed_since,omitempty"`
	Problems []string `json:"problems,omitempty"`
}

// statusOf returns the state of a file.
func statusOf(s spot) status {
	out := status{Client: s.client.name, Scope: s.scope, File: s.file, State: stateNotInstalled}
	f, t, err := s.read()
	switch {
	case err != nil:
		out.State, out.Problems = stateUnreadable, []string{err.Error()}
		return out
	case !f.Exists:
		out.State = stateAbsent
		return out
	}

	for _, m := range t.Members() {
		switch s.client.kindOf(m) {
		case ours:
			out.gateway(s, f, m)
		case plain:
			out.Beside = append(out.Beside, m.Name)
		}
	}

	return out
}

// gateway checks the gateway's entry and its configuration.
func (o *status) gateway(s spot, f *settings.File, m settings.Member) {
	o.State = stateInstalled
	o.Config = gatewayConfig(s.client, m.Value.(map[string]any))
	r, err := readRecord(o.Config)
	switch {
	case err != nil:
		o.Problems = append(o.Problems, "no record of an install: "+err.Error())
	case !reflect.DeepEqual(r.Entry, m.Value):
		o.State = stateChanged
	default:
		o.Since = edits.Digest(f.Text) != r.After
	}

	text, err := os.ReadFile(o.Config)
	if err != nil {
		o.Problems = append(o.Problems, "the gateway can't start: "+err.Error())
		return
	}
	cfg, findings := config.Read(o.Config, text)
	for _, f := range findings {
		o.Problems = append(o.Problems, "the gateway can't start: "+f.Message)
	}
	for _, u := range cfg.Upstream {
		o.Behind = append(o.Behind, u.Alias)
	}
}

// statuses returns the states of all files of a client.
func (c client) statuses(p edits.Place) ([]status, error) {
	var out []status
	for _, scope := range c.scopes(p) {
		s, err := c.spotOf(p, scope)
		if err != nil {
			return nil, err
		}
		out = append(out, statusOf(s))
	}

	return out, nil
}

func (o *status) installed() bool { return o.State == stateInstalled || o.State == stateChanged }

// roundabout reports whether calls of a client can bypass its gateway, or whether there is a
// problem with that or with a file.
func roundabout(files []status) bool {
	installed, beside := false, false
	for _, f := range files {
		if f.State == stateChanged || len(f.Problems) > 0 {
			return true
		}
		installed, beside = installed || f.installed(), beside || len(f.Beside) > 0
	}

	return installed && beside
}
