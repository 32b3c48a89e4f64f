package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// The JSON of a Require has the field names and words of the policy file
// (docs/contracts/policy.md), so that decisions print requirements as policies do. on_timeout (deny
// if unset) and arguments (full if unset) are always written.

// span is a duration in JSON: "30m".
type span time.Duration

// MarshalText writes the shortest form.
func (s span) MarshalText() ([]byte, error) { return []byte(FormatDuration(time.Duration(s))), nil }

// UnmarshalText reads what a policy file may say.
func (s *span) UnmarshalText(text []byte) error {
	d, err := ParseDuration(string(text))
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
	AnyOf     []AnyOf      `json:"any_of,omitempty"`
	Reason    Reason       `json:"reason,omitzero"`
}

// MarshalJSON writes the requirement as `require` of a policy file.
func (a Require) MarshalJSON() ([]byte, error) {
	a = a.Join(Require{})
	return json.Marshal(requireJSON{
		a.Stages, span(a.Within), a.Fallback(), a.Escalate, a.Grants, a.Arguments, a.AnyOf, a.Reason,
	})
}

// UnmarshalJSON reads the output of MarshalJSON. It returns an error for unknown fields and words,
// because a stored requirement that is not understood must not become a weaker one.
func (a *Require) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return errors.New("read require: null says nothing about what is required")
	}
	var q requireJSON
	if err := strict(data, &q); err != nil {
		return fmt.Errorf("read require: %w", err)
	}
	lists := [][]Stage{q.Stages}
	for _, alternatives := range q.AnyOf {
		if len(alternatives) == 0 || slices.ContainsFunc(alternatives, func(s []Stage) bool { return len(s) == 0 }) {
			return errors.New("read require: any_of needs alternatives, and each of them stages")
		}
		lists = append(lists, alternatives...)
	}
	for _, s := range slices.Concat(lists...) {
		if s.Group == "" {
			return errors.New("read require: a stage needs a group and at least one person")
		}
	}
	if q.Grants.Bounds == nil && !q.Grants.Forbid {
		q.Grants.Bounds = []Bound{} // what is not named must not vary
	}
	switch q.OnTimeout {
	case "", TimeoutDeny, TimeoutEscalate, TimeoutApprove:
	default:
		return fmt.Errorf("read require: unknown on_timeout %q", q.OnTimeout)
	}
	*a = Require{
		q.Stages,
		time.Duration(q.Within),
		q.OnTimeout,
		q.Escalate,
		q.Grants,
		q.Arguments,
		q.AnyOf,
		q.Reason,
	}.Join(Require{})
	return nil
}

type stageJSON struct {
	Group    string        `json:"group"`
	People   int           `json:"people"`
	StandIns []standInJSON `json:"stand_ins,omitempty"`
}

type standInJSON struct {
	After span   `json:"after"`
	Group string `json:"group"`
}

// MarshalJSON writes {"group":"risk","people":2}, and stand_ins if there are any.
func (s Stage) MarshalJSON() ([]byte, error) {
	out := stageJSON{Group: s.Group, People: s.People}
	for _, i := range s.StandIns {
		out.StandIns = append(out.StandIns, standInJSON{After: span(i.After), Group: i.Group})
	}

	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Stage) UnmarshalJSON(data []byte) error {
	var j stageJSON
	if err := strict(data, &j); err != nil {
		return err
	}
	if j.People < 1 {
		return errors.New("a stage needs a group and at least one person")
	}
	*s = Stage{Group: j.Group, People: j.People}
	for _, i := range j.StandIns {
		if i.After == 0 || i.Group == "" {
			return errors.New("a stand-in needs after and group")
		}
		s.StandIns = append(s.StandIns, StandIn{Group: i.Group, After: time.Duration(i.After)})
	}

	return nil
}

type escalationJSON struct {
	After span   `json:"after"`
	To    string `json:"to"`
	May   May    `json:"may,omitempty"` // absent: approve
}

// MarshalJSON writes {"after":"10m","to":"risk-leads"}, with
// "may":"look" for those who may not approve.
func (e Escalation) MarshalJSON() ([]byte, error) {
	out := escalationJSON{After: span(e.After), To: e.To}
	if e.May == MayLook {
		out.May = MayLook
	}

	return json.Marshal(out)
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
	if j.May != "" && j.May != MayApprove && j.May != MayLook {
		return fmt.Errorf("an escalation may approve or look, not %q", j.May)
	}
	*e = Escalation{After: time.Duration(j.After), To: j.To, May: cmp.Or(j.May, MayApprove)}

	return nil
}

type grantsJSON struct {
	Session bool    `json:"session,omitempty"`
	MaxAge  span    `json:"max_age,omitzero"`
	MaxUses int     `json:"max_uses,omitempty"`
	Bounds  []Bound `json:"bounds,omitempty"`
}

// MarshalJSON writes "forbid", "session", or an object of bounds.
func (g Grants) MarshalJSON() ([]byte, error) {
	switch {
	case g.Forbid:
		return []byte(`"forbid"`), nil
	case g.Session && g.MaxAge == 0 && g.MaxUses == 0 && len(g.Bounds) == 0:
		return []byte(`"session"`), nil
	}

	return json.Marshal(grantsJSON{g.Session, span(g.MaxAge), g.MaxUses, g.Bounds})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (g *Grants) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"forbid"`:
		*g = Grants{Forbid: true}
		return nil
	case `"session"`:
		*g = Grants{Session: true, Bounds: []Bound{}}
		return nil
	}

	var j grantsJSON
	if err := strict(data, &j); err != nil {
		return err
	}
	read := Grants{
		Session: j.Session,
		MaxAge:  time.Duration(j.MaxAge),
		MaxUses: j.MaxUses,
		Bounds:  normalBounds(append([]Bound{}, j.Bounds...)),
	}
	if j.MaxUses < 0 || read.IsZero() {
		return errors.New(`grants is "forbid", "session" or an object with bounds`)
	}
	for _, b := range j.Bounds {
		if b.Path == "" || !IsBoundKind(b.Kind) {
			return errors.New("a bound has a path, and a kind " + BoundKinds())
		}
	}
	*g = read
	return nil
}

type argumentsJSON struct {
	Redact        []string `json:"redact"`
	ApproveHidden *bool    `json:"approve_hidden,omitempty"` // absent: true
}

// MarshalJSON writes "full" or {"redact":[paths]}, with "approve_hidden":false if ForbidHidden is
// set.
func (a Arguments) MarshalJSON() ([]byte, error) {
	if len(a.Redact) == 0 {
		return []byte(`"full"`), nil
	}
	out := argumentsJSON{Redact: a.Redact}
	if a.ForbidHidden {
		out.ApproveHidden = new(bool)
	}

	return json.Marshal(out)
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
	*a = Arguments{Redact: j.Redact, ForbidHidden: j.ApproveHidden != nil && !*j.ApproveHidden}

	return nil
}

// strict decodes one JSON value and refuses unknown fields.
func strict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
