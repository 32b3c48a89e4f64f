package schema

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// isExtension reports whether a name is reserved for vendors.
func isExtension(name string) bool { return strings.HasPrefix(name, "x-") }

// spelling is a name in a normalized form, as an inattentive person would read it.
type spelling struct {
	words  []string // in small ASCII letters, as far as they pass for such
	joined string   // the words without anything between them
}

// readName normalizes a name: letters of other alphabets become the ASCII letters that they look
// like, accents and invisible characters are removed, and the name is split at signs, spaces and
// capitals (requireApproval).
func readName(name string) spelling {
	var words []string
	var word []rune
	var cases []bool // whether each letter of the word is a capital
	end := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
		}
		word, cases = nil, nil
	}
	for _, r := range norm.NFKD.String(name) {
		switch {
		case r >= 0x80 && isInvisible(r):
			continue
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
			continue
		}
		if plain, ok := safetext.Letter(r); ok {
			r = plain
		}
		capital := unicode.IsUpper(r)
		if n := len(word); n > 0 && capital && !cases[n-1] {
			end() // requireApproval
		} else if n > 1 && !capital && cases[n-1] && cases[n-2] {
			last := word[n-1] // HITLRequired
			word, cases = word[:n-1], cases[:n-1]
			end()
			word, cases = []rune{last}, []bool{true}
		}
		word, cases = append(word, r), append(cases, capital)
	}
	end()
	return spelling{words: words, joined: strings.Join(words, "")}
}

// isInvisible reports whether a character is not seen inside a word:
// accents that were split off, joiners, fillers and controls.
func isInvisible(r rune) bool {
	switch r {
	case '\u115f', '\u1160', '\u3164', '\uffa0', '\u2800': // fillers and blanks that count as letters or signs
		return true
	}
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Cc, unicode.Co)
}

// isApproval reports whether the name alone says that a person must be asked.
func (n spelling) isApproval(value *yamldoc.Node) bool {
	if n.isState() {
		return false
	}
	return slices.ContainsFunc(append(n.words[:len(n.words):len(n.words)], n.joined), saysApproval) ||
		n.saysLoop() || n.saysAsk() || isScalar(value) && n.saysHuman()
}

// isState reports whether a name describes what has happened (approved_by) and not a requirement.
func (n spelling) isState() bool {
	return (strings.Contains(n.joined, "approved") || strings.Contains(n.joined, "confirmed")) &&
		!slices.ContainsFunc(n.words, isNeed) && !strings.HasPrefix(n.joined, "require")
}

// saysApproval reports whether a word, or several joined words, mean an approval.
func saysApproval(word string) bool {
	switch word {
	case "hitl", "hil", "consent", "consents", "signoff", "signoffs", "foureyes", "interrupt", "interrupts",
		"approving", "approvers":
		return true
	}
	if strings.Contains(word, "approval") || strings.Contains(word, "approve") ||
		strings.Contains(word, "confirmation") || strings.HasPrefix(word, "confirm") ||
		strings.HasSuffix(word, "confirm") || nearApproval(word) || diag.Distance(word, "confirmation") <= 2 {
		return true
	}
	for _, affix := range []string{
		"requires", "require", "required", "needs", "need", "needed", "must", "human", "user", "manual", "pre", "ask",
		"policy", "mode", "s",
	} {
		rest, ok := strings.CutPrefix(word, affix)
		if !ok {
			rest, ok = strings.CutSuffix(word, affix)
		}
		if ok && (nearApproval(rest) || rest == "hitl" || rest == "consent" || rest == "signoff") {
			return true
		}
	}
	return false
}

// nearApproval reports whether a word is a misspelt "approval" or "approve": it has at most two
// mistakes, or only its vowels and doubled letters differ. The function lists other words that are
// equally similar.
func nearApproval(word string) bool {
	switch {
	case len(word) < 5, word == "approach", word == "approved", word == "removal":
		return false
	case diag.Distance(word, approvalField) <= 2, len(word) > 5 && diag.Distance(word, "approve") <= 1:
		return true
	}
	return word[0] == 'a' && consonants(word) == consonants(approvalField)
}

// consonants returns a word without vowels and without doubled letters.
func consonants(word string) string {
	var out []byte
	for i := range len(word) {
		c := word[i]
		if strings.IndexByte("aeiou", c) >= 0 || len(out) > 0 && out[len(out)-1] == c {
			continue
		}
		out = append(out, c)
	}
	return strings.TrimSuffix(string(out), "s")
}

// saysLoop reports whether a name is one such as human_in_the_loop.
func (n spelling) saysLoop() bool {
	return strings.Contains(n.joined, "intheloop") || strings.Contains(n.joined, "inloop") ||
		slices.Contains(n.words, "loop") && slices.ContainsFunc(n.words, isHuman) ||
		strings.Contains(n.joined, "humanloop")
}

// saysAsk reports whether a name is one such as ask, ask_user,
// always_ask or gate.
func (n spelling) saysAsk() bool {
	switch n.joined {
	case "ask", "asks", "gate", "gated", "gates", "gating", "twopersonrule", "dualcontrol":
		return true
	}
	if len(n.words) < 2 {
		return false
	}
	first, second := n.words[0], n.words[1]
	last := n.words[len(n.words)-1]
	if (last == "ask" || last == "asks") && slices.Contains([]string{"always", "must", "should", "please"}, first) {
		return true
	}
	switch second {
	case "if", "when", "before", "first", "always", "me", "every", "permission", "permissions", "mode", "policy":
		return first == "ask" || first == "asks"
	case "off", "eyes":
		return first == "sign" || first == "four"
	}
	return (first == "ask" || first == "asks") && isHuman(second)
}

// saysHuman reports whether a name says that a person is needed, such
// as human_review, requires_permission or wait_for_user.
func (n spelling) saysHuman() bool {
	need := slices.IndexFunc(n.words, isNeed)
	human := slices.IndexFunc(n.words, isHuman)
	act := slices.IndexFunc(n.words, isAct)
	switch {
	case human >= 0 && act >= 0, act >= 0 && slices.Contains(n.words, "manual"):
		return true
	case need >= 0 && act >= 0:
		return true
	}
	// "required_user_id" and "user_prompt" are data: the person comes last.
	return need >= 0 && human > need && human == len(n.words)-1
}

func isNeed(word string) bool {
	switch word {
	case "require", "requires", "required", "requiring", "need", "needs", "needed", "must", "mandatory", "ask",
		"asks", "await", "awaits", "wait", "waits", "pause", "pauses", "prompt", "prompts", "force", "hold", "gate":
		return true
	}
	return false
}

func isHuman(word string) bool {
	switch word {
	case "human", "humans", "user", "users", "person", "people", "operator", "admin", "owner", "manager",
		"supervisor", "reviewer", "reviewers":
		return true
	}
	return false
}

// isAct reports whether a word names an action of a person on a call.
func isAct(word string) bool {
	switch word {
	case "review", "reviews", "permission", "authorization", "authorisation", "acknowledgement", "acknowledgment",
		"oversight", "verification", "intervention", "supervision", "check", "signature":
		return true
	}
	return false
}

// isWeakApproval reports whether a name means an approval within an entry, although it means
// something else elsewhere.
func (n spelling) isWeakApproval(value *yamldoc.Node) bool {
	switch n.joined {
	case "review", "reviews", "reviewer", "reviewers":
		return true
	case "human", "humans", "manual", "supervised", "supervision", "oversight", "permission", "guarded":
		return value != nil && (value.Kind == yamldoc.Bool || value.Kind == yamldoc.Null)
	}
	return false
}

// asksByValue reports whether a field about permissions has a value
// that says "ask", such as permission: ask.
func asksByValue(n spelling, value *yamldoc.Node) bool {
	about := slices.ContainsFunc(n.words, func(word string) bool {
		switch word {
		case "permission", "permissions", "policy", "mode", "access", "decision", "effect", "behavior", "behaviour",
			"action", "default", "execution", "guardrail", "guardrails", "safety", "security", "on":
			return true
		}
		return false
	})
	return about && anyScalar(value, func(text string) bool {
		v := readName(text)
		switch v.joined {
		case "ask", "askuser", "askfirst", "alwaysask", "askalways", "prompt", "manual", "onrequest", "approval":
			return true
		}
		return len(v.words) <= 4 && v.isApproval(nil)
	})
}

// part returns the part of an approval that a name means, or an empty string.
func (n spelling) part() string {
	switch j := n.joined; {
	case j == "conditions", diag.Distance(j, conditionField) <= 2:
		return conditionField
	case diag.Distance(j, "argsmatch") <= 2, j == "argumentsmatch", j == "argumentmatch", j == "matchargs",
		j == "paramsmatch":
		return argsMatchField
	case diag.Distance(j, "messagetemplate") <= 3:
		return templateField
	}
	return ""
}

// isToolList reports whether a field is meant as a list of tools or skills that may, or may not, be
// called.
func (n spelling) isToolList(value *yamldoc.Node) bool {
	if diag.Distance(n.joined, "allowedtools") <= 3 || diag.Distance(n.joined, "allowedskills") <= 3 {
		return true
	}
	if isScalar(value) {
		return false // disabled: true
	}
	switch n.joined {
	case "tools", "tool", "skills", "skill", "functions", "operations", "permitted", "safelist", "only":
		return true
	}
	restricts := slices.ContainsFunc(n.words, func(word string) bool {
		return hasStem(word, "allow", "permit", "enabl", "includ", "only", "white", "expos",
			"select") || deniesByName(word)
	})
	return restricts && (len(n.words) == 1 || slices.ContainsFunc(n.words, func(word string) bool {
		switch word {
		case "tool", "tools", "skill", "skills", "function", "functions", "operation", "operations", "method",
			"methods", "list":
			return true
		}
		return false
	}))
}

// denies reports whether a list of tools names those that may not be
// called.
func (n spelling) denies() bool { return slices.ContainsFunc(n.words, deniesByName) }

func deniesByName(word string) bool {
	return hasStem(word, "deny", "deni", "block", "disallow", "exclud", "disabl", "forbid", "black", "restrict")
}

func hasStem(word string, stems ...string) bool {
	return slices.ContainsFunc(stems, func(stem string) bool { return strings.HasPrefix(word, stem) })
}

// isScalar reports whether a value is no list and no mapping.
func isScalar(n *yamldoc.Node) bool {
	return n == nil || n.Kind != yamldoc.Sequence && n.Kind != yamldoc.Mapping
}

// anyScalar reports whether any text below a value passes a test.
func anyScalar(n *yamldoc.Node, test func(string) bool) bool {
	if n.Kind == yamldoc.String && len(n.Text) <= 64 && test(n.Text) {
		return true
	}
	return slices.ContainsFunc(n.Items, func(item *yamldoc.Node) bool { return anyScalar(item, test) }) ||
		slices.ContainsFunc(n.Fields, func(f yamldoc.Field) bool { return anyScalar(f.Value, test) })
}
