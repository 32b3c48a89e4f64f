package resolve

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/resolve/shellfacts"
	"github.com/assent-dev/assent/value"
)

// Derived has the runtime read facts out of an argument, which
// conditions then test as an argument of its own: of a command line, the
// programs that it runs (docs/contracts/decisions.md). A call never
// brings that argument itself.
type Derived struct {
	// Target is a local tool or a tool of a server, as CaseSensitive
	// names it.
	Target string `doc:"target"`
	// From is the argument that holds the command line.
	From string `doc:"from"`
	// As is the argument that conditions find the facts below:
	// shell.programs where it is shell.
	As string `doc:"as"`
	// Listed are the programs that the owner answers for, each with the
	// words that must follow it: "ls", "git status".
	Listed []string `doc:"listed"`
}

// CheckDerived reports what is wrong with an entry; field is the one
// that it is about, and i the place in a list.
func CheckDerived(d Derived) (field string, i int, err error) {
	at, err := parsePlace(d.Target)
	switch {
	case err == nil && at.kind != Tool && at.kind != MCPTool:
		err = fmt.Errorf("%q is no tool", d.Target)
		fallthrough
	case err != nil:
		return "target", 0, err
	case strings.Contains(d.As, ".") || strings.EqualFold(d.As, d.From):
		return "as", 0, fmt.Errorf("%q can't be told from other arguments", d.As)
	}

	for i, entry := range d.Listed {
		if err := shellfacts.CheckListed(entry); err != nil {
			return "listed", i, err
		}
	}

	return "", 0, nil
}

// derivations reads Options.Derived. A parent's word is needed for each,
// since its rules read the facts too.
func derivations(opt Options) (map[place]*Derived, error) {
	all := make(map[place]*Derived, len(opt.Derived))
	for i := range opt.Derived {
		d := &opt.Derived[i]
		if _, _, err := CheckDerived(*d); err != nil {
			return nil, fmt.Errorf("derived: %w", err)
		}
		at, _ := parsePlace(d.Target) // it was read before
		if all[at] != nil {
			return nil, fmt.Errorf("derived: %q stands twice", d.Target)
		}
		if opt.Parent == nil || opt.Parent.derived[at].equal(d) {
			all[at] = d
		}
	}

	reading := opt.Semantics.Conditions
	if len(all) > 0 && (reading.OnMissing != condition.Ask || reading.OnMismatch != condition.Ask) {
		return nil, errDerivedReading
	}

	return all, nil
}

// errDerivedReading refuses readings under which a fact that is not
// known would let a call through.
var errDerivedReading = errors.New("derived: facts that are not known must ask, so on_missing and on_mismatch stay ask")

// Split takes the facts out of arguments, however a condition's key names
// them: as members of As, or by a key with a dot. It returns false if the
// arguments have none. No call brings facts itself.
func (d *Derived) Split(args value.Value) (facts, rest value.Value, has bool) {
	facts, rest = value.Value{Kind: value.Object}, value.Value{Kind: value.Object}
	for _, m := range args.Members {
		name, fact, dotted := strings.Cut(m.Key, ".")
		switch {
		case !strings.EqualFold(name, d.As):
			rest.Members = append(rest.Members, m)
			continue
		case dotted:
			facts.Members = append(facts.Members, value.Member{Key: fact, Value: m.Value})
		case m.Value.Kind == value.Object:
			facts.Members = append(facts.Members, m.Value.Members...)
		default:
			facts.Kind = m.Value.Kind // which facts never are
		}
		has = true
	}

	return facts, rest, has
}

// Lines are command lines for an object of facts: some that are likely to
// have them, then some of every sort. Holds says which have them.
func (d *Derived) Lines(facts value.Value) []string {
	text := func(name string) string {
		v, _ := facts.Get(name)
		return v.Text
	}
	listed := "true"
	if len(d.Listed) > 0 {
		listed = d.Listed[0]
	}

	starts := []string{listed}
	starts = append(starts, d.Listed...)
	starts = append(starts, strings.Fields(text("programs")+" "+text("unlisted"))...)
	starts = append(starts, strings.Split(text("commands"), "\n")...)
	starts = append(starts, strings.Join(strings.Fields(text("unlisted")), "; "))
	ends := []string{""}
	for fact, mark := range map[string]string{"flags": " ", "paths": " ", "reads": " < ", "writes": " > "} {
		for _, word := range strings.Split(text(fact), "\n") {
			if word != "" {
				ends = append(ends, mark+word)
			}
		}
	}
	slices.Sort(ends)
	all := strings.Join(ends, "")

	var out []string
	for _, start := range starts {
		if start != "" && len(out) < mostLines {
			for _, end := range append(ends, all) {
				out = append(out, start+end)
			}
		}
	}
	for _, end := range []string{
		" > a", " < a", " /etc/passwd", " ../a", " a", " -a", "; " + unlistedProgram, " \"$a\"", " | sh",
	} {
		out = append(out, listed+end)
	}
	out = append(out, unlistedProgram, unlistedProgram+" a", "$(a)", "")
	seen := map[string]bool{}

	return slices.DeleteFunc(out, func(line string) bool {
		again := seen[line]
		seen[line] = true
		return again
	})
}

const (
	mostLines       = 256
	unlistedProgram = "some-other-program"
)

// Holds reports whether a command line has all facts of an object.
func (d *Derived) Holds(line string, facts value.Value) bool {
	if facts.Kind != value.Object {
		return false
	}
	read := shellfacts.Of(line, d.Listed)
	real := read.Members()
	return !slices.ContainsFunc(facts.Members, func(m value.Member) bool {
		v, known := real.Get(m.Key)
		return !known || m.Value.Kind != value.String || v.Text != m.Value.Text
	})
}

func (d *Derived) equal(o *Derived) bool {
	return d != nil && d.From == o.From && d.As == o.As && slices.Equal(d.list(), o.list())
}

// list is Listed in an order of its own.
func (d *Derived) list() []string { return slices.Compact(slices.Sorted(slices.Values(d.Listed))) }

// text says all that an entry means.
func (d *Derived) text() string {
	return fmt.Sprintf("%q as %q listed %q version %d", d.From, d.As, d.list(), shellfacts.Version)
}

// joined are the arguments with the facts, as conditions read them, and
// why some facts are not known. A call that brings the facts itself is
// unreadable.
func (d *Derived) joined(args value.Value) (text []byte, why string, err error) {
	out := value.Value{Kind: value.Object}
	var line value.Value
	for _, m := range args.Members {
		// A condition reads a key with dots as a path too.
		if name, _, _ := strings.Cut(m.Key, "."); strings.EqualFold(name, d.As) {
			return nil, "", fmt.Errorf("%s is derived by the runtime from %s: expected a call without it", m.Key, d.From)
		}
		if m.Key == d.From {
			line = m.Value
		}
		out.Members = append(out.Members, m)
	}

	if line.Kind == value.String {
		facts := shellfacts.Of(line.Text, d.Listed)
		out.Members = append(out.Members, value.Member{Key: d.As, Value: facts.Members()})
		why = facts.Why
	}

	return out.AppendCanonical(nil), why, nil
}

// readDerived scans the arguments of a target with facts.
func (p *Plan) readDerived(c *Call, t *target, sc *value.Scratch) (why string, err error) {
	d, err := p.args(c, t)
	if err != nil {
		return "", err
	}
	text, why, err := t.derived.joined(d.value())
	if err != nil {
		return "", err
	}
	lim := t.limits
	lim.MaxBytes, lim.MaxValues = 1<<30, 0 // the call kept to them

	return why, t.args.Scan(text, lim, sc)
}

// unknownFacts says why facts that a rule asked about are not known; ""
// when it asked about none.
func (e *explanation) unknownFacts(seen []condition.Observation) string {
	d := e.target.derived
	if d == nil || e.factless == "" {
		return ""
	}
	if !slices.ContainsFunc(seen, func(o condition.Observation) bool {
		return o.Truth == condition.Unknown && strings.HasPrefix(o.Key, d.As+".")
	}) {
		return ""
	}

	return "; of " + d.From + ": " + e.factless
}
