package catalog

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/assent-dev/assent/internal/safetext"
)

// The pseudo-tools: calls of these methods are decided on as calls of tools with these names.
const (
	ToolRead   = "resources/read"
	ToolPrompt = "prompts/get"
)

// ours is the prefix of the names of the gateway's own tools.
const ours = "assent__"

// Own returns the advertised name of a tool of the gateway itself.
func (n Naming) Own(name string) string { return shorten(ours+name, n.orDefault().Limit) }

// Reserved reports whether a name is reserved for the gateway, or looks like a reserved one.
func Reserved(name string) bool {
	folded := safetext.Fold(name)
	return strings.HasPrefix(folded, safetext.Fold(ours)) ||
		folded == safetext.Fold(ToolRead) || folded == safetext.Fold(ToolPrompt)
}

// Prefix selects when a tool's advertised name begins with its server's alias.
type Prefix string

// The values of Prefix.
const (
	PrefixAuto   Prefix = "auto"   // with several servers; "" too
	PrefixAlways Prefix = "always" // with one too
)

// separator separates a server's alias from a tool's name.
const separator = "__"

// leastLimit is the minimum limit: it leaves space for a name and the digits of its digest.
const leastLimit = 16

// Naming configures the advertised names of tools.
type Naming struct {
	Prefix Prefix
	Limit  int // of an advertised name, in bytes, at least 16; 0: 64
	Page   int // tools on a page; 0: 1,000
}

func (n Naming) orDefault() Naming {
	if n.Limit == 0 {
		n.Limit = 64
	}
	if n.Page <= 0 {
		n.Page = 1_000
	}
	n.Limit = max(n.Limit, leastLimit)
	return n
}

// prefixes reports whether names begin with the aliases of their servers.
func (n Naming) prefixes(servers int) bool { return servers > 1 || n.Prefix == PrefixAlways }

// AliasOf returns the alias of the server to which a tool of an advertised name would belong. It is
// empty if there is none.
func (n Naming) AliasOf(advertised string, aliases []string) (alias string) {
	if len(aliases) == 1 && !n.prefixes(1) {
		return aliases[0]
	}
	for _, one := range aliases {
		if strings.HasPrefix(advertised, one+separator) && len(one) > len(alias) {
			alias = one
		}
	}
	return alias
}

// Entry is a tool with its advertised name.
type Entry struct {
	Advertised  string
	Alias, Name string // of the server, and the server's own name
	Verdict     Verdict
}

// Table holds the tools of all servers of a gateway by advertised name. It is immutable and safe
// for concurrent use.
type Table struct {
	Entries  []Entry // by alias, then in the server's order
	Withheld []Entry // what isn't listed; Verdict has the reason
	Findings []Finding

	byName   map[string]int
	withheld map[string]int
	pages    pages
}

// NewTable assigns names to the tools that are offered or asked about. Two tools whose names could
// be confused are both withheld: equal names, names that differ only in case or in letters that
// look alike, and names that do so after they were shortened. The key, 32 bytes, seals cursors. If
// it is nil, lists have no pages.
func NewTable(servers []Judgement, naming Naming, key []byte) (*Table, error) {
	naming = naming.orDefault()
	t := &Table{byName: map[string]int{}, withheld: map[string]int{}}
	servers = slices.Clone(servers)
	slices.SortStableFunc(servers, func(a, b Judgement) int { return cmp.Compare(a.Alias, b.Alias) })
	all, withheld := entries(servers, naming)
	twins := collisions(all)
	for i, e := range all {
		switch others := twins[i]; {
		case Reserved(e.full):
			t.hold(e.Entry, RuleReserved, textReserved)
		case others != "":
			t.hold(e.Entry, RuleCollision, fmt.Sprintf(
				"Its name, %q, is taken for that of %s, so nobody knows which one is meant.", e.full, others))
		default:
			t.byName[e.Advertised] = len(t.Entries)
			t.Entries = append(t.Entries, e.Entry)
		}
	}

	for _, e := range withheld {
		t.keep(e.Entry)
	}
	t.shadowed(servers)
	return t, t.pages.make(t, naming.Page, key)
}

// candidate is an entry with its full name before shortening.
type candidate struct {
	Entry
	full string
}

// entries assigns names to all tools and returns the withheld ones separately.
func entries(servers []Judgement, naming Naming) (out, withheld []candidate) {
	prefixed := naming.prefixes(len(servers))
	for _, s := range servers {
		for _, v := range s.Tools {
			full := v.Tool.Name
			if prefixed {
				full = s.Alias + separator + full
			}
			c := candidate{full: full, Entry: Entry{
				Advertised: shorten(full, naming.Limit),
				Alias:      s.Alias,
				Name:       v.Tool.Name,
				Verdict:    v,
			}}
			if v.State == Withheld {
				withheld = append(withheld, c)
			} else {
				out = append(out, c)
			}
		}
	}

	return out, withheld
}

// Owned is something other than a tool that a server has under a name.
type Owned struct{ Alias, Name string }

// Names returns the names by which clients refer to things of several servers, in the same order.
// The rules are the same as for tools. A name that could be confused with another one, or with one
// of the gateway's, is empty.
func (n Naming) Names(all []Owned) []string {
	n = n.orDefault()
	candidates := make([]candidate, len(all))
	for i, one := range all {
		full := one.Alias + separator + one.Name
		candidates[i] = candidate{full: full, Entry: Entry{
			Advertised: shorten(full, n.Limit),
			Alias:      one.Alias,
			Name:       one.Name,
		}}
	}
	names := make([]string, len(all))
	for i, others := range collisions(candidates) {
		if others == "" && !Reserved(candidates[i].full) {
			names[i] = candidates[i].Advertised
		}
	}
	return names
}

// shorten shortens a name and appends six digits of its digest. The result for a name is always the
// same.
func shorten(full string, limit int) string {
	if len(full) <= limit {
		return full
	}
	const digits = 6
	sum := sha256.Sum256([]byte(full))
	at := limit - digits - 1
	for at > 0 && !utf8.RuneStart(full[at]) {
		at--
	}
	return full[:at] + "_" + hex.EncodeToString(sum[:])[:digits]
}

// collisions returns a text for each candidate that names the candidates with which it could be
// confused. The text is empty if there are none.
func collisions(all []candidate) []string {
	out := make([]string, len(all))
	for _, name := range []func(candidate) string{
		func(c candidate) string { return c.full },
		func(c candidate) string { return c.Advertised },
	} {
		groups := map[string][]int{}
		for i, c := range all {
			key := safetext.Fold(name(c))
			groups[key] = append(groups[key], i)
		}
		for _, group := range groups {
			for _, i := range group {
				if len(group) > 1 && out[i] == "" {
					out[i] = others(all, group, i)
				}
			}
		}
	}

	return out
}

// others names the other members of a group.
func others(all []candidate, group []int, self int) string {
	const most = 3
	var words []string
	for _, i := range group {
		if i != self && len(words) < most {
			words = append(words, fmt.Sprintf("%q of %s", all[i].Name, all[i].Alias))
		}
	}

	if more := len(group) - 1 - len(words); more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	return strings.Join(words, ", ")
}

// hold moves an entry to the withheld ones.
func (t *Table) hold(e Entry, rule, reason string) {
	e.Verdict.withhold(rule, safetext.TerminalLine(reason))
	t.keep(e)
	t.Findings = append(t.Findings, Finding{
		Rule:    rule,
		Server:  e.Alias,
		Tool:    e.Name,
		Message: e.Verdict.Reason,
	})
}

// keep stores why a name isn't listed, unless another tool has that name.
func (t *Table) keep(e Entry) {
	_, listed := t.byName[e.Advertised]
	if _, kept := t.withheld[e.Advertised]; !listed && !kept && e.Name != "" {
		t.withheld[e.Advertised] = len(t.Withheld)
	}
	t.Withheld = append(t.Withheld, e)
}

// Lookup returns the tool of an advertised name. If the tool is withheld, the entry's State is
// Withheld. It returns false if the name is unknown. The name is compared as a whole, without
// interpreting its parts.
func (t *Table) Lookup(advertised string) (Entry, bool) {
	if i, ok := t.byName[advertised]; ok {
		return t.Entries[i], true
	}
	if i, ok := t.withheld[advertised]; ok {
		return t.Withheld[i], true
	}
	return Entry{}, false
}

// Of returns the tool of a server by the server's own name, whether it is listed or withheld. It
// returns false if the server has no such tool.
func (t *Table) Of(alias, name string) (Entry, bool) {
	for _, all := range [][]Entry{t.Entries, t.Withheld} {
		for _, e := range all {
			if e.Name == name && e.Alias == alias {
				return e, true
			}
		}
	}

	return Entry{}, false
}

// shadowed adds findings for texts that name tools of other servers.
func (t *Table) shadowed(servers []Judgement) {
	if len(servers) < 2 {
		return
	}
	owners := map[string][]string{}
	add := func(name, alias string) {
		if !slices.Contains(owners[name], alias) {
			owners[name] = append(owners[name], alias)
		}
	}
	for _, e := range t.Entries {
		add(e.Name, e.Alias)
		add(e.Advertised, e.Alias)
	}
	for _, e := range t.Entries {
		t.Findings = append(t.Findings, e.Verdict.Tool.shadows(e.Alias, owners)...)
	}
}
