package schema

import (
	"fmt"
	"slices"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// MisspeltGate is an unknown field that was meant as a gate. The format says that unknown fields
// are ignored, so the author would be mistaken about what runs without approval. The calls ask
// instead.
type MisspeltGate struct {
	Field string
	Range diag.Range // of the field's name
}

// MisspeltList is an unknown field that is meant as a list of tools or
// skills.
type MisspeltList struct {
	MisspeltGate
	Denies bool // it names what may not be called
}

// maxMisspelt limits the misspelt gates kept for one place. One is enough to ask; agf-validate
// reports all.
const maxMisspelt = 8

// StrayKey returns the key of Agent.Strays for a name.
func StrayKey(name string) string { return readName(name).joined }

// foreign reports an unknown field, and keeps it if it was meant as a gate.
func (w *fieldWalk) foreign(n *yamldoc.Node, f yamldoc.Field, s *shape) {
	finding := w.unknown(n, f.Key, s)
	switch {
	case w.within(approvalField), w.within("metadata"):
		// In an approval, the known fields decide and an unknown one never makes it ask always.
		// metadata is only about the file.
	case s.fields[approvalField] != nil:
		w.foreignInEntry(n, f, s, &finding)
	default:
		w.foreignOutside(f, s, &finding)
	}
	w.add(finding)
}

func (w *fieldWalk) within(step string) bool {
	return slices.ContainsFunc(w.places, func(p place) bool { return p.step == step })
}

const entryAsks = "; until then every call of this entry asks"

// foreignInEntry is foreign for a field of an entry of the action space.
func (w *fieldWalk) foreignInEntry(n *yamldoc.Node, f yamldoc.Field, s *shape, finding *diag.Finding) {
	key := f.Key.Text
	list := "allowed_tools"
	if s.fields[list] == nil {
		list = "allowed_skills"
	}
	right := n.Get(approvalField)
	meant := meaningOf(f.Key, f.Value, s.fields[list] != nil)
	if meant == meansPart && readName(key).part() == templateField && right != nil &&
		(right.Kind != yamldoc.Bool || right.Bool) {
		return // a message next to an approval that asks is no gate of its own
	}
	gate := MisspeltGate{Field: key, Range: f.Key.Range}
	switch meant {
	case meansNothing:
		return
	case meansList:
		denies := readName(key).denies()
		w.keepList(n, MisspeltList{gate, denies})
		if !denies && n.Get(list) != nil {
			return // the correct list decides, unless it is empty and the owner reads that as absent
		}
		finding.Rule, finding.Severity = ruleUnreadList, diag.Error
		finding.Message = fmt.Sprintf("%+q is no field of this entry, so this list restricts nothing", key)
		finding.Expected, finding.Nearest = list+" with what may be called"+entryAsks, ""
		if !denies {
			finding.Nearest = list
		}
		return
	case meansApproval:
		finding.Message = fmt.Sprintf("%+q is no field of this entry, so it gates nothing", key)
		finding.Expected = "approval: true, or an object with a condition" + entryAsks
		finding.Nearest = approvalField
	case meansPart:
		part := readName(key).part()
		finding.Message = fmt.Sprintf("%+q stands outside of approval, where it is not read", key)
		finding.Nearest = ""
		if part == argsMatchField {
			part = conditionField + ": {args_match: …}"
		} else {
			part += ": …"
		}
		finding.Expected = "approval: {" + part + "}" + entryAsks
	case meansHolder:
		finding.Message = fmt.Sprintf("%+q is no field of this entry, so the approvals in it gate nothing", key)
		finding.Expected += entryAsks
	}
	if right != nil && finding.Nearest == approvalField {
		finding.Nearest = ""
		finding.Expected = "approval alone, which stands beside it" + entryAsks
	}
	finding.Rule, finding.Severity = ruleMisplaced, diag.Error
	w.keepGate(n, gate)
}

// foreignOutside is foreign for a field outside of all entries.
func (w *fieldWalk) foreignOutside(f yamldoc.Field, s *shape, finding *diag.Finding) {
	key := f.Key.Text
	conditions := w.within("execution_policy")
	switch meaningOutside(f.Key, f.Value, conditions) {
	case meansNothing, meansList:
		return
	case meansApproval:
		finding.Message = fmt.Sprintf("%+q is not read here, so it gates nothing", key)
		finding.Expected = "approval in the entry of a tool, server, skill or agent; until then every call asks"
		finding.Nearest = ""
		w.keepStray("", MisspeltGate{key, f.Key.Range})
	case meansPart:
		finding.Message = fmt.Sprintf("%+q stands outside of approval, where it is not read", key)
		finding.Expected = "approval in the entry of a tool, server, skill or agent; until then every call asks"
		finding.Nearest = ""
		w.keepStray("", MisspeltGate{key, f.Key.Range})
	case meansHolder:
		finding.Message = fmt.Sprintf("%+q is not read here, so the approvals in it gate nothing", key)
		heldGates(f.Value, func(key *yamldoc.Node, in []*yamldoc.Node) bool {
			if !conditions || readName(key.Text).part() == "" {
				w.keepHeld(MisspeltGate{key.Text, key.Range}, in)
			}
			return true
		})
	}
	finding.Rule, finding.Severity = ruleMisplaced, diag.Error
}

// keepHeld keeps a gate inside an unknown field: for the calls of the target that the closest
// mapping names, or else for every call.
func (w *fieldWalk) keepHeld(gate MisspeltGate, in []*yamldoc.Node) {
	named := false
	for i := len(in) - 1; i >= 0 && !named; i-- {
		for _, field := range []string{"alias", "name", "id", "tool", "skill", "agent", "server"} {
			if key := StrayKey(text(in[i].Get(field))); key != "" {
				w.keepStray(key, gate)
				named = true
			}
		}
	}
	if !named {
		w.keepStray("", gate)
	}
}

func (r *reader) keepStray(name string, gate MisspeltGate) {
	if r.strays == nil {
		r.strays = map[string][]MisspeltGate{}
	}
	r.strays[name] = keep(r.strays[name], gate)
}

func (r *reader) keepGate(entry *yamldoc.Node, gate MisspeltGate) {
	if r.gates == nil {
		r.gates = map[*yamldoc.Node][]MisspeltGate{}
	}
	r.gates[entry] = keep(r.gates[entry], gate)
}

func (r *reader) keepList(entry *yamldoc.Node, list MisspeltList) {
	if r.lists == nil {
		r.lists = map[*yamldoc.Node][]MisspeltList{}
	}
	r.lists[entry] = keep(r.lists[entry], list)
}

// keep appends to a list, unless the item is there already or the list is full. An entry that a
// YAML alias repeats is read more than once.
func keep[T comparable](all []T, one T) []T {
	if len(all) >= maxMisspelt || slices.Contains(all, one) {
		return all
	}
	return append(all, one)
}
