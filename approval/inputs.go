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

// OpenInput is a call that wants to run.
type OpenInput struct {
	Tenant   string
	Asker    Asker  // who asks; an empty principal stands for the call's
	Agent    string // id of the agent
	Call     *resolve.Call
	Key      string      // idempotency key of the asker's own; "" means none
	Replaces string      // an earlier request that this one supersedes; "" means none
	Context  []info.Item // what the agent says about the call
	// Within is how long the asker waits for an answer. It can only
	// tighten: where the rules give less time, theirs holds. 0: as the
	// rules say.
	Within time.Duration
	// Ask is why people are asked also where the rules allow the call:
	// the asker knows something that the rules don't. It can only
	// tighten. "": as the rules say.
	Ask string
}

// VoteInput is one person's answer.
type VoteInput struct {
	Tenant    string
	ID        string
	IfVersion int64 // 0: any
	// of the revision that the person saw: whole, or a prefix of at
	// least 12 characters of the hex digits; required
	Binding  string
	Person   string // authenticated name
	Verdict  Verdict
	Reason   string
	Response string // for Respond: what the agent is told
	Choice   *int   // for Choose: index of the choice
	Data     []byte // for Submit: the answer, as JSON that the question's schema accepts
	Channel  string
	Token    string // name of the token that the answer came by; "" for somebody who is signed in
	Full     bool   // whether the channel showed the whole call; an approval needs it
	// Also is how many further callers (Requester.Also) the person was
	// shown. It matters for an approval without IfVersion, which counts
	// only if no more callers have joined since.
	Also  int
	Grant *GrantOffer

	checked json.RawMessage // for Submit: the schema that Data was held to
}

// Voted is what became of an answer.
type Voted struct {
	Outcome VoteOutcome `json:"outcome"`
	Request *Request    `json:"request"`
	Grant   *Grant      `json:"grant,omitempty"`
	Detail  string      `json:"detail,omitempty"` // in words: who is still needed, or why it changed nothing
	why     string      // the person may not give this answer
}

// EditInput replaces the arguments of a pending request. The target
// can't be edited (threat 21).
type EditInput struct {
	Tenant    string
	ID        string
	IfVersion int64
	Binding   string // of the revision that the person saw, as in VoteInput
	Person    string
	Args      string // JSON text
	Reason    string
	Channel   string
	Token     string // as in VoteInput
	Full      bool   // whether the channel showed the whole call with the new arguments
}

// Edited is what an edit would do, or did.
type Edited struct {
	Decision resolve.Decision `json:"decision"` // of the edited call; a deny refuses the edit
	Binding  string           `json:"binding"`
	Changes  []Change         `json:"changes"`
	// Request is what would stand after the edit, for whoever is to be
	// shown all of it; nil unless this is a preview of an edit that can
	// be made.
	Request *Request `json:"request,omitempty"`
	Voted   *Voted   `json:"voted,omitempty"` // nil for a preview
}

// Change is one difference between two arguments.
type Change struct {
	Path string `json:"path"`
	Old  string `json:"old,omitempty"` // JSON text; "" when added
	New  string `json:"new,omitempty"` // JSON text; "" when removed
}

// ConsumeInput presents an approved call again, right before it runs.
type ConsumeInput struct {
	Tenant  string
	ID      string
	Asker   Asker         // who runs it: one of those who asked
	Call    *resolve.Call // what will run; nil when Binding is given
	Binding string        // its digest, computed by the runtime's own plan
	// of this attempt: a repetition with the same key gets the same
	// answer, another key is refused; required
	Key string
}

// How long texts from outside may be, in bytes.
const (
	longest     = 4000 // what people write
	longestName = 1024 // names, keys, digests
)

// checkWords looks at what a person writes.
func checkWords(field, text string) error { return checkText(field, text, longest) }

// checkText holds a text to what every store and ledger can keep.
func checkText(field, text string, most int) error {
	if len(text) > most || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return &InputError{field, fmt.Sprintf("UTF-8 text without NUL of at most %d bytes", most)}
	}
	return nil
}

// checkName holds a name to one line.
func checkName(field, text string) error {
	if len(text) > longestName || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return &InputError{
			field,
			fmt.Sprintf("UTF-8 text without control characters of at most %d bytes", longestName),
		}
	}

	return nil
}

// mended is a text as checkWords wants it.
func mended(text string) string {
	text = strings.ReplaceAll(safeText(text), "\x00", "\uFFFD")
	for len(text) > longest {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

// checkCall refuses what could not be recorded as it is. Whether the
// arguments can be read is for the plan to say.
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
