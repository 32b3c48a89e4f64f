package condition

import (
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/webhost"
)

// The operators that look at the host of an address.
const (
	Host    Op = "host"
	NotHost Op = "not_host"
)

// site holds for the addresses of its hosts, or for the readable addresses of others. It is
// unknown for texts that are not readable as an address.
type site struct {
	name    Op
	meaning string
	named   words
	not     bool
}

func (s site) op() Op { return s.name }

func (s site) means() string { return s.meaning }

func (s site) words() words { return s.named }

func (s site) slips() []Op { return map[Op][]Op{Host: {NotHost}, NotHost: {Host}}[s.name] }

func (s site) operand() operand { return someTexts{check: checkHost} }

func (s site) negative() bool { return false }

func (s site) expression(string) (string, bool) { return "", false }

// checkHost returns what is wrong with a host in a file.
func checkHost(text string) (fault, expected string) {
	if _, ok := hostPattern(text); ok {
		return "", ""
	}
	return "this is not the name of a host as addresses are compared with it",
		`a host in lower-case ASCII without scheme and port, or "*." and one for all hosts below it`
}

// hostPattern splits a host in a file into its name and whether it matches all subdomains.
func hostPattern(text string) (below, ok bool) {
	name, below := strings.CutPrefix(text, "*.")
	canonical, ok := webhost.Canonical(name)
	return below, ok && canonical == name
}

func (s site) compare(t *Test, with compiling) (comparison, bool) {
	hosts, ok := textsOf(t)
	if !ok || slices.ContainsFunc(hosts, func(h string) bool { _, ok := hostPattern(h); return !ok }) {
		return comparison{}, false
	}
	list := enumerate(quoted(hosts), " or ")
	in := hostFact("in", hosts, true, [2]string{"is an address of " + list, "is a text that is no address of " + list})
	out := hostFact("out", hosts, false, [2]string{
		"is an address of another host than " + list, "is a text that is no address, or one of " + list,
	})
	return comparison{texts: twoFacts(in, out, s.not, with.sem.OnMismatch)}, true
}

// twoFacts is the test of texts for which one of two facts holds, and which is unknown for those
// for which none does. It holds for the first fact or, if not is set, for the second.
func twoFacts(in, out *pattern, not bool, unread Silence) textTest {
	if not {
		in, out = out, in
	}
	return &either{in, out, unread}
}

type either struct {
	holds, fails *pattern
	unread       Silence
}

func (e *either) truth(text string) Truth {
	switch {
	case e.holds.is(text):
		return True
	case e.fails.is(text):
		return False
	}
	return e.unread.truth()
}

func (e *either) set(level Truth) texts {
	if level == Unknown && e.unread == Ask {
		return e.fails.among(true)
	}
	return e.holds.among(false)
}

func (e *either) cost() int { return 2*longList + 2 }

// hostFact holds for addresses of some hosts, or for addresses of all others.
func hostFact(kind string, hosts []string, in bool, named [2]string) *pattern {
	exact, above := map[string]bool{}, map[string]bool{}
	for _, h := range hosts {
		if name, below := strings.CutPrefix(h, "*."); below {
			above[name] = true
		} else {
			exact[h] = true
		}
	}
	key := strings.Join(slices.Compact(slices.Sorted(slices.Values(hosts))), " ")
	f := &fact{family: hostNames{}, about: hosts}
	if in {
		f.samples = []string{"https://" + strings.Replace(hosts[0], "*.", "www.", 1) + "/"}
	}
	return &pattern{
		text:   key,
		source: "host " + kind + "\x00" + key,
		is: func(text string) bool {
			host, ok := webhost.Of(text)
			return ok && (exact[host] || isBelow(host, above)) == in
		},
		fact:  f,
		named: named,
	}
}

// isBelow reports whether a host is below one of some others.
func isBelow(host string, others map[string]bool) bool {
	for rest := host; ; {
		_, after, ok := strings.Cut(rest, ".")
		if !ok {
			return false
		}
		if others[after] {
			return true
		}
		rest = after
	}
}

// hostNames is the family of facts about the host of an address.
type hostNames struct{}

// Expressions of addresses. Every address that is readable matches maybeAddress, and every text
// that matches plainAddress with the name of a host is readable and has that host.
const (
	scheme       = `\A(?i:https?|wss?|ftp)://`
	rest         = `(?::[0-9]{0,4})?(?:[/?#][!-\[\]-~]*)?\z`
	anyName      = `[a-z][a-z0-9]{0,12}(?:\.[a-z][a-z0-9]{0,12}){0,3}`
	maybeAddress = scheme + `[^/?#\\@%\s]+(?:[/?#][^\\\s]*)?\z`
)

// cells returns a cell for each host and for the hosts below each, one for other hosts and one for
// texts that are no address.
func (hostNames) cells(facts []*fact) []textCell {
	var names, bases []string
	for _, f := range facts {
		for _, h := range f.about.([]string) {
			name, below := strings.CutPrefix(h, "*.")
			names = append(names, name)
			if below {
				bases = append(bases, name)
			}
		}
	}
	slices.Sort(names)
	slices.Sort(bases)
	fresh := freshLabel(names)

	cells := []textCell{{sample: "", known: true, certain: certainly(`\A[^:/]*\z`, `\A[^/]*\z`, `\A(?s:.*)\\(?s:.*)\z`),
		possible: possibly(`(?s:.*)`, scheme+anyName+rest)}}
	for _, name := range slices.Compact(names) {
		cells = append(cells, textCell{
			sample: "https://" + name + "/", known: true,
			certain: certainly(scheme + quoteFold(name) + rest), possible: possibly(maybeHost(name)),
		})
	}
	for _, base := range slices.Compact(bases) {
		under := quoteFold("." + base)
		cells = append(cells, textCell{
			sample: "https://" + fresh + "." + base + "/", known: true,
			certain:  certainly(scheme+anyName+under+rest, scheme+fresh+`[a-z0-9]{0,12}`+under+rest),
			possible: possibly(maybeHost("*." + base)),
		})
	}
	return append(cells, textCell{
		sample: "https://" + fresh + "/", known: true,
		certain:  certainly(scheme+anyName+rest, scheme+fresh+`[a-z0-9]{0,12}(?:\.com)?`+rest),
		possible: possibly(maybeAddress),
	})
}

// freshLabel returns a beginning of a label that no name has.
func freshLabel(names []string) string {
	fresh := "x"
	for slices.ContainsFunc(names, func(n string) bool { return strings.Contains("."+n, "."+fresh) }) {
		fresh += "q"
	}
	return fresh
}

// maybeHost matches every address that has a host: in ASCII in any case, or with any other
// character, because many of them are read as letters.
func maybeHost(host string) string {
	name, below := strings.CutPrefix(host, "*.")
	ascii := quoteFold(name) + `\.?`
	switch {
	case strings.HasPrefix(name, "["):
		ascii = `\[[0-9a-fA-F:.]+\]`
	case below:
		ascii = `[^/?#\\@%\s]+` + quoteFold("."+name) + `\.?`
	}
	return scheme + `(?:` + ascii + `|[^/?#\\@%\s]*[^\x00-\x7F][^/?#\\@%\s]*)(?::[0-9]*)?(?:[/?#][^\\\s]*)?\z`
}

// quoteFold quotes a name in ASCII for an expression that ignores its case.
func quoteFold(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z':
			b.WriteString("[" + string(rune(c)) + string(rune(c-'a'+'A')) + "]")
		case c >= '0' && c <= '9' || c == '_':
			b.WriteByte(c)
		default:
			b.WriteString(`\` + string(rune(c)))
		}
	}
	return b.String()
}
