package approval

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// Grant is a standing approval with bounds: calls that it covers run
// without asking again. It can only narrow: every argument equals the
// approved one, or lies within a bound whose edge is the approved one,
// and no rule asks that had not asked then. It is pinned to the agent,
// those who asked, the principal, the tool's definition and the plan's
// version; a change of any of them voids it.
type Grant struct {
	ID       string       `json:"id"`
	Tenant   string       `json:"tenant"`
	Agent    string       `json:"agent"`
	Target   string       `json:"target"`   // Call.Target
	Call     resolve.Call `json:"call"`     // the approved call
	Plan     string       `json:"plan"`     // version
	Bounds   []Bound      `json:"bounds"`   // arguments that may differ, and how
	Session  string       `json:"session"`  // "" means any session of the principal
	Runtimes []string     `json:"runtimes"` // the tokens that asked for it, and may use it
	// RuntimePeople are those whose tokens they are, in the same order;
	// "" where nobody's.
	RuntimePeople []string `json:"runtime_people,omitempty"`
	Redact        []string `json:"redact,omitempty"` // paths of arguments that channels hide
	// Rules and Stages are what the approval fulfilled: the rules that
	// asked, and who had to agree. A call about which another rule asks
	// is not covered.
	Rules      Rules          `json:"rules"`
	Stages     []policy.Stage `json:"stages"`
	Expires    time.Time      `json:"expires"`
	MaxUses    int            `json:"max_uses"`
	Uses       int            `json:"uses"`
	Request    string         `json:"request"` // that it came out of
	By         []string       `json:"by"`      // the people who approved it
	Created    time.Time      `json:"created"`
	Revoked    *time.Time     `json:"revoked,omitempty"`
	RevokedBy  string         `json:"revoked_by,omitempty"`
	RevokedWhy string         `json:"revoked_why,omitempty"`
}

// MostUses is how often a grant may be used unless the service or a
// policy says otherwise.
const MostUses = 10_000

// grantPrefix begins the ids of grants.
const grantPrefix = "grt_"

// Bound lets one argument differ from the approved one, in one
// direction, where every rule that asks names it.
type Bound = policy.Bound

// BoundKind is at_most or at_least.
type BoundKind = policy.BoundKind

// The bounds: of numbers only, and the approved number is the edge.
const (
	AtMost  = policy.AtMost
	AtLeast = policy.AtLeast
)

// GrantOffer is what an approver offers beside their vote. It takes
// effect when every counted approval offers one, with the strictest of
// all bounds, and never beyond what the policies and the service allow.
type GrantOffer struct {
	Session bool          `json:"session,omitempty"`  // only for the running session
	MaxAge  time.Duration `json:"-"`                  // 0: the service's default; in JSON max_age, a text such as "8h"
	MaxUses int           `json:"max_uses,omitempty"` // 0: the service's default, or its most with a MaxAge
	Bounds  []Bound       `json:"bounds,omitempty"`
}

type plainOffer GrantOffer

type offerJSON struct {
	plainOffer
	MaxAge string `json:"max_age,omitempty"`
}

// MarshalJSON writes the offer with its age as policies write durations.
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
