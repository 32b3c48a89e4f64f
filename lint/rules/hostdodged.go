package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/value"
)

// hostDodged reports patterns for hosts that another spelling of the same address can avoid.
func hostDodged(p *lint.Pass) {
	for c, m := range p.Matchers() {
		if c.Asks() {
			judgeHostDodged(p, c, m)
		}
	}
}

func judgeHostDodged(p *lint.Pass, c lint.Condition, m *condition.Matcher) {
	i := slices.IndexFunc(m.Tests, func(t condition.Test) bool {
		expression, searches := t.Expression()
		return searches && anchored(expression)
	})
	places, fault := condition.Places(c.Use, m.Key)
	if i < 0 || fault != "" || !speaksOfHosts(m.Key) {
		return
	}
	matching, witness := p.Analyzer(c.Use).SatisfiableGroup(&condition.Group{Matchers: []condition.Matcher{*m}})
	if matching != condition.Yes {
		return
	}
	address := textAt(places, witness)
	if !hostAtEnd(address) {
		return
	}
	for _, spelling := range spellings(address) {
		if letsThrough(p, c, m.Key, places[0], spelling) {
			p.Report(
				m.Tests[i].Range,
				fmt.Sprintf(
					"%q does not match, leads to the same host as %q, and is let through",
					spelling,
					address,
				),
				lint.Expected("not_in with the hosts that need no approval"),
			)
			return
		}
	}
}

// letsThrough reports whether a call with this text for a key can be let through.
func letsThrough(p *lint.Pass, c lint.Condition, key string, place []string, text string) bool {
	alone := with(value.Value{Kind: value.Object}, place, text)
	rest := &condition.Expr{Range: c.Range}
	for _, g := range c.Groups {
		left, possible := remaining(p, c.Use, g, key, alone)
		if possible {
			rest.Groups = append(rest.Groups, left)
		}
	}

	others := value.Value{Kind: value.Object}
	if len(rest.Groups) > 0 {
		var through condition.Verdict
		if through, others = p.Analyzer(c.Use).CanBeFalse(rest); through != condition.Yes {
			return false
		}
	}

	truth, err := p.Evaluate(c.Use, c.Expr, with(others, place, text))
	return err == nil && truth == condition.False
}

// remaining returns the tests of a group that are still undecided when one key is known.
// possible is false if the known key already fails.
func remaining(
	p *lint.Pass, use condition.Use, g condition.Group, key string, known value.Value,
) (left condition.Group, possible bool) {
	left.Range = g.Range
	for _, m := range g.Matchers {
		if m.Key != key {
			left.Matchers = append(left.Matchers, m)
			continue
		}
		truth, err := p.Evaluate(
			use,
			&condition.Expr{Groups: []condition.Group{{Matchers: []condition.Matcher{m}}}},
			known,
		)
		if err != nil || truth == condition.False {
			return left, false
		}
		if truth == condition.Unknown {
			left.Matchers = append(
				left.Matchers,
				condition.Matcher{Key: key, Tests: []condition.Test{{Op: condition.Unreadable}}},
			)
		}
	}

	return left, true
}

// anchored reports whether a pattern matches only at the end of a text.
func anchored(pattern string) bool {
	pattern = strings.TrimRight(pattern, ")")
	return strings.HasSuffix(pattern, "$") && !strings.HasSuffix(pattern, `\$`) ||
		strings.HasSuffix(pattern, `\z`)
}

// speaksOfHosts reports whether the last name in a key has a word for addresses or hosts.
func speaksOfHosts(key string) bool {
	name := key[strings.LastIndexByte(key, '.')+1:]
	return slices.ContainsFunc(words.FindAllString(name, -1), func(w string) bool {
		return slices.Contains(hosts, strings.ToLower(w))
	})
}

// hosts lists words in the names of arguments that hold hosts.
var hosts = strings.Fields("url urls uri href link endpoint origin website webhook host hostname domain fqdn")

// words matches the words of names such as base_url, baseURL and BaseUrl.
var words = regexp.MustCompile(`[A-Z]+s?(?:[^a-z]|$)|[A-Z]?[a-z]+`)

// textAt returns the text that a witness has at one of a key's places, or "".
func textAt(places [][]string, witness value.Value) string {
	for _, place := range places {
		if v, ok := witness.Get(place...); ok && v.Kind == value.String {
			return v.Text
		}
	}
	return ""
}

// with returns an object with a text at a place. It creates the objects on the way.
func with(v value.Value, place []string, text string) value.Value {
	if len(place) == 0 {
		return value.Value{Kind: value.String, Text: text}
	}
	members := slices.Clone(v.Members)
	i := slices.IndexFunc(members, func(m value.Member) bool { return m.Key == place[0] })
	if i < 0 {
		i, members = len(members), append(members, value.Member{Key: place[0]})
	}
	members[i].Value = with(members[i].Value, place[1:], text)
	return value.Value{Kind: value.Object, Members: members}
}

// host matches an address that ends in a host of at least two labels.
var host = regexp.MustCompile(`(?:^|[./@])[A-Za-z0-9-]+\.([A-Za-z]{2,})$`)

// hostAtEnd reports whether an address ends in the name of a host and not in the name of a
// file.
func hostAtEnd(address string) bool {
	m := host.FindStringSubmatch(address)
	return m != nil && !slices.Contains(filesHostDodged, strings.ToLower(m[1]))
}

// filesHostDodged lists file extensions that are rare as the end of a host.
var filesHostDodged = strings.Fields(
	"exe msi dll bin dmg iso apk jar zip gz tgz tar rar pdf doc docx xls xlsx csv txt md json xml yaml yml html htm " +
		"php asp aspx jsp js mjs ts css png jpg jpeg gif svg ico sh py rb rs go sql git",
)

// spellings returns addresses of the same host, the most common first.
func spellings(address string) []string {
	dot := strings.LastIndexByte(address, '.')
	return []string{address + "/", address + ":443", address + ".", address[:dot] + "%2E" + address[dot+1:]}
}
