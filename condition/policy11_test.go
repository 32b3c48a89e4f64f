package condition

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/diag"
)

// The rows of the contract of policies 1.1 (docs/contracts/policy.md), operator by operator.
func TestOperatorsOfPolicies11(t *testing.T) {
	long := strings.Repeat("a", 63)
	check(t, Governance, Semantics{}, []row{
		// exists
		{match("a: {exists: true}"), `{"a":0}`, True, WhyMatched},
		{match("a: {exists: true}"), `{"a":[]}`, True, WhyMatched},
		{match("a: {exists: true}"), `{"a":null}`, False, ""},
		{match("a: {exists: true}"), `{}`, False, ""},
		{match("a: {exists: false}"), `{"a":""}`, False, ""},
		{match("a: {exists: false}"), `{"a":null}`, True, WhyMatched},
		{match("a: {exists: false}"), `{}`, True, WhyMatched},
		{match("a.b: {exists: false}"), `{"a":{"b":1}}`, False, ""},
		{match("a.b: {exists: false}"), `{"a":{}}`, True, WhyMatched},
		{match("a.b: {exists: true}"), `{"a.b":null,"a":{"b":1}}`, True, WhyMatched},
		{match("a.b: {exists: false}"), `{"a.b":null,"a":{"b":1}}`, True, WhyMatched}, // B2: of either
		{match("parent.input.a: {exists: false}"), `{}`, True, WhyMatched},            // C12: the input lacks it
		{match("parent.output.a: {exists: false}"), `{}`, Unknown, WhyNotAPath},
		{match("a: {ne: x}"), `{"a":null}`, True, WhyMatched}, // C11
		{match("a: {not_in: [x]}"), `{"a":null}`, True, WhyMatched},
		{match("a: {exists: true, gt: 5}"), `{"a":6}`, True, WhyMatched},
		{match("a: {exists: false, gt: 5}"), `{}`, Unknown, WhyMissingArgument},

		// not_pattern
		{match("a: {not_pattern: 'x$'}"), `{"a":"y"}`, True, WhyMatched},
		{match("a: {not_pattern: 'x$'}"), `{"a":"x"}`, False, ""},
		{match("a: {not_pattern: 'x$'}"), `{"a":"x \n"}`, False, ""},
		{match("a: {not_pattern: 'x$'}"), `{"a":1}`, Unknown, WhyTypeMismatch},
		{match("a: {not_pattern: 'x$'}"), `{"a":null}`, Unknown, WhyNullArgument},
		{match("a: {not_pattern: 'x$'}"), `{}`, Unknown, WhyMissingArgument},

		// starts_with, ends_with
		{match("a: {starts_with: 'x.'}"), `{"a":"x.y"}`, True, WhyMatched},
		{match("a: {starts_with: 'x.'}"), `{"a":"xay"}`, False, ""},
		{match("a: {starts_with: [b, x]}"), `{"a":"xa"}`, True, WhyMatched},
		{match("a: {starts_with: x}"), `{"a":" x"}`, False, ""},
		{match("a: {starts_with: x}"), `{"a":["x"]}`, Unknown, WhyTypeMismatch},
		{match("a: {starts_with: x}"), `{}`, Unknown, WhyMissingArgument},
		{match("a: {ends_with: '.com'}"), `{"a":"b.com"}`, True, WhyMatched},
		{match("a: {ends_with: '.com'}"), `{"a":"b.com\u00a0\n"}`, True, WhyMatched},
		{match("a: {ends_with: \".com \"}"), `{"a":"b.com "}`, True, WhyMatched},
		{match("a: {ends_with: '.com'}"), `{"a":"b.com.x"}`, False, ""},
		{match("a: {ends_with: ['.org', '.com']}"), `{"a":"b.COM"}`, False, ""},

		// length
		{match("a: {length: {gt: 2}}"), `{"a":"äöü"}`, True, WhyMatched},
		{match("a: {length: {gt: 2}}"), `{"a":"ab"}`, False, ""},
		{match("a: {length: {lte: 2}}"), `{"a":"ab "}`, False, ""}, // B3: the raw text
		{match("a: {length: {gte: 1, lt: 3}}"), `{"a":[1,2]}`, True, WhyMatched},
		{match("a: {length: {gte: 1, lt: 3}}"), `{"a":[]}`, False, ""},
		{match("a: {length: {gte: 2}}"), `{"a":{"x":1,"y":{"z":1}}}`, True, WhyMatched},
		{match("a: {length: {lt: 1e30}}"), `{"a":"x"}`, True, WhyMatched},
		{match("a: {length: {gt: 1e30}}"), `{"a":"x"}`, False, ""},
		{match("a: {length: {gt: 2}}"), `{"a":123}`, Unknown, WhyTypeMismatch},
		{match("a: {length: {gt: 2}}"), `{"a":true}`, Unknown, WhyTypeMismatch},
		{match("a: {length: {lt: 2}}"), `{"a":null}`, Unknown, WhyNullArgument},

		// host: readable forms (B4 to B7)
		{match("a: {host: example.com}"), `{"a":"https://example.com"}`, True, WhyMatched},
		{match("a: {host: example.com}"), `{"a":"HTTPS://Example.COM:/x"}`, True, WhyMatched},
		{match("a: {host: example.com}"), `{"a":"wss://example.com.:443?q=@"}`, True, WhyMatched},
		{match("a: {host: example.com}"), `{"a":"ftp://ｅxample。com#x@y"}`, True, WhyMatched},
		{match("a: {host: example.com}"), `{"a":"https://exam\u00adple.com"}`, True, WhyMatched},
		{match("a: {host: example.com}"), `{"a":"https://example.com:00080/"}`, True, WhyMatched},
		{match("a: {host: xn--strae-oqa.de}"), `{"a":"https://straße.de"}`, True, WhyMatched},
		{match("a: {host: strasse.de}"), `{"a":"https://straße.de"}`, False, ""},
		{match("a: {host: a_b-.com}"), `{"a":"https://a_b-.com"}`, True, WhyMatched},
		{match("a: {host: '[2001:db8::1]'}"), `{"a":"https://[2001:0DB8:0:0::1]:8/"}`, True, WhyMatched},
		{match("a: {host: 127.0.0.1}"), `{"a":"http://127.0.0.1/"}`, True, WhyMatched},
		{match("a: {host: '*.example.com'}"), `{"a":"https://a.b.example.com"}`, True, WhyMatched},
		{match("a: {host: '*.example.com'}"), `{"a":"https://example.com"}`, False, ""},
		{match("a: {host: '*.example.com'}"), `{"a":"https://xexample.com"}`, False, ""},
		{match("a: {host: [a.com, '*.b.com']}"), `{"a":"https://x.b.com"}`, True, WhyMatched},
		{match("a: {host: example.com}"), `{"a":"https://example.com.evil.org"}`, False, ""},
		{match("a: {not_host: example.com}"), `{"a":"https://evil.org/example.com"}`, True, WhyMatched},
		{match("a: {not_host: example.com}"), `{"a":"https://EXAMPLE.com"}`, False, ""},
		{match("a: {not_host: example.com}"), `{"a":"https://` + long + `.org"}`, True, WhyMatched},

		// path_inside (B10 to B13)
		{match("a: {path_inside: /srv}"), `{"a":"/srv"}`, True, WhyMatched},
		{match("a: {path_inside: /srv}"), `{"a":"//srv/./x/../y/"}`, True, WhyMatched},
		{match("a: {path_inside: /srv}"), `{"a":"/srv2"}`, False, ""},
		{match("a: {path_inside: /srv}"), `{"a":"/SRV"}`, False, ""},
		{match("a: {path_inside: /srv}"), `{"a":"/srv/../etc"}`, False, ""},
		{match("a: {path_inside: /srv}"), `{"a":"/../../srv/x"}`, True, WhyMatched}, // B11
		{match("a: {path_inside: '/srv//x/..'}"), `{"a":"/srv/y"}`, True, WhyMatched},
		{match("a: {path_inside: /}"), `{"a":"/etc"}`, True, WhyMatched},
		{match("a: {path_inside: .}"), `{"a":"src/main.go"}`, True, WhyMatched},
		{match("a: {path_inside: src}"), `{"a":"./src/x/.."}`, True, WhyMatched},
		{match("a: {path_inside: src}"), `{"a":"lib"}`, False, ""},
		{match("a: {path_inside: .}"), `{"a":"../x"}`, False, ""},
		{match("a: {path_inside: .}"), `{"a":"a/../../x/y"}`, False, ""}, // B12
		{match("a: {path_inside: .}"), `{"a":"x/~/y"}`, True, WhyMatched},
		{match("a: {path_inside: .}"), `{"a":"x/c:/y"}`, True, WhyMatched},
		{match("a: {path_inside: .}"), `{"a":"/x"}`, Unknown, WhyUnreadableText},
		{match("a: {path_inside: [., /x]}"), `{"a":"/x/y"}`, True, WhyMatched}, // B10
		{match("a: {path_inside: [., /x]}"), `{"a":"/y"}`, Unknown, WhyUnreadableText},
		{match("a: {not_path_inside: [., /x]}"), `{"a":"/y"}`, Unknown, WhyUnreadableText},
		{match("a: {not_path_inside: [., /x]}"), `{"a":"/x/y"}`, False, ""},
		{match("a: {not_path_inside: /srv}"), `{"a":"/etc"}`, True, WhyMatched},
		{match("a: {not_path_inside: .}"), `{"a":"../x"}`, True, WhyMatched},
		{match("a: {not_path_inside: /srv}"), `{}`, Unknown, WhyMissingArgument},

		// any, all, none (B14, B15)
		{match("a: {any: x}"), `{"a":["y","x"]}`, True, WhyMatched},
		{match("a: {any: x}"), `{"a":["y"]}`, False, ""},
		{match("a: {any: x}"), `{"a":["y",1]}`, Unknown, WhyElement},
		{match("a: {any: x}"), `{"a":[1,"x"]}`, True, WhyMatched},
		{match("a: {any: x}"), `{"a":[]}`, False, ""},
		{match("a: {any: x}"), `{"a":"x"}`, Unknown, WhyTypeMismatch},
		{match("a: {any: x}"), `{"a":{"0":"x"}}`, Unknown, WhyTypeMismatch},
		{match("a: {any: x}"), `{}`, Unknown, WhyMissingArgument},
		{match("a: {all: {gt: 1}}"), `{"a":[2,3]}`, True, WhyMatched},
		{match("a: {all: {gt: 1}}"), `{"a":[2,1,"x"]}`, False, ""},
		{match("a: {all: {gt: 1}}"), `{"a":[2,"x"]}`, Unknown, WhyElement},
		{match("a: {all: {gt: 1}}"), `{"a":[]}`, True, WhyMatched},
		{match("a: {none: {gt: 1}}"), `{"a":[]}`, True, WhyMatched},
		{match("a: {none: {gt: 1}}"), `{"a":[1,0]}`, True, WhyMatched},
		{match("a: {none: {gt: 1}}"), `{"a":[1,2,"x"]}`, False, ""},
		{match("a: {none: {gt: 1}}"), `{"a":[1,"x"]}`, Unknown, WhyElement},
		{match("a: {any: {exists: false}}"), `{"a":[1,null]}`, True, WhyMatched},
		{match("a: {any: {ne: x}}"), `{"a":["x",null]}`, True, WhyMatched},
		{match("a: {any: {gt: 1, lt: 5}}"), `{"a":[0,9]}`, False, ""},
		{match("a: {any: {where: {n: {gt: 1}, c: EUR}}}"), `{"a":[{"n":2,"c":"USD"},{"n":1,"c":"EUR"}]}`, False, ""},
		{match("a: {any: {where: {n: {gt: 1}, c: EUR}}}"), `{"a":[{"n":2,"c":"EUR"}]}`, True, WhyMatched},
		{match("a: {any: {where: {n: {gt: 1}}}}"), `{"a":[5]}`, Unknown, WhyElement},
		{match("a: {any: {where: {x.y: 1}}}"), `{"a":[{"x":{"y":1}}]}`, True, WhyMatched},
		{match("a: {any: {where: {x.y: 1}}}"), `{"a":[{"x.y":1}]}`, True, WhyMatched},
		{match("a: {all: {where: {t: {any: x}}}}"), `{"a":[{"t":["x"]},{"t":["y","x"]}]}`, True, WhyMatched},
		{match("a: {all: {where: {t: {exists: true}}}}"), `{"a":[{"t":null}]}`, False, ""},

		// money (B16 to B18)
		{match(euros("")), `{"n":5001,"c":"EUR"}`, True, WhyMatched},
		{match(euros("")), `{"n":5000,"c":"eUr"}`, False, ""},
		{match(euros("")), `{"n":5001,"c":"USD"}`, False, ""},
		{match(euros("")), `{"n":5001,"c":"EUR "}`, Unknown, WhyCurrency}, // B17
		{match(euros("")), `{"n":5001,"c":"GBP"}`, Unknown, WhyCurrency},
		{match(euros(", otherwise: true")), `{"n":1,"c":"GBP"}`, True, WhyMatched},
		{match(euros(", otherwise: false")), `{"n":9999}`, False, ""},
		{match(euros(", otherwise: true")), `{"n":1,"c":7}`, True, WhyMatched},
		{match(euros("")), `{"n":1}`, Unknown, WhyCurrency},
		{match(euros(", otherwise: true")), `{"n":"5001","c":"EUR"}`, Unknown, WhyTypeMismatch}, // B16
		{match(euros(", otherwise: false")), `{"c":"GBP"}`, Unknown, WhyMissingArgument},
		{match(euros("")), `{"n":5000.00000000000000000001,"c":"EUR"}`, Unknown, WhyRoundedNumber},
		{match(euros(", minor_units: true")), `{"n":500001,"c":"EUR"}`, True, WhyMatched},
		{match(euros(", minor_units: true")), `{"n":500000,"c":"EUR"}`, False, ""},
		{match("n: {money: {currency: c, gt: {JPY: 5, KWD: 5}, minor_units: true}}"),
			`{"n":6,"c":"JPY"}`, True, WhyMatched},
		{match("n: {money: {currency: c, gt: {JPY: 5, KWD: 5}, minor_units: true}}"),
			`{"n":5000,"c":"kwd"}`, False, ""},
		{match("n: {money: {currency: c, gt: {KWD: 0.5}, minor_units: true}}"),
			`{"n":501,"c":"KWD"}`, True, WhyMatched},
		{match("n: {money: {currency: c, gt: {XAU: 5}, minor_units: true, otherwise: false}}"), `{"n":6,"c":"XAU"}`,
			Unknown, WhyCurrency}, // B19
		{match("n: {money: {currency: c, gt: {EUR: 1}, lte: {EUR: 2}}}"), `{"n":2,"c":"EUR"}`, True, WhyMatched},
		{match("n: {money: {currency: c, gt: {EUR: 1}, lte: {EUR: 2}}}"), `{"n":3,"c":"EUR"}`, False, ""},
		{match("n: {money: {currency: p.c, gt: {EUR: 1}}}"), `{"n":3,"p":{"c":"EUR"}}`, True, WhyMatched},
		{match("n: {money: {currency: p.c, gt: {EUR: 1}}}"), `{"n":3,"p.c":"USD","p":{"c":"EUR"}}`, True, WhyMatched},
		{match("n: {money: {currency: p.c, gt: {EUR: 9}}}"),
			`{"n":3,"p.c":"USD","p":{"c":"EUR"}}`, Unknown, WhyRoundedNumber},
		{match("o.n: {money: {currency: o.c, gt: {EUR: 1}}}"), `{"o":{"n":3,"c":"EUR"}}`, True, WhyMatched},
		{match("l: {any: {money: {currency: c, gt: {EUR: 1}}}}"), `{"l":[1,3],"c":"EUR"}`, True, WhyMatched},
		{match("l: {any: {where: {n: {money: {currency: c, gt: {EUR: 1}}}}}}"),
			`{"l":[{"n":3,"c":"EUR"}]}`, True, WhyMatched},
	})

	for _, url := range []string{
		"example.com", "//example.com", "mailto:a@example.com", "https:example.com", "https:/example.com",
		"https://", "https:///x", "https://u@example.com", "https://u:p@example.com", "https://@example.com",
		"https://example.com:99999", "https://example.com:8x", "https://example.com:80:80", "https://exa%6dple.com",
		" https://example.com", "https://example.com ", "https://example.com/a b", "https://example.com/\\n",
		"https://example.com/\u00a0", "https://example.com/\u2028", "https://example.com\\\\@evil.org",
		"https://example.com/x\\\\y", "https://a..b", "https://.a", "https://a.com..", "https://a!b",
		"https://[::1%25eth0]",
		"https://[::1", "https://::1", "https://[1.2.3.4]", "https://127.1", "https://0x7f.1", "https://0x7f000001",
		"https://127.0.0.01", "https://2130706433", "https://a.1", "https://256.1.1.1", "https://xn--a",
		"https://xn--a-.com",
		"https://" + long + "a.com", "https://" + strings.Repeat("a.", 127) + "com", "gopher://example.com",
		"https://a\u0000b",
	} {
		for _, op := range []string{"host", "not_host"} {
			check(t, Governance, Semantics{}, []row{
				{match("a: {" + op + ": example.com}"),
					`{"a":"` + jsonEscapes.Replace(url) + `"}`, Unknown, WhyUnreadableText},
			})
		}
	}
	for _, path := range []string{"", "~", "~/x", "~u", "C:/x", "file:/x", "c:x", "a\\\\b", "/a\\\\b", "a\u0000",
		"/a\u0000b"} {
		for _, op := range []string{"path_inside", "not_path_inside"} {
			check(t, Governance, Semantics{}, []row{
				{match("a: {" + op + ": [., /]}"),
					`{"a":"` + jsonEscapes.Replace(path) + `"}`, Unknown, WhyUnreadableText},
			})
		}
	}
}

var jsonEscapes = strings.NewReplacer("\u0000", `\u0000`)

func euros(more string) string {
	return "n: {money: {currency: c, gt: {EUR: 5000, USD: 5500}" + more + "}}"
}

// A13: no_match turns the unknown of a whole matcher into false, also that of negative operators.
func TestOwnersMayTurnUnknownIntoFalse(t *testing.T) {
	missing, mismatch := Semantics{OnMissing: NoMatch}, Semantics{OnMismatch: NoMatch}
	for _, m := range []string{
		"not_pattern: x", "not_host: a.com", "not_path_inside: /a", "none: x", "all: x", "length: {lt: 5}",
		"money: {currency: c, lt: {EUR: 5}, otherwise: true}", "starts_with: x",
	} {
		check(t, Governance, missing, []row{{match("a: {" + m + "}"), `{}`, False, ""}})
		check(t, Governance, missing, []row{{match("a: {" + m + "}"), `{"a":true}`, Unknown, WhyTypeMismatch}})
		check(t, Governance, mismatch, []row{{match("a: {" + m + "}"), `{"a":true}`, False, ""}})
		check(t, Governance, mismatch, []row{{match("a: {" + m + "}"), `{}`, Unknown, WhyMissingArgument}})
	}
	check(t, Governance, mismatch, []row{
		{match("a: {not_host: a.com}"), `{"a":"x"}`, False, ""},
		{match("a: {not_path_inside: /a}"), `{"a":"x"}`, False, ""},
		{match("a: {none: {gt: 1}}"), `{"a":["x"]}`, False, ""},
		{match("a: {none: {not_host: a.com}}"), `{"a":["x"]}`, False, ""},
		{match("a: {exists: false}"), `{}`, True, WhyMatched},
	})
	full, raw := Semantics{Anchor: Full}, Semantics{Trim: RawOnly}
	check(t, Governance, full, []row{
		{match("a: {not_pattern: x}"), `{"a":"xy"}`, True, WhyMatched},
		{match("a: {starts_with: x}"), `{"a":"xy"}`, True, WhyMatched},
	})
	check(t, Governance, raw, []row{
		{match("a: {ends_with: x}"), `{"a":"x "}`, False, ""},
		{match("a: {not_pattern: 'x$'}"), `{"a":"x "}`, True, WhyMatched},
	})
}

// B1, B8, B11, B15, B19: operands that are refused, with the place.
func TestOperandsOfPolicies11AreChecked(t *testing.T) {
	for test, want := range map[string]string{
		"exists: yes": "yes", "exists: null": "null", "not_pattern: '('": "(", "not_pattern: 5": "5",
		"starts_with: ''": "''", "starts_with: []": "[]", "starts_with: [a, 5]": "5", "ends_with: ['']": "''",
		"length: {}": "{}", "length: 5": "5", "length: {ne: 5}": "ne", "length: {gt: -1}": "-1",
		"length: {gt: 1.5}": "1.5", "length: {gt: [1]}": "[1]",
		"length: {gt: x}": "x", "host: []": "[]", "host: Example.com": "Example.com",
		"host: example.com.":    "example.com.",
		"host: 'https://a.com'": "'https", "host: 'a.com:80'": "'a.com:80'", "host: '*'": "'*'",
		"host: 'a.*.com'": "'a.*",
		"host: '*.*.com'": "'*.*", "host: bücher.de": "bücher", "host: 127.1": "127.1", "host: '[::1'": "'[::1'",
		"host: '[0::1]'": "'[0", "path_inside: ''": "''", "path_inside: ..": "..", "path_inside: a/../..": "a/",
		"path_inside: '~/x'": "'~", "path_inside: 'C:/x'": "'C:", "path_inside: [/a, 'b\\\\c']": "",
		"any: []": "[]", "any: {}": "{}", "any: null": "null", "any: {any: x}": "x", "none: {all: {gt: 1}}": "{gt",
		"any: {where: {}}": "{}", "any: {where: {a: 1}, gt: 1}": "{a",
		"any: {where: {parent.input.x: 1}}":  "parent.input.x",
		"any: {where: {a: {any: {any: 1}}}}": "1", "any: {bad: 1}": "bad", "where: {a: 1}": "where",
		"money: {currency: c}": "{currency", "money: {gt: {EUR: 5}}": "{gt",
		"money: {currency: '', gt: {EUR: 5}}": "''",
		"money: {currency: c, gt: {}}":        "{}", "money: {currency: c, gt: {eur: 5}}": "eur",
		"money: {currency: c, gt: {EUR: x}}":                 "EUR",
		"money: {currency: c, gt: {EUR: 5}, lt: {USD: 5}}":   "{currency",
		"money: {currency: c, gt: {EUR: 5}, otherwise: no}":  "no",
		"money: {currency: c, gt: {EUR: 5}, minor_units: 1}": "1", "money: {currency: c, ne: {EUR: 5}}": "{EUR",
		"money: 5": "5",
	} {
		source := match("a: {" + test + "}")
		e, findings := read(t, source)
		ok := false
		for _, f := range findings {
			ok = ok || f.Severity == diag.Error && strings.HasPrefix(source[f.Range.Start.Column-1:], want)
		}
		if !ok {
			t.Errorf("%s: %v", test, findings)
		}
		if truth, _ := eval(t, Governance, Semantics{}, e, `{"a":1}`); ok && truth == False {
			t.Errorf("%s is false although it can't be read", test)
		}
	}
	for test, want := range map[string]string{
		"money: {currency: c, gt: {XAU: 5}, minor_units: true}":         "currency-without-unit",
		"money: {currency: c, gt: {ZZZ: 5, EUR: 1}, minor_units: true}": "currency-unknown",
		"money: {currency: c, gt: {ERU: 5}, otherwise: false}":          "currency-unknown",
		"money: {currency: c, gt: {XAU: 5, EUR: 1}}":                    "",
	} {
		_, findings := read(t, match("a: {"+test+"}"))
		got := ""
		for _, f := range findings {
			got += f.Rule
		}
		if got != want {
			t.Errorf("%s: %q", test, got)
		}
	}
}

// Agents and policies 1.0 have none of the operators.
func TestAgentsHaveNoOperatorOfPolicies11(t *testing.T) {
	for _, o := range additions {
		doc := nodes(t, match("a: {"+string(o.op())+": x}"))
		e, findings := Parse(doc, AgentFormat)
		if len(findings) != 1 || !findings[0].Stops || e.Groups[0].Matchers[0].Tests[0].Op != Unreadable {
			t.Errorf("%s: %v", o.op(), findings)
		}
		if keys := Newer(doc); len(keys) != 1 || keys[0].Text != string(o.op()) {
			t.Errorf("%s: %v", o.op(), keys)
		}
	}
	if keys := Newer(nodes(t, match("a: {gt: 1, bad: 2}, b: x"))); keys != nil || Newer(nil) != nil {
		t.Errorf("%v", keys)
	}
}
