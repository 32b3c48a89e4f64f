package approval

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/assent-dev/assent/resolve"
)

// Opened is the answer to Open.
type Opened struct {
	// Outcome says what becomes of the call now, where Decision.Outcome
	// is what the rules alone say: Allow runs it, by the rules or
	// because Grant covers it (whose use is counted); Ask means that
	// people are asked, or have answered an identical call, as the
	// state of Request says; Deny stops it, by the rules or for what
	// Denied says. In JSON it is the Word.
	Outcome  resolve.Outcome  `json:"-"`
	Decision resolve.Decision `json:"decision"`
	Binding  string           `json:"binding,omitempty"`
	Request  *Request         `json:"request,omitempty"` // when people are asked; and the denied one during a cool-down
	Grant    *Grant           `json:"grant,omitempty"`   // the standing approval that lets the call run
	Shared   bool             `json:"shared,omitempty"`  // an identical call had been asked before: same request
	// Unfillable lists what the approval needs and nobody can give as
	// of now: the request can only be denied, or expire.
	Unfillable []Shortage `json:"unfillable,omitempty"`
	Denied     string     `json:"denied,omitempty"` // "policy", "frozen", "cooling_down"
	// PermitAge is how long an approval will wait to be used, "15m", of
	// what people are asked about where the tenant's configuration says
	// so.
	PermitAge string `json:"permit_age,omitempty"`
	// ReplacePermissions: the owner's decision configuration lets a call
	// that the rules allow run in a coding agent without the agent's own
	// permission check.
	ReplacePermissions bool `json:"replace_permissions,omitempty"`
}

// The words for an outcome in documents.
const (
	wordAllow   = "allow"
	wordGranted = "granted"
	wordPending = "pending"
	wordDeny    = "deny"
)

// Granted reports whether a standing approval lets the call run.
func (o *Opened) Granted() bool { return o.Outcome == resolve.Allow && o.Grant != nil }

// Word is the outcome as documents say it: "granted" for what a
// standing approval allows, "pending" for what people are asked about,
// "allow" and "deny".
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

// MarshalJSON writes the document. Angle brackets stay as they are: the
// encoder around it says whether they are escaped.
func (o Opened) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(openedDocument{Outcome: o.Word(), openedFields: (*openedFields)(&o)})

	return out.Bytes(), err
}

// UnmarshalJSON reads the document. A word that this version doesn't
// know is an error, and nothing runs.
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
