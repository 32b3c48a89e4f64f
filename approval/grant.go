package approval

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// Grant is a standing approval with bounds: calls that it covers run without asking people again.
// It can only narrow the approval: every argument that acts equals the approved one or is within a
// bound, and only rules that asked at the time of the approval may ask. It is
// tied to the agent, the askers, the principal, the tool's definition and the plan's version, and
// becomes void if any of them changes.
type Grant struct {
	ID     string       `json:"id"`
	Tenant string       `json:"tenant"`
	Agent  string       `json:"agent"`
	Target string       `json:"target"` // Call.Target
	Call   resolve.Call `json:"call"`   // the approved call
	Plan   string       `json:"plan"`   // version
	Bounds []Bound      `json:"bounds"` // arguments that may differ, and how
	// Ignored lists the arguments that do not change what the call does. They may differ or be left out.
	Ignored []string `json:"ignored,omitempty"`
	// Examples are values of bounded arguments that the grant covers, and others that it doesn't.
	Examples []Example `json:"examples,omitempty"`
	Session  string    `json:"session"`  // empty for any session of the principal
	Runtimes []string  `json:"runtimes"` // the tokens that asked for it, and may use it
	// RuntimePeople are the owners of the tokens in Runtimes, in the same order; an empty string
	// for a token without owner.
	RuntimePeople []string `json:"runtime_people,omitempty"`
	Redact        []string `json:"redact,omitempty"` // paths of arguments that channels hide
	// Rules and Stages are what the approval fulfilled: the rules that asked and the people who had
	// to agree. The grant does not cover a call for which another rule asks.
	Rules      Rules          `json:"rules"`
	Stages     []policy.Stage `json:"stages"`
	AnyOf      []policy.AnyOf `json:"any_of,omitempty"`
	Expires    time.Time      `json:"expires"`
	MaxUses    int            `json:"max_uses"`
	Uses       int            `json:"uses"`
	Request    string         `json:"request"` // the request that it came from
	By         []string       `json:"by"`      // the people who approved it
	Created    time.Time      `json:"created"`
	Revoked    *time.Time     `json:"revoked,omitempty"`
	RevokedBy  string         `json:"revoked_by,omitempty"`
	RevokedWhy string         `json:"revoked_why,omitempty"`
}

// MostUses is the most uses of a grant unless the service or a policy sets another limit.
const MostUses = 10_000

// grantPrefix is the prefix of the ids of grants.
const grantPrefix = "grt_"

// GrantOffer is an approver's offer of a standing approval, given with their vote. It takes effect
// if every counted approval contains an offer. The strictest bounds of all offers apply, within the
// limits of the policies and the service.
type GrantOffer struct {
	Session bool          `json:"session,omitempty"`  // only for the current session
	MaxAge  time.Duration `json:"-"`                  // 0: default of the service; in JSON max_age, a text such as "8h"
	MaxUses int           `json:"max_uses,omitempty"` // 0: default of the service, or its maximum if MaxAge is set
	Bounds  []Bound       `json:"bounds,omitempty"`
}

type plainOffer GrantOffer

type offerJSON struct {
	plainOffer
	MaxAge string `json:"max_age,omitempty"`
}

// MarshalJSON writes the offer with its age in the format of durations in policies.
func (o GrantOffer) MarshalJSON() ([]byte, error) {
	j := offerJSON{plainOffer: plainOffer(o)}
	if o.MaxAge != 0 {
		j.MaxAge = policy.FormatDuration(o.MaxAge)
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (o *GrantOffer) UnmarshalJSON(data []byte) error {
	var j offerJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return fmt.Errorf("read a standing approval's bounds: %w", err)
	}
	*o = GrantOffer(j.plainOffer)
	if j.MaxAge == "" {
		return nil
	}
	age, err := time.ParseDuration(j.MaxAge)
	if err != nil {
		return fmt.Errorf("max_age: %q is no duration", j.MaxAge)
	}
	o.MaxAge = age
	return nil
}
