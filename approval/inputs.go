package approval

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/assent-dev/assent/approval/info"
	"github.com/assent-dev/assent/resolve"
)

// OpenInput is the input of Open: a call that an agent wants to run.
type OpenInput struct {
	Tenant   string
	Asker    Asker  // an empty principal is replaced by the call's
	Agent    string // id of the agent
	Call     *resolve.Call
	Key      string      // the asker's idempotency key; empty for none
	Replaces string      // the earlier request that this one replaces; empty for none
	Context  []info.Item // what the agent adds to the call
	// Within is the time that the asker waits for an answer. If the rules set a shorter time, theirs
	// applies. If it is 0, only the rules apply.
	Within time.Duration
	// Ask is a reason for asking people even if the rules allow the call, because the asker has
	// information that the rules don't. It can't make a decision weaker. If it is empty, only the
	// rules apply.
	Ask string
}

// VoteInput is one person's answer.
type VoteInput struct {
	Tenant    string
	ID        string
	IfVersion int64 // 0 for any version
	// Binding is the digest of the revision that the person saw: in full, or a prefix of at least
	// 12 hex digits. Required.
	Binding  string
	Person   string // authenticated name
	Verdict  Verdict
	Reason   string
	Response string // for Respond: the answer for the agent
	Choice   *int   // for Choose: index of the choice
	Data     []byte // for Submit: the answer, as JSON that the question's schema accepts
	Channel  string
	Token    string // name of the token that sent the answer; empty if the person is signed in
	Full     bool   // the channel showed the whole call; required for an approval
	// Also is the number of further callers (Requester.Also) that the person was shown. An approval
	// without IfVersion counts only if no more callers have joined since.
	Also  int
	Grant *GrantOffer

	checked json.RawMessage // for Submit: the schema against which Data was validated
}

// Voted is the result of an answer.
type Voted struct {
	Outcome VoteOutcome `json:"outcome"`
	Request *Request    `json:"request"`
	Grant   *Grant      `json:"grant,omitempty"`
	Detail  string      `json:"detail,omitempty"` // in words: who is still needed, or why nothing changed
	why     string      // why the person may not give this answer
}

// EditInput replaces the arguments of a pending request. The target can't be edited (threat 21).
type EditInput struct {
	Tenant    string
	ID        string
	IfVersion int64
	Binding   string // digest of the revision that the person saw, as in VoteInput
	Person    string
	Args      string // JSON text
	Reason    string
	Channel   string
	Token     string // as in VoteInput
	Full      bool   // the channel showed the whole call with the new arguments
}

// Edited is the result of an edit or of its preview.
type Edited struct {
	Decision resolve.Decision `json:"decision"` // about the edited call; if it is a deny, the edit is refused
	Binding  string           `json:"binding"`
	Changes  []Change         `json:"changes"`
	// Request is the request as it would be after the edit. It is only set by Preview, and nil if
	// the edit can't be made.
	Request *Request `json:"request,omitempty"`
	Voted   *Voted   `json:"voted,omitempty"` // nil for a preview
}

// Change is one difference between two arguments.
type Change struct {
	Path string `json:"path"`
	Old  string `json:"old,omitempty"` // JSON text; empty if added
	New  string `json:"new,omitempty"` // JSON text; empty if removed
}

// ConsumeInput is the input of Consume. It presents an approved call again, right before it runs.
type ConsumeInput struct {
	Tenant  string
	ID      string
	Asker   Asker         // the runtime that runs the call; one of the askers
	Call    *resolve.Call // what will run; nil when Binding is given
	Binding string        // digest of the call, computed by the runtime's own plan
	// Key identifies this attempt. A repetition with the same key gets the same answer; another key
	// is refused. Required.
	Key string
}

// The size limits of texts from outside, in bytes.
const (
	longest     = 4000 // texts that people write
	longestName = 1024 // names, keys, digests
)

// checkWords validates a text that a person wrote.
func checkWords(field, text string) error { return checkText(field, text, longest) }

// checkText returns an error unless every store and ledger can keep the text.
func checkText(field, text string, most int) error {
	if len(text) > most || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return &InputError{field, fmt.Sprintf("UTF-8 text without NUL of at most %d bytes", most)}
	}
	return nil
}

// checkName returns an error unless the name is one line of valid UTF-8.
func checkName(field, text string) error {
	if len(text) > longestName || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return &InputError{
			field,
			fmt.Sprintf("UTF-8 text without control characters of at most %d bytes", longestName),
		}
	}

	return nil
}

// mended replaces invalid bytes and truncates the text, so that checkWords accepts it.
func mended(text string) string {
	text = strings.ReplaceAll(safeText(text), "\x00", "\uFFFD")
	for len(text) > longest {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

// checkCall returns an error if the call can't be recorded unchanged. It doesn't parse the
// arguments; the plan does.
func checkCall(c *resolve.Call) error {
	switch {
	case c == nil:
		return &InputError{"call", "a call"}
	case c.Args == nil && c.Values != nil:
		return &InputError{
			"call.args",
			"the exact text of the arguments, not decoded values: what is approved is the text",
		}
	}

	return errors.Join(
		checkName("call.tool", c.Tool),
		checkName("call.server", c.Server),
		checkName("call.agent", c.Agent),
		checkName("call.skill", c.Skill),
		checkPrincipal(c.Principal),
		checkName("call.session", c.Session),
		checkName("call.tool_definition", c.ToolDefinition),
	)
}

func (in *OpenInput) check() error {
	if err := checkCall(in.Call); err != nil {
		return err
	}
	if in.Within < 0 {
		return &InputError{"within", "a duration above 0, or none"}
	}
	if err := in.Asker.speaksFor(in.Call.Principal); err != nil {
		return err
	}

	return errors.Join(
		in.Asker.Check(),
		in.Asker.mayAskFor(in.Agent),
		checkName("key", in.Key),
		checkName("replaces", in.Replaces),
		checkName("ask", in.Ask),
		info.Check(in.Context),
	)
}
