package approval

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/assent-dev/assent/resolve"
)

// Opened is the answer to Open.
type Opened struct {
	// Outcome is the effective result, while Decision.Outcome is the result of the rules alone.
	// Allow: the call may run, because the rules allow it or because Grant covers it (and its use
	// is counted). Ask: people are asked or have answered an identical call; see the state of
	// Request. Deny: the call must not run, for the reason in Denied. In JSON it is the value of
	// Word.
	Outcome  resolve.Outcome  `json:"-"`
	Decision resolve.Decision `json:"decision"`
	Binding  string           `json:"binding,omitempty"`
	Request  *Request         `json:"request,omitempty"` // set if people are asked; in a cool-down, the denied request
	Grant    *Grant           `json:"grant,omitempty"`   // the standing approval that lets the call run
	Shared   bool             `json:"shared,omitempty"`  // set if Request was created by an earlier identical call
	// Unfillable lists the required seats that no person can fill at the moment. With such a
	// shortage the request can only be denied or expire.
	Unfillable []Shortage `json:"unfillable,omitempty"`
	Denied     string     `json:"denied,omitempty"` // "policy", "frozen", "cooling_down"
	// PermitAge is the time in which an approval can be used, for example "15m". It is only set if people
	// are asked and the tenant's configuration sets it.
	PermitAge string `json:"permit_age,omitempty"`
	// ReplacePermissions is set if the owner's decision configuration lets an allowed call run in a
	// coding agent without the agent's own permission check.
	ReplacePermissions bool `json:"replace_permissions,omitempty"`
}

// The values of Word.
const (
	wordAllow   = "allow"
	wordGranted = "granted"
	wordPending = "pending"
	wordDeny    = "deny"
)

// Granted reports whether a standing approval lets the call run.
func (o *Opened) Granted() bool { return o.Outcome == resolve.Allow && o.Grant != nil }

// Word returns the outcome as documents write it: "granted" if a standing approval allows the call,
// "pending" if people are asked, else "allow" or "deny".
func (o *Opened) Word() string {
	switch {
	case o.Granted():
		return wordGranted
	case o.Outcome == resolve.Allow:
		return wordAllow
	case o.Outcome == resolve.Ask:
		return wordPending
	}

	return wordDeny
}

// openedFields are the fields of Opened without its methods.
type openedFields Opened

// openedDocument is Opened in JSON.
type openedDocument struct {
	Outcome string `json:"outcome"`
	*openedFields
}

// MarshalJSON writes the document. It does not escape angle brackets, because the encoder that
// calls it decides about that.
func (o Opened) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(openedDocument{Outcome: o.Word(), openedFields: (*openedFields)(&o)})

	return out.Bytes(), err
}

// UnmarshalJSON reads the document. It returns an error for an outcome that this version does not
// support, so that nothing runs.
func (o *Opened) UnmarshalJSON(text []byte) error {
	in := openedDocument{openedFields: (*openedFields)(o)}
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	switch in.Outcome {
	case wordAllow, wordGranted:
		o.Outcome = resolve.Allow
	case wordPending:
		o.Outcome = resolve.Ask
	case wordDeny:
		o.Outcome = resolve.Deny
	}

	if o.Word() != in.Outcome {
		return fmt.Errorf("an answer that makes no sense: %q without what belongs to it", in.Outcome)
	}

	return nil
}
