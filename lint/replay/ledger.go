package replay

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

// ledger reads the lines of a ledger's export. It doesn't verify them, which is the purpose of
// assent audit verify.
type ledger struct {
	agent string // id; calls of other agents are ignored
}

// ledgerEntry contains the data of an entry other than its call.
type ledgerEntry struct {
	index   int // -1 for the first and the last line
	entries int // total number of entries on the last line, otherwise -1
	subject string
	step    step
	rules   []ruleKey // recorded rules that applied
	groups  []string  // recorded groups that were asked
}

// step is the effect of an entry on a request.
type step uint8

const (
	noStep   step = iota
	opened        // its call is asked about
	edited        // a different call is asked about instead
	refused       // a person denied it
	finished      // it ended in another way
)

// steps returns the step for a type of entry.
func steps(kind, cause string) step {
	switch kind {
	case "request_opened":
		return opened
	case "request_edited":
		return edited
	case "request_denied":
		return refused
	case "request_expired":
		if cause == "late_deny" {
			return refused
		}
		return finished
	case "request_cancelled", "request_answered", "permit_consumed", "permit_expired":
		return finished
	default:
		return noStep
	}
}

// recorded returns the outcome that an entry of this type about a call implies. The outcome of
// a call that was denied because of a freeze is not known.
func recorded(kind, why string) (old resolve.Outcome, known, call bool) {
	switch kind {
	case "call_allowed":
		return resolve.Allow, true, true
	case "request_opened", "grant_used":
		return resolve.Ask, true, true
	case "request_edited":
		return resolve.Ask, false, true
	case "call_denied":
		if why == "cooling_down" {
			return resolve.Ask, true, true
		}
		return resolve.Deny, why == "policy", true
	default:
		return resolve.Deny, false, false
	}
}

// entry reads one line.
func (l ledger) entry(f *frame, to []entry) []entry {
	e := entry{line: f.line, ledger: &ledgerEntry{index: -1, entries: -1}}
	e.err = l.line(f.text, &e)
	return append(to, e)
}

func (l ledger) line(text []byte, e *entry) error {
	doc, err := value.Parse(text, value.Limits{MaxBytes: maxLine, MaxValues: maxLedgerValues})
	if err != nil {
		return err
	}
	if format, ok := doc.Get("format"); ok {
		if format.Text != "assent-ledger/1" {
			return errors.New("not an export of the format assent-ledger/1")
		}
		return nil
	}

	if n, ok := doc.Get("entries"); ok {
		e.ledger.entries, err = count(n)
		return err
	}
	index, _ := doc.Get("index")
	if e.ledger.index, err = count(index); err != nil {
		return fmt.Errorf("no line of an export: index: %w", err)
	}
	leafText, _ := doc.Get("leaf")
	leaf, err := value.Parse([]byte(leafText.Text), value.Limits{MaxBytes: maxLine, MaxValues: maxLedgerValues})
	if err != nil {
		return fmt.Errorf("leaf: %w", err)
	}
	return l.leaf(leaf, doc, e)
}

// maxLedgerValues limits the number of JSON values of an entry.
const maxLedgerValues = 1 << 20

// count reads a number of entries.
func count(v value.Value) (int, error) {
	n, err := strconv.Atoi(v.Num.Canonical())
	if v.Kind != value.Number || err != nil || n < 0 {
		return -1, errors.New("expected a whole number")
	}
	return n, nil
}

func text(v value.Value, path ...string) string {
	found, _ := v.Get(path...)
	return found.Text
}

func (l ledger) leaf(leaf, doc value.Value, e *entry) error {
	kind := text(leaf, "type")
	facts, _ := leaf.Get("facts")
	e.ledger.subject = text(leaf, "subject")
	e.ledger.step = steps(kind, text(facts, "cause"))
	old, known, call := recorded(kind, text(facts, "why"))
	question, _ := facts.Get("question")
	if !call || question.Bool || text(facts, "agent") != l.agent {
		return nil
	}
	var err error
	if e.when, err = timeOf(text(leaf, "time")); err != nil {
		return fmt.Errorf("time: %w", err)
	}
	if e.call, err = callOf(text(facts, "target")); err != nil {
		return err
	}
	e.call.Principal, e.call.Session = text(facts, "principal"), text(facts, "session")
	e.call.ToolDefinition = text(facts, "tool_definition")
	args, ok := doc.Get("openings", "args", "value")
	if !ok {
		if err := missingArgs(leaf); err != nil {
			e.call = nil
			return err
		}
		args.Text = "{}" // a part without text is not sealed
	}

	e.call.Args = resolve.Raw(args.Text)
	e.old, e.known = old, known
	e.ledger.rules, e.ledger.groups = recordedRules(facts), recordedGroups(facts)
	return nil
}

// missingArgs returns the reason why an entry has no arguments, or nil if the call had none.
func missingArgs(leaf value.Value) error {
	if _, sealed := leaf.Get("sealed", "args"); sealed {
		return errors.New("its arguments were redacted, so the call can't be decided again")
	}
	if _, long := leaf.Get("sealed", "args_digest"); long {
		return errors.New("its arguments were too long to be kept (ledger.keep_arguments), so the call can't be " +
			"decided again")
	}
	return nil
}

// callOf reads a target as the ledger writes it: "tool pay", "mcp_tool broker/sell".
func callOf(target string) (*resolve.Call, error) {
	kind, name, _ := strings.Cut(target, " ")
	container, inside, contained := strings.Cut(name, "/")
	c := &resolve.Call{Kind: resolve.Kind(kind)}
	switch {
	case name == "":
	case c.Kind == resolve.Tool:
		c.Tool = name
		return c, nil
	case c.Kind == resolve.Delegation:
		c.Agent = name
		return c, nil
	case c.Kind == resolve.MCPTool && contained:
		c.Server, c.Tool = container, inside
		return c, nil
	case c.Kind == resolve.Skill && contained:
		c.Agent, c.Skill = container, inside
		return c, nil
	}

	return nil, fmt.Errorf("%q is no target of a call", target)
}

func recordedRules(facts value.Value) []ruleKey {
	list, _ := facts.Get("rules")
	var out []ruleKey
	for _, v := range list.Items {
		key := newRuleKey(
			resolve.Source(text(v, "source")),
			text(v, "policy"),
			text(v, "rule"),
			resolve.Code(text(v, "code")),
		)
		if key.rule != "" { // a freeze and a recent answer are not rules
			out = append(out, key)
		}
	}

	return out
}

func recordedGroups(facts value.Value) []string {
	list, _ := facts.Get("stages")
	var out []string
	for _, v := range list.Items {
		out = append(out, text(v, "group"))
	}
	return distinct(out)
}

// order checks a ledger against its own count of entries: a missing entry may be one that a
// person denied.
type order struct {
	next int
	done bool
}

func (o *order) check(e *entry) error {
	l := e.ledger
	switch {
	case o.done:
		return errors.New("unexpected line behind the last one of the export")
	case l.entries >= 0:
		o.done = true
		if l.entries != o.next {
			return fmt.Errorf("the export says that it has %d entries, but %d were read", l.entries, o.next)
		}
	case l.index >= 0:
		want := o.next
		o.next = l.index + 1
		if l.index != want {
			return fmt.Errorf("found entry %d in the place of entry %d", l.index, want)
		}
	}

	return nil
}
