package catalog

import (
	"strings"

	"github.com/assent-dev/assent/internal/safetext"
)

// The rules of findings. The meaning of an id never changes.
const (
	RuleNotStrict  = "tool-not-strict"  // the definition can't be read, or can be read in two ways
	RuleProtocol   = "tool-protocol"    // the schema of the protocol refuses the definition
	RuleName       = "tool-name"        // no name of a tool
	RuleReserved   = "tool-reserved"    // a name that the gateway keeps for itself
	RuleTwice      = "tool-twice"       // one list has two tools of one name
	RuleCollision  = "name-collision"   // two tools would have names that are taken for each other
	RuleHeader     = "header-mark"      // x-mcp-header at a place where it is not allowed
	RuleHidden     = "text-hidden"      // characters that aren't drawn were taken out of a text
	RuleLong       = "text-long"        // a text was cut
	RuleNotMended  = "text-not-mended"  // such characters are in texts that can't be changed
	RuleLarge      = "tool-large"       // the whole definition is too large to show
	RuleShadow     = "text-shadow"      // a text names a tool of another server
	RuleImperative = "text-imperative"  // a text tells the model what to do
	RuleAddress    = "text-address"     // a text holds an address of the web
	RuleNotPinned  = "tool-not-pinned"  // the definition has not been accepted yet
	RuleChanged    = "tool-changed"     // the definition is not the accepted one
	RuleTrusted    = "tool-first-sight" // the definition was accepted as it came first
	RuleGone       = "tool-gone"        // a pinned tool is not on the list
)

// Finding describes a problem or something worth a look.
type Finding struct {
	Rule    string `json:"rule"`
	Server  string `json:"server,omitempty"` // alias
	Tool    string `json:"tool,omitempty"`   // the server's own name
	Place   string `json:"place,omitempty"`  // in its definition: inputSchema.properties.path.description
	Message string `json:"message"`
}

// String returns the finding on one line: "files/read_file: description: … [text-hidden]".
func (f Finding) String() string {
	var b strings.Builder
	b.WriteString(f.Server)
	if f.Server != "" && f.Tool != "" {
		b.WriteString("/")
	}
	b.WriteString(f.Tool)
	for _, part := range []string{f.Place, f.Message} {
		if b.Len() > 0 && part != "" {
			b.WriteString(": ")
		}
		b.WriteString(part)
	}

	return safetext.TerminalLine(b.String()) + " [" + f.Rule + "]"
}

// find adds a finding about a place in the definition.
func (t *Tool) find(rule, place, message string) {
	t.Findings = append(t.Findings, Finding{
		Rule:    rule,
		Tool:    t.Name,
		Place:   place,
		Message: message,
	})
}

// has returns the first finding of one of the rules.
func (t *Tool) has(rules ...string) (Finding, bool) {
	for _, f := range t.Findings {
		for _, rule := range rules {
			if f.Rule == rule {
				return f, true
			}
		}
	}

	return Finding{}, false
}
