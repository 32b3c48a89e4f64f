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
	// From is the argument that contains the command line. It is empty if Paths has arguments.
	From string `doc:"from"`
	// Paths lists the arguments that name files. Each is a text or a list of texts.
	Paths []string `doc:"paths"`
	// Writes is set if the tool changes the files of Paths.
	Writes bool `doc:"writes"`
	// Searches is set if the tool reads all files below the directories of Paths, or below that of
	// the call if they name none.
	Searches bool `doc:"searches"`
	// Beside lists the arguments that a call may have in addition to From or Paths. With any other
	// argument, no facts are known. If Beside is nil, any argument is accepted with From, and none
	// with Paths.
	Beside []string `doc:"beside"`
	// Directory is the argument that contains the directory of the call. It may be empty.
	Directory string `doc:"directory"`
	// As is the name under which conditions find the facts: with As shell, shell.programs.
	As string `doc:"as"`
	// Listed are the programs that the owner accepts, each with the words that must follow it:
	// "ls", "git status".
	Listed []string `doc:"listed"`
}

// CheckDerived returns what is wrong with an entry; field is the field concerned, and i the index
// in its list.
func CheckDerived(d Derived) (field string, i int, err error) {
	at, err := parsePlace(d.Target)
	switch {
	case err == nil && at.kind != Tool && at.kind != MCPTool:
		err = fmt.Errorf("%q is no tool", d.Target)
		fallthrough
	case err != nil:
		return "target", 0, err
	case (d.From == "") == (len(d.Paths) == 0):
		return "as", 0, errors.New("expected from or paths, and not both")
	case strings.Contains(d.As, ".") || slices.ContainsFunc(d.named(), func(n string) bool {
		return strings.EqualFold(n, d.As)
	}):
		return "as", 0, fmt.Errorf("%q can't be told from other arguments", d.As)
	case len(d.Paths) > 0 && len(d.Listed) > 0:
		return "listed", 0, errors.New("programs are listed for command lines, and paths are none")
	case d.From != "" && (d.Writes || d.Searches):
		return "as", 0, errors.New("writes and searches go with paths: what a command line does is read from it")
	}

	for i, entry := range d.Listed {
		if err := shellfacts.CheckListed(entry); err != nil {
			return "listed", i, err
		}
	}

	return "", 0, nil
}

// named returns all arguments that an entry names.
func (d *Derived) named() []string {
	out := slices.Concat(d.Paths, d.Beside)
	for _, name := range []string{d.From, d.Directory} {
		if name != "" {
			out = append(out, name)
		}
	}

	return out
}

// Source returns the argument from which facts are derived: From, or the first of Paths.
func (d *Derived) Source() string {
	if d.From == "" {
		return d.Paths[0]
	}

	return d.From
}

// derivations reads Options.Derived. A parent must have each entry too, since its rules read the
// facts as well.
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

// errDerivedReading is the error for readings under which an unknown fact would let a call through.
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

// Lines returns command lines for an object of facts: first some that are likely to have them, then
// some of every sort. Holds tells which have them.
func (d *Derived) Lines(facts value.Value) []string {
	text := func(name string) string {
		v, _ := facts.Get(name)
		return v.Text
	}
	if d.From == "" {
		return []string{text("paths"), text("sensitive"), "a", ".env", "../a"}
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
	var read shellfacts.Facts
	if d.From == "" {
		read = shellfacts.Paths([]string{line}, d.use(), nil)
	} else {
		read = shellfacts.Of(line, shellfacts.Options{Listed: d.Listed})
	}
	real := read.Members()
	return !slices.ContainsFunc(facts.Members, func(m value.Member) bool {
		v, known := real.Get(m.Key)
		return !known || m.Value.Kind != value.String || v.Text != m.Value.Text
	})
}

func (d *Derived) use() shellfacts.Use { return shellfacts.Use{Writes: d.Writes, Searches: d.Searches} }

func (d *Derived) equal(o *Derived) bool { return d != nil && d.text() == o.text() }

func sorted(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }

// text returns the whole meaning of an entry, for a digest.
func (d *Derived) text() string {
	out := fmt.Sprintf("%q as %q listed %q version %d", d.From, d.As, sorted(d.Listed), shellfacts.Version)
	if len(d.Paths) > 0 {
		out += fmt.Sprintf(" paths %q writes %t searches %t", sorted(d.Paths), d.Writes, d.Searches)
	}
	if d.Beside != nil {
		out += fmt.Sprintf(" beside %q", sorted(d.Beside))
	}
	if d.Directory != "" {
		out += fmt.Sprintf(" directory %q", d.Directory)
	}

	return out
}

// joined returns the arguments with the facts added, as conditions read them. It returns an error
// if the call already contains facts.
func (d *Derived) joined(args value.Value, w *Workspace) (text []byte, facts *shellfacts.Facts, err error) {
	out := value.Value{Kind: value.Object}
	for _, m := range args.Members {
		// A condition reads a key with dots as a path too.
		if name, _, _ := strings.Cut(m.Key, "."); strings.EqualFold(name, d.As) {
			return nil, nil, fmt.Errorf("%s is derived by the runtime from %s: expected a call without it", m.Key,
				d.Source())
		}
		out.Members = append(out.Members, m)
	}

	if facts = d.facts(args, w); facts != nil {
		out.Members = append(out.Members, value.Member{Key: d.As, Value: facts.Members()})
	}

	return out.AppendCanonical(nil), facts, nil
}

// facts derives the facts of a call. It returns nil if the argument for them is missing.
func (d *Derived) facts(args value.Value, w *Workspace) *shellfacts.Facts {
	for _, m := range args.Members {
		if (d.Beside != nil || d.From == "") && !slices.Contains(d.named(), m.Key) {
			return unknownFacts("the argument " + shellfacts.Excerpt(m.Key) + " may change what the call does")
		}
	}
	opt := shellfacts.Options{Listed: d.Listed, Workspace: w}
	if at, given := args.Get(d.Directory); given && d.Directory != "" && at.Kind != value.Null {
		if at.Kind != value.String {
			return unknownFacts("the argument " + d.Directory + " is no text")
		}
		opt.Workspace, opt.Moved = w.In(at.Text)
	}
	if d.From != "" {
		line, _ := args.Get(d.From)
		if line.Kind != value.String {
			return nil
		}
		facts := shellfacts.Of(line.Text, opt)
		return &facts
	}

	paths, ok := d.pathsOf(args)
	if !ok {
		return unknownFacts("an argument that names files is neither a text nor a list of texts")
	}
	facts := shellfacts.Paths(paths, d.use(), opt.Workspace)

	return &facts
}

func unknownFacts(why string) *shellfacts.Facts { return &shellfacts.Facts{Why: why, WhyFiles: why} }

// pathsOf returns the paths that a call names.
func (d *Derived) pathsOf(args value.Value) (paths []string, ok bool) {
	for _, name := range d.Paths {
		v, _ := args.Get(name)
		switch v.Kind {
		case value.Absent, value.Null:
		case value.String:
			named, known := patched(v.Text)
			if !known {
				return nil, false
			}
			paths = append(paths, named...)
		case value.Array:
			for _, item := range v.Items {
				if item.Kind != value.String {
					return nil, false
				}
				paths = append(paths, item.Text)
			}
		default:
			return nil, false
		}
	}

	return paths, true
}

// patched returns the files of a patch in the format of apply_patch. Any other text is one path. It
// returns false for a patch that it can't read.
func patched(text string) (paths []string, ok bool) {
	if !strings.HasPrefix(strings.TrimSpace(text), "*** Begin Patch") {
		return []string{text}, !strings.Contains(text, "\n")
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		what, name, _ := strings.Cut(line, ": ")
		switch {
		case !strings.HasPrefix(line, "***"), line == "*** Begin Patch", line == "*** End Patch",
			line == "*** End of File":
		case what == "*** Add File", what == "*** Update File", what == "*** Delete File", what == "*** Move to":
			paths = append(paths, name)
		default:
			return nil, false
		}
	}

	return paths, true
}

// readDerived scans the arguments of a target with facts.
func (p *Plan) readDerived(c *Call, t *target, sc *value.Scratch) (*shellfacts.Facts, error) {
	d, err := p.args(c, t)
	if err != nil {
		return nil, err
	}
	text, facts, err := t.derived.joined(d.value(), c.Workspace)
	if err != nil {
		return nil, err
	}
	lim := t.limits
	lim.MaxBytes, lim.MaxValues = 1<<30, 0 // the call kept to them

	return facts, t.args.Scan(text, lim, sc)
}

// derivedDetail explains the facts that a rule tested: why they are unknown, or which words of the
// call they contain. It returns an empty string if the rule tested none.
func (e *explanation) derivedDetail(seen []condition.Observation) string {
	d := e.target.derived
	if d == nil || e.facts == nil {
		return ""
	}
	var out []string
	for _, o := range seen {
		fact, of := strings.CutPrefix(o.Key, d.As+".")
		if !of {
			continue
		}
		said := e.facts.Why
		switch {
		case o.Truth == condition.True:
			said = e.facts.Words(fact)
		case fact == "outside" || fact == "sensitive":
			said = e.facts.WhyFiles
		}
		if said != "" && !slices.Contains(out, said) {
			out = append(out, said)
		}
	}
	if len(out) == 0 {
		return ""
	}

	return "; of " + d.Source() + ": " + strings.Join(out, "; ")
}
