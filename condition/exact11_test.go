package condition

import (
	"fmt"
	"strings"
	"testing"
)

// The analyzer compares the operators of policies 1.1 exactly, also with each other and with patterns.
func TestOperatorsOfPolicies11AreCompared(t *testing.T) {
	for _, c := range []struct {
		x, y string
		want Verdict // whether y asks whenever x does
	}{
		{"exists: true", "exists: true", Yes},
		{"exists: true", "exists: false", No},
		{"exists: false", "ne: 5", Yes}, // a missing argument is unknown, and null another value
		{"pattern: '^a'", "starts_with: a", Yes},
		{"starts_with: a", "pattern: '^a'", Yes},
		{"starts_with: ab", "starts_with: a", Yes},
		{"starts_with: a", "starts_with: [ab, b]", No},
		{"ends_with: .com", "pattern: '[.]com$'", Yes},
		{"pattern: '[.]com$'", "ends_with: .com", Yes},
		{"not_pattern: a", "pattern: b", No},
		{"not_pattern: a", "not_pattern: ab", Yes},
		{"not_pattern: ab", "not_pattern: a", No},
		{"length: {gt: 5}", "length: {gte: 6}", Yes},
		{"length: {gt: 5}", "length: {gt: 6}", No},
		{"length: {gt: 50000}", "length: {gt: 5000}", Yes},
		{"length: {gt: 5000}", "length: {gt: 50000}", No},
		{"length: {gt: 3, lt: 4}", "in: []", No},
		{"length: {lt: 3}", "not_pattern: '...'", Yes},
		{"length: {gt: 2}, pattern: '^..?$'", "length: {gt: 99}, pattern: '^..?$'", No},
		{"in: [abc]", "length: {lte: 3}", No}, // objects
		{"path_inside: /srv/data", "path_inside: /srv", Yes},
		{"path_inside: /srv", "path_inside: /srv/data", No},
		{"path_inside: [/a, /b]", "path_inside: [/b, /c, /a]", Yes},
		{"path_inside: /srv/../etc", "path_inside: /etc", Yes},
		{"path_inside: /etc", "path_inside: ['/srv/../etc', x]", Yes},
		{"not_path_inside: /srv", "not_path_inside: /srv/data", Yes},
		{"not_path_inside: /srv/data", "not_path_inside: /srv", No},
		{"not_path_inside: /srv", "path_inside: /srv", No},
		{"path_inside: /srv", "starts_with: /srv", No}, // /x/../srv
		{"path_inside: /srv", "starts_with: /", No},    // unreadable texts ask
		{"starts_with: /srv/", "path_inside: /srv", No},
		{"in: [/srv/x, /srv]", "path_inside: /srv", Yes},
		{"path_inside: .", "path_inside: src", No},
		{"path_inside: src", "path_inside: .", Yes},
		{"host: a.com", "host: [a.com, b.com]", Yes},
		{"host: [a.com, b.com]", "host: a.com", No},
		{"host: '*.b.a.com'", "host: '*.a.com'", Yes},
		{"host: '*.a.com'", "host: '*.b.a.com'", No},
		{"host: b.a.com", "host: '*.a.com'", Yes},
		{"host: '*.a.com'", "host: a.com", No},
		{"not_host: '*.a.com'", "not_host: b.a.com", Yes},
		{"not_host: b.a.com", "not_host: '*.a.com'", No},
		{"host: a.com", "not_host: a.com", No},
		{"host: a.com", "pattern: 'a[.]com'", No}, // other letters are read as these
		{"host: 127.0.0.1", "host: ['127.0.0.1', '[::1]']", Yes},
		{"host: '[::1]'", "host: 127.0.0.1", No},
		{"in: ['https://a.com/x']", "host: a.com", Yes},
		{"in: ['https://a.com/x']", "host: b.com", No},
		{"any: {gt: 5}", "any: {gt: 3}", Yes},
		{"any: {gt: 3}", "any: {gt: 5}", No},
		{"none: {gt: 5}", "all: {lte: 5}", Yes},
		{"all: {lte: 5}", "none: {gt: 5}", Yes},
		{"all: {gt: 5}", "any: {gt: 5}", No},
		{"all: {gt: 5}, length: {gt: 0}", "any: {gt: 5}", Yes},
		{"any: {gt: 5}", "none: {lte: 5}", No},
		{"any: {gt: 5}, length: {lte: 1}", "all: {gt: 5}", Yes},
		{"any: x", "any: {in: [x, y]}", Yes},
		{"any: {in: [x, y]}, none: x", "any: y", Yes},
		{"any: {host: a.com}", "any: {host: [a.com, b.com]}", Yes},
		{"any: {length: {gt: 5}}", "any: {length: {gt: 6}}", No},
		{"any: {where: {n: {gt: 5}}}", "any: {where: {n: {gt: 3}}}", Yes},
		{"any: {where: {n: {gt: 5}, c: x}}", "any: {where: {n: {gt: 5}}}", Yes},
		{"any: {where: {n: {gt: 5}}}", "any: {where: {n: {gt: 5}, c: x}}", No},
		{"all: {where: {t: {any: x}}}", "all: {where: {t: {any: {in: [x, y]}}}}", Yes},
		{"all: {where: {t: {any: {in: [x, y]}}}}", "all: {where: {t: {any: x}}}", No},
		{"starts_with: h", "not_host: a.com, length: {gt: 3}", No},
		{"money: {currency: c, gt: {EUR: 5}}", "money: {currency: c, gt: {EUR: 4}}", Yes},
		{"money: {currency: c, gt: {EUR: 4}}", "money: {currency: c, gt: {EUR: 5}}", No},
		{"money: {currency: c, gt: {EUR: 5}}", "money: {currency: c, gt: {EUR: 5, USD: 5}}", No},
		{"money: {currency: c, gt: {EUR: 5}, otherwise: false}", "money: {currency: c, gt: {EUR: 5, USD: 5}}", Yes},
		{"money: {currency: c, gt: {JPY: 5}, minor_units: true}", "money: {currency: c, gt: {JPY: 5}}", Yes},
		{"money: {currency: c, gt: {EUR: 5}, minor_units: true}", "money: {currency: c, gte: {EUR: 500.5}}", No},
		{"money: {currency: c, gt: {EUR: 5}}", "money: {currency: d, gt: {EUR: 5}}", No},
		{"money: {currency: o.c, gt: {EUR: 5}}", "money: {currency: o.c, gt: {EUR: 5}, otherwise: true}", Yes},
	} {
		x, y := sound(t, match("a: {"+c.x+"}")), sound(t, match("a: {"+c.y+"}"))
		verdict, witness := NewAnalyzer(Governance, Semantics{}, 0).Covers(x, y)
		if verdict != c.want {
			t.Errorf("%s covered by %s: %s, want %v", c.x, c.y, answer(verdict, witness), c.want)
		}
		if verdict != No {
			continue
		}
		doc := string(witness.AppendJSON(nil))
		if asks, _ := eval(t, Governance, Semantics{}, x, doc); asks == False {
			t.Errorf("%s does not ask about the witness %s", c.x, doc)
		}
		if asks, _ := eval(t, Governance, Semantics{}, y, doc); asks != False {
			t.Errorf("%s asks about the witness %s", c.y, doc)
		}
	}
}

// Conditions over several keys and paths into lists.
func TestListsAreComparedWithTheirPlaces(t *testing.T) {
	for _, c := range []struct {
		x    string
		want Verdict // whether it can be true
	}{
		{"a: {length: {lt: 2}, ne: ''}, a.b: {exists: true}, d: {not_in: [1]}, d.e: 1", Yes},
		{"a: {all: {where: {b: {length: {lt: 1}}, b.c: 1}}, any: {where: {b.c: 1}}}", Yes},
		{"a: {length: {lte: 2}}, a.b: 1, a.c: 2", Yes},
		{"a: {length: {gte: 3}}, a.b: 1, a.c: 2", Yes},
		{"a: {length: {lt: 1}}, a.b: {exists: false}", Yes},
		{"a: {any: x}, a.b: 1", Yes}, // the key a.b itself
		{"a: {any: {where: {n: 1}}, length: {lt: 2}, none: {where: {n: 1}}}", No},
		{"a: {any: {where: {n: 1, m: 2}}, all: {where: {m: {gt: 2}}}}", No},
		{"a: {any: {where: {n: {length: {gt: 2}}, n.b: 1}}}", Yes},
		{"a: {any: {gt: 1, lt: 2}, length: {gt: 20000}}", Undecided},
		{"a: {all: x, none: x, length: {gt: 0}}", No},
		{"a: {all: x, none: x}", Yes},
		{"a: {any: 1, length: {gt: 4}}", Yes},
		{"a: {not_host: x.com, pattern: com}", Yes},
		{"a: {length: {gt: 2000000}, pattern: a}", Undecided},
		{"a: {length: {gt: 5000, lt: 2000000}, not_pattern: x}", Undecided},
		{"a: {length: {lt: 2}, not_host: x.com, path_inside: .}", No},
		{"a: {host: [" + strings.Repeat("x.com, ", 40) + "y.com], path_inside: [" +
			numbered("/p/", 600) + "]}", Undecided},
		{"a: {any: {money: {currency: c, gt: {EUR: 1}}}}", Undecided},
		{"a: {any: {money: {currency: c, gt: {EUR: 1}}}, exists: false}", Undecided},
	} {
		e := sound(t, match(c.x))
		verdict, witness := NewAnalyzer(ToolArgs, Semantics{}, 0).Satisfiable(e)
		if verdict != c.want {
			t.Errorf("%s: %s, want %v", c.x, answer(verdict, witness), c.want)
		}
		if verdict == Yes {
			if got, _ := eval(t, ToolArgs, Semantics{}, e, string(witness.AppendJSON(nil))); got != True {
				t.Errorf("%s: %s is %v", c.x, witness.AppendJSON(nil), got)
			}
		}
	}
}

func numbered(prefix string, n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(prefix, i))
	}
	return strings.Join(all, ", ")
}

// A parent's input has no literal keys with dots, so that its members count.
func TestMembersOfObjectsAreCounted(t *testing.T) {
	const members = "parent.input.a.b: {gt: 1}, parent.input.a.c: {exists: true}, parent.input.a.d: {ne: 1}, " +
		"parent.input.a.e.f: {exists: false}"
	for length, want := range map[string]Verdict{
		"lt: 3": No, "lte: 3": Yes, "gte: 3, lt: 5": Yes, "gte: 7, lt: 8": Yes, "gt: 20000": Undecided, "lt: 0": No,
	} {
		e := sound(t, match("parent.input.a: {length: {"+length+"}}, "+members))
		verdict, witness := NewAnalyzer(Delegation, Semantics{}, 0).Satisfiable(e)
		if verdict != want {
			t.Errorf("%s: %s, want %v", length, answer(verdict, witness), want)
		}
		if verdict == Yes {
			if got, _ := eval(t, Delegation, Semantics{}, e, string(witness.AppendJSON(nil))); got != True {
				t.Errorf("%s: %s is %v", length, witness.AppendJSON(nil), got)
			}
		}
	}
}

// Words for regions that the operators make.
func TestRegionsOfPolicies11HaveWords(t *testing.T) {
	for test, want := range map[string]string{
		"a: {starts_with: x}":                     `a begins with "x"`,
		"a: {not_pattern: x}":                     `a is a text that does not match "x"`,
		"a: {exists: true}":                       "a is given and not null",
		"a: {exists: false}":                      "a is missing or null",
		"a: {length: {gt: 2}}":                    "at least 3 characters",
		"a: {host: a.com}":                        `a is an address of "a.com"`,
		"a: {not_path_inside: /srv}":              `a is a path outside "/srv"`,
		"a: {any: {gt: 5}}":                       "a is a list of which some element (it > 5)",
		"a: {all: {where: {n: {gt: 5}}}}":         "each element (its n > 5)",
		"a: {money: {currency: c, gt: {EUR: 5}}}": `a > 5 and c is "EUR" in any case`,
	} {
		gate := Gate{Use: ToolArgs, When: sound(t, match(test)), Certain: true}
		cells, ok := NewComparison(0).Cells(Calls{NoParent: true}, nil, []Gate{gate})
		if !ok || len(cells) == 0 || !strings.Contains(cells[0].Region.String(), want) {
			t.Errorf("%s: %v %v, want %s", test, ok, cells[0].Region, want)
		}
	}
}

// A question about many hosts or paths is answered within the limits.
func TestManyHostsAreCompared(t *testing.T) {
	var hosts, paths []string
	for i := range 300 {
		hosts = append(hosts, fmt.Sprintf("'*.h%d.com', h%d.com", i, i))
		paths = append(paths, fmt.Sprintf("/p/%d", i))
	}
	for _, pair := range [][2]string{
		{"host: [" + strings.Join(hosts[1:], ", ") + "]", "host: [" + strings.Join(hosts, ", ") + "]"},
		{"path_inside: [" + strings.Join(paths[1:], ", ") + "]", "path_inside: [" + strings.Join(paths, ", ") + "]"},
	} {
		x, y := sound(t, match("a: {"+pair[0]+"}")), sound(t, match("a: {"+pair[1]+"}"))
		for want, question := range map[Verdict][2]*Expr{Yes: {x, y}, No: {y, x}} {
			verdict, witness := NewAnalyzer(ToolArgs, Semantics{}, 0).Covers(question[0], question[1])
			if verdict != want {
				t.Errorf("%.40s: %s, want %v", pair[0], answer(verdict, witness), want)
			}
		}
	}
}
