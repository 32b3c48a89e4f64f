package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// The JSON of a Require has the field names and words of the policy file (docs/contracts/policy.md), so that a decision prints what a
// policy says. What always holds is always written: on_timeout (unset denies) and arguments (unset is full).

// span is a duration in JSON: "30m".
type span time.Duration

// MarshalText writes the shortest form.
func (s span) MarshalText() ([]byte, error) { return []byte(FormatDuration(time.Duration(s))), nil }

// UnmarshalText reads what a policy file may say.
func (s *span) UnmarshalText(text []byte) error {
	d, err := parseDuration(string(text))
	*s = span(d)
	return err
}

type requireJSON struct {
	Stages    []Stage      `json:"stages,omitempty"`
	Within    span         `json:"within,omitzero"`
	OnTimeout Timeout      `json:"on_timeout"`
	Escalate  []Escalation `json:"escalate,omitempty"`
	Grants    Grants       `json:"grants,omitzero"`
	Arguments Arguments    `json:"arguments"`
}

// MarshalJSON writes the requirement as `require` of a policy file.
func (a Require) MarshalJSON() ([]byte, error) {
	a = a.Join(Require{})
	return json.Marshal(requireJSON{a.Stages, span(a.Within), a.Fallback(), a.Escalate, a.Grants, a.Arguments})
}

// UnmarshalJSON reads what MarshalJSON writes, and refuses fields and words that it doesn't know: a stored
// requirement that is not understood must not be taken for a weaker one.
func (a *Require) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return errors.New("read require: null says nothing about what is required")
	}
	var q requireJSON
	if err := strict(data, &q); err != nil {
		return fmt.Errorf("read require: %w", err)
	}
	for _, s := range q.Stages {
		if s.Group == "" || s.People < 1 {
			return errors.New("read require: a stage needs a group and at least one person")
		}
	}
	switch q.OnTimeout {
	case "", TimeoutDeny, TimeoutEscalate, TimeoutApprove:
	default:
		return fmt.Errorf("read require: unknown on_timeout %q", q.OnTimeout)
	}
	*a = Require{q.Stages, time.Duration(q.Within), q.OnTimeout, q.Escalate, q.Grants, q.Arguments}.Join(Require{})
	return nil
}

type escalationJSON struct {
	After span   `json:"after"`
	To    string `json:"to"`
}

// MarshalJSON writes {"after":"10m","to":"risk-leads"}.
func (e Escalation) MarshalJSON() ([]byte, error) {
	return json.Marshal(escalationJSON{span(e.After), e.To})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (e *Escalation) UnmarshalJSON(data []byte) error {
	var j escalationJSON
	if err := strict(data, &j); err != nil {
		return err
	}
	if j.After == 0 || j.To == "" {
		return errors.New("an escalation needs after and to")
	}
	*e = Escalation{time.Duration(j.After), j.To}
	return nil
}

type grantsJSON struct {
	Session bool `json:"session,omitempty"`
	MaxAge  span `json:"max_age,omitzero"`
	MaxUses int  `json:"max_uses,omitempty"`
}

// MarshalJSON writes "forbid", "session", or an object of bounds.
func (g Grants) MarshalJSON() ([]byte, error) {
	switch {
	case g.Forbid:
		return []byte(`"forbid"`), nil
	case g == Grants{Session: true}:
		return []byte(`"session"`), nil
	}
	return json.Marshal(grantsJSON{g.Session, span(g.MaxAge), g.MaxUses})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (g *Grants) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"forbid"`:
		*g = Grants{Forbid: true}
		return nil
	case `"session"`:
		*g = Grants{Session: true}
		return nil
	}
	var j grantsJSON
	if err := strict(data, &j); err != nil {
		return err
	}
	if j.MaxUses < 0 || j == (grantsJSON{}) {
		return errors.New(`grants is "forbid", "session" or an object with bounds`)
	}
	*g = Grants{Session: j.Session, MaxAge: time.Duration(j.MaxAge), MaxUses: j.MaxUses}
	return nil
}

type argumentsJSON struct {
	Redact []string `json:"redact"`
}

// MarshalJSON writes "full" or {"redact":[paths]}.
func (a Arguments) MarshalJSON() ([]byte, error) {
	if len(a.Redact) == 0 {
		return []byte(`"full"`), nil
	}
	return json.Marshal(argumentsJSON(a))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (a *Arguments) UnmarshalJSON(data []byte) error {
	if string(data) == `"full"` {
		*a = Arguments{}
		return nil
	}
	var j argumentsJSON
	if err := strict(data, &j); err != nil {
		return err
	}
	if len(j.Redact) == 0 {
		return errors.New(`arguments is "full" or {"redact": [paths]}`)
	}
	*a = Arguments(j)
	return nil
}

// strict decodes one JSON value and refuses unknown fields.
func strict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
