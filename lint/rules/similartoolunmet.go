package rules

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/policy"
)

// similarToolUnmet reports tools that no policy and no approval is about, although a rule names a tool
// with a similar name.
func similarToolUnmet(p *lint.Pass) {
	var unmet, met []listedTool
	add := func(t listedTool) {
		if found := t.find(p.Policies()); found != nil {
			if t.by = found; len(found.Match.Targets) > 0 {
				met = append(met, t)
			}
		} else if !t.own {
			unmet = append(unmet, t)
		}
	}
	space := &p.Agent.ActionSpace
	for _, t := range space.LocalTools {
		called := policy.Called{Kind: policy.Tool, Target: t.Alias}
		add(listedTool{at: t.AliasRange, own: t.Approval != nil, called: called})
	}
	for _, s := range space.MCPServers {
		for _, t := range lint.Entries(s.AllowedTools) {
			add(listedTool{at: t.NameRange, own: t.Approval != nil || s.Approval != nil, called: policy.Called{
				Kind: policy.MCPTool, Target: t.Name, Server: s.Alias, ServerRef: s.ServerRef,
			}})
		}
	}
	for _, t := range unmet {
		i := slices.IndexFunc(met, func(m listedTool) bool { return similar(t.called.Target, m.called.Target) })
		if i < 0 {
			continue
		}
		p.Report(t.at, fmt.Sprintf("no rule is about %q, although rule %s is about %q",
			t.called.Target, met[i].by.ID, met[i].called.Target),
			lint.Expected("a rule that names it too, or a pattern such as delete_*"),
			lint.Related(met[i].at, "this one"))
	}
}

// listedTool is a tool that an agent's file lists.
type listedTool struct {
	called policy.Called
	at     diag.Range
	own    bool         // the file says whether it needs an approval
	by     *policy.Rule // a rule that is about it
}

// find returns a rule whose match selects the tool, preferably one that names its targets. Exceptions
// don't matter: their author has thought of the tool.
func (t *listedTool) find(policies []*policy.Policy) *policy.Rule {
	var found *policy.Rule
	for _, pol := range policies {
		for i := range pol.Rules {
			if r := &pol.Rules[i]; r.Match.Target(t.called) && (found == nil || len(found.Match.Targets) == 0) {
				found = r
			}
		}
	}
	return found
}

// variants are words that a variant of a tool has in addition to the words of its name.
const variants = " all async batch bulk by force id immediate many multi multiple new now quick v "

// similar reports whether a name has the same words as another one, in any order and spelling, or those
// and words of a variant.
func similar(name, other string) bool {
	if name == other {
		return false
	}
	words, of := wordsOf(name), wordsOf(other)
	if len(of) == 0 {
		return false
	}
	for _, w := range of {
		at := slices.Index(words, w)
		if at < 0 {
			return false
		}
		words = slices.Delete(words, at, at+1)
	}
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(variants, " "+w+" ") })
}

// wordsOf splits a name at signs, digits and capitals: lower-case words without the s of a plural.
func wordsOf(name string) []string {
	var b strings.Builder
	previous := ' '
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r):
			b.WriteByte(' ')
		case unicode.IsUpper(r) && unicode.IsLower(previous):
			b.WriteByte(' ')
			fallthrough
		default:
			b.WriteRune(unicode.ToLower(r))
		}
		previous = r
	}
	words := strings.Fields(b.String())
	for i, w := range words {
		if len(w) > 3 && !strings.HasSuffix(w, "ss") {
			words[i] = strings.TrimSuffix(w, "s")
		}
	}
	return words
}
