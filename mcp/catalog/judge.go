package catalog

import (
	"fmt"
	"slices"

	"github.com/assent-dev/assent/internal/safetext"
)

// First selects what happens to the tools of a server before any definition has been accepted.
type First string

// The values of First.
const (
	TrustFirst First = "trust_first" // it is accepted, and recorded
	Required   First = "required"    // it is not offered until it is pinned
)

// OnChange selects what happens to a tool whose definition differs from the accepted one.
type OnChange string

// The values of OnChange.
const (
	HoldChange   OnChange = "hold"   // it is not offered until it is pinned again
	AskChange    OnChange = "ask"    // every call of it is asked about
	AcceptChange OnChange = "accept" // it is accepted, and recorded
)

// OnText selects what happens to a tool with unsafe texts.
type OnText string

// The values of OnText.
const (
	StripText OnText = "strip" // clients see the texts without what isn't safe
	HoldText  OnText = "hold"  // the tool is not offered
)

// Settings configures how the tools of one server are judged. The zero value means trust_first,
// hold and strip.
type Settings struct {
	First    First
	OnChange OnChange
	OnText   OnText
	Volatile []string // members of _meta that don't count, see Server.Digest
}

// Check returns an error for unknown words, so that none of them is ever treated as the most
// permissive one.
func (s Settings) Check() error {
	for _, c := range []struct {
		name, got string
		known     []string
	}{
		{"pins", string(s.First), []string{"", string(TrustFirst), string(Required)}},
		{"on_change", string(s.OnChange), []string{"", string(HoldChange), string(AskChange), string(AcceptChange)}},
		{"on_text", string(s.OnText), []string{"", string(StripText), string(HoldText)}},
	} {
		if !slices.Contains(c.known, c.got) {
			return fmt.Errorf("%s: expected one of %v, found %q", c.name, c.known[1:], c.got)
		}
	}

	return nil
}

// State determines how a tool is offered to clients.
type State uint8

// The states of a tool. The zero value doesn't offer it.
const (
	Withheld State = iota // it is not listed, and calls don't run
	Asks                  // it is listed, and each call is asked about
	Offered               // it is listed, and calls are decided as the agent's file says
)

// String names the state.
func (s State) String() string { return []string{"withheld", "asks", "offered"}[min(s, Offered)] }

// Verdict is the result of judging one tool.
type Verdict struct {
	Tool   *Tool
	Digest string // for the binding of calls; "" where the definition can't be read
	State  State
	// Reason is a sentence for callers of a tool that is Withheld or Asks. After "Not run. " it is
	// the whole answer. Rule is the id of the rule that applied.
	Reason string
	Rule   string
	// Changes lists the differences from the accepted definition, and Accepted is that definition.
	// Both are nil if nothing was accepted.
	Changes  []Change
	Accepted []byte
}

// Judgement is the result of judging a server's list of tools.
type Judgement struct {
	Alias  string
	Server Server
	Tools  []Verdict // in the order of the list
	Gone   []string  // pinned tools that are not on it
	// Record lists the definitions that the settings accepted. They have to be added to the pins
	// and to the ledger.
	Record   []Pin
	Findings []Finding
}

// List returns the tools of the list.
func (j *Judgement) List() []*Tool {
	out := make([]*Tool, len(j.Tools))
	for i := range j.Tools {
		out[i] = j.Tools[i].Tool
	}
	return out
}

// The sentences for Verdict.Reason.
const (
	textNotPinned = "Nobody has accepted this tool's definition yet; its operators do so with assent mcp pin."
	textChanged   = "The tool's definition has changed since it was accepted; its operators must look at it."
	textServer    = "The server is not the one whose tools were accepted; its operators must look at it."
	textTwice     = "The server lists several tools of this name, so nobody knows which one is meant."
	textReserved  = "The gateway keeps this name for itself."
	textOnText    = "A text of this tool holds characters that aren't shown, or is too long; its operators must look at it."
)

// Judge decides which tools of a server's list are offered to clients. It changes nothing: see
// Judgement.Record. The settings must have been checked; an unknown word holds tools back.
func Judge(pins *Pins, alias string, server Server, list []*Tool, set Settings) Judgement {
	j := &judge{
		set:      set,
		pinned:   pins.Of(alias),
		accepted: map[string][]Pin{},
		count:    map[string]int{},
		out:      Judgement{Alias: alias, Server: server},
	}
	var err error
	if j.digest.server, err = server.Text(); err != nil {
		j.broken = "The server's identity can't be read."
	}
	for _, t := range list {
		j.count[t.Name]++
	}
	if j.pinned != nil {
		for _, pin := range j.pinned.Tools {
			j.accepted[pin.Name] = append(j.accepted[pin.Name], pin)
		}
	}
	for _, t := range list {
		j.out.Tools = append(j.out.Tools, j.tool(t))
	}

	j.gone()
	return j.out
}

type judge struct {
	set      Settings
	pinned   *Pinned
	accepted map[string][]Pin // by the tool's name
	digest   digester
	broken   string         // why no tool may be offered
	count    map[string]int // of tools by name
	out      Judgement
}

// tool judges one tool and adds its findings.
func (j *judge) tool(t *Tool) Verdict {
	v := Verdict{Tool: t}
	for _, f := range t.Findings {
		f.Server = j.out.Alias
		j.out.Findings = append(j.out.Findings, f)
	}
	for _, check := range []func(*Verdict){j.sound, j.known} {
		if check(&v); v.State == Withheld && v.Rule != "" {
			break
		}
	}

	if v.Rule != "" {
		j.find(v)
	}
	return v
}

func (v *Verdict) withhold(rule, reason string) {
	v.State = Withheld
	v.Rule, v.Reason = rule, reason
}

// sound withholds a tool that is unfit even if it is pinned.
func (j *judge) sound(v *Verdict) {
	t := v.Tool
	switch {
	case t.Problem != "":
		v.withhold(t.Rule, "The tool's definition can't be used: "+safetext.TerminalLine(t.Problem)+".")
		return
	case j.broken != "":
		v.withhold(RuleNotStrict, j.broken)
		return
	case j.count[t.Name] > 1:
		v.withhold(RuleTwice, textTwice)
		return
	case Reserved(t.Name):
		v.withhold(RuleReserved, textReserved)
		return
	}

	sum, err := j.digest.sum(steady(t.Raw, j.set.Volatile))
	if err != nil {
		v.withhold(
			RuleNotStrict,
			"The tool's definition can't be used: "+safetext.TerminalLine(err.Error())+".",
		)
		return
	}

	v.Digest = sum
}

// known compares a valid definition with its pins.
func (j *judge) known(v *Verdict) {
	accepted := j.accepted[v.Tool.Name]
	same := j.pinned == nil || j.pinned.Server.Equal(j.out.Server)
	at := slices.IndexFunc(accepted, func(p Pin) bool { return p.Digest == v.Digest })
	looked := at >= 0 && accepted[at].By == ByOperator
	bad, found := v.Tool.has(RuleHidden, RuleLong)
	switch {
	case found && !looked && j.set.OnText != StripText && j.set.OnText != "":
		v.withhold(bad.Rule, textOnText)
	case at >= 0:
		v.State = Offered
	case same && len(accepted) == 0:
		j.first(v)
	default:
		j.changed(v, accepted, same)
	}
}

// first judges a tool of a server for which nothing has been accepted yet.
func (j *judge) first(v *Verdict) {
	if j.set.First != TrustFirst && j.set.First != "" {
		v.withhold(RuleNotPinned, textNotPinned)
		return
	}
	v.State, v.Rule = Offered, RuleTrusted
	j.record(v, ByFirstSight)
}

// changed judges a tool that differs from the accepted one: its server or its definition has
// changed.
func (j *judge) changed(v *Verdict, accepted []Pin, same bool) {
	v.Rule, v.Reason = RuleChanged, textChanged
	if !same {
		v.Reason, v.Changes = textServer, DiffServers(j.pinned.Server, j.out.Server)
	}
	if n := len(accepted); n > 0 {
		v.Accepted = accepted[n-1].Definition
		v.Changes = append(v.Changes, Diff(v.Accepted, steady(v.Tool.Raw, j.set.Volatile))...)
	}

	switch j.set.OnChange {
	case AskChange:
		v.State = Asks
	case AcceptChange:
		v.State, v.Reason = Offered, ""
		j.record(v, ByOnChange)
	default:
		v.State = Withheld
	}
}

// record adds a definition that the settings accepted to the list for the pins and the ledger.
func (j *judge) record(v *Verdict, by By) {
	j.out.Record = append(j.out.Record, Pin{
		Name:       v.Tool.Name,
		Digest:     v.Digest,
		Definition: steady(v.Tool.Raw, j.set.Volatile),
		By:         by,
	})
}

// find adds a finding for a verdict that is not the ordinary one.
func (j *judge) find(v Verdict) {
	message := v.Reason
	switch {
	case v.Rule == RuleTrusted:
		message = "accepted as it was seen first: " + v.Digest
	case v.Rule == RuleChanged && v.State == Offered:
		message = "changed, and accepted by on_change: accept: " + v.Digest
	}

	j.out.Findings = append(j.out.Findings, Finding{
		Rule:    v.Rule,
		Server:  j.out.Alias,
		Tool:    v.Tool.Name,
		Message: message,
	})
}

// gone adds findings for pinned tools that are not on the list.
func (j *judge) gone() {
	if j.pinned == nil {
		return
	}
	for _, pin := range j.pinned.Tools {
		if j.count[pin.Name] > 0 || slices.Contains(j.out.Gone, pin.Name) {
			continue
		}
		j.out.Gone = append(j.out.Gone, pin.Name)
		j.out.Findings = append(j.out.Findings, Finding{
			Rule:    RuleGone,
			Server:  j.out.Alias,
			Tool:    pin.Name,
			Message: "it is pinned, and not on the server's list any more",
		})
	}
}

// Keep adds the definitions that the settings accepted to pins.
func (j *Judgement) Keep(pins *Pins) {
	if len(j.Record) > 0 {
		pins.Add(j.Alias, j.Server, j.Record, Instead)
	}
}
