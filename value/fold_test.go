package value

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

// A case-insensitive reader could use the key that the rules did not see.
func TestKeysThatFoldAlikeAreRefused(t *testing.T) {
	long := strings.Repeat("key ", 40)
	for _, tt := range []struct{ src, message string }{
		{
			`{"url":1,"URL":2}`,
			`line 1, column 10: the keys "url" and "URL" differ in upper and lower case alone, so some readers take ` +
				`them for one: expected one of them (first at column 2)`,
		},
		{
			"{\"URL\":2,\n \"a\":[],\"Url\":1}",
			`line 2, column 9: the keys "URL" and "Url" differ in upper and lower case alone, so some readers take ` +
				`them for one: expected one of them (first at line 1, column 2)`,
		},
		{
			`{"toKen":1,"to\u212aen":2}`,
			`line 1, column 12: the keys "toKen" and "to\u212aen" differ in upper and lower case alone, so some ` +
				`readers take them for one: expected one of them (first at column 2)`,
		},
		{
			`{"user":1,"uſer":2}`,
			`line 1, column 11: the keys "user" and "u\u017fer" differ in upper and lower case alone, so some ` +
				`readers take them for one: expected one of them (first at column 2)`,
		},
		{`{"ſ":1,"S":2}`, ""}, {`{"K":1,"k":2}`, ""}, {`{"maſs":1,"mass":2}`, ""},
		{`{"straße":1,"STRAẞE":2}`, ""}, {`{"σ":1,"ς":2}`, ""},
		{`{"été":1,"ÉTÉ":2}`, ""}, {`{"Ⅷ":1,"ⅷ":2}`, ""}, {`{"ǅ":1,"ǆ":2}`, ""}, {`{"\u0061":1,"A":2}`, ""},
		{`[{"o":{"x":[{"a":1,"A":2}]}}]`, ""},
		{`{"` + long + `":1,"` + strings.ToUpper(long) + `":2}`, ""},
		{`{"` + strings.Repeat("k", 30) + `":1,"` + strings.Repeat("K", 30) + `":2}`, ""}, // 30 bytes and 90
	} {
		_, parseErr := Parse([]byte(tt.src), Limits{FoldKeys: true})
		scanErr := anything.Scan([]byte(tt.src), Limits{FoldKeys: true}, &Scratch{})
		fillErr := anything.Fill(json.RawMessage(tt.src), Limits{FoldKeys: true}, &Scratch{})
		for who, err := range map[string]error{"Parse": parseErr, "Scan": scanErr, "Fill": fillErr} {
			if got, ok := err.(*Error); !ok || got.Code != FoldedKey || tt.message != "" && got.Error() != tt.message {
				t.Errorf("%s of %s: %v", who, tt.src, err)
			}
		}

		if _, err := Parse([]byte(tt.src), Limits{}); err != nil {
			t.Errorf("%s, told apart: %v", tt.src, err)
		}
	}

	for _, src := range []string{
		`{"a":{"x":1},"b":{"X":1}}`, `{"a":1,"b":{"A":1}}`, `[{"a":1},{"A":1}]`, // in different objects
		`{"ı":1,"i":2}`, `{"İ":1,"i":2}`, `{"ß":1,"ss":2}`, `{"é":1,"e":2}`, `{"a_b":1,"aB":2}`, `{"@":1,"` + "`" +
			`":2}`, `{"[":1,"{":2}`,
	} {
		if _, err := Parse([]byte(src), Limits{FoldKeys: true}); err != nil {
			t.Errorf("%s: %v", src, err)
		}
	}
}

// Exact duplicates have their own code, also next to keys that differ in case. Of several
// pairs, the one with the smallest second key is reported.
func TestRepeatedKeysKeepTheirOwnCode(t *testing.T) {
	many := func(pairs ...string) string {
		var b strings.Builder
		for i := range 2 * manyKeys {
			fmt.Fprintf(&b, `"k%d":0,`, i)
		}
		return "{" + b.String() + strings.Join(pairs, ",") + "}"
	}
	for src, want := range map[string]ErrorCode{
		`{"a":1,"A":2,"a":3}`:                     FoldedKey,
		`{"a":1,"a":2,"A":3}`:                     DuplicateKey,
		`{"b":1,"a":1,"A":2,"b":3}`:               FoldedKey,
		`{"b":1,"a":1,"b":2,"A":3}`:               DuplicateKey,
		many(`"a":1`, `"A":2`, `"a":3`):           FoldedKey,
		many(`"a":1`, `"a":2`, `"A":3`):           DuplicateKey,
		many(`"b":1`, `"a":1`, `"A":2`, `"b":3`):  FoldedKey,
		many(`"b":1`, `"a":1`, `"b":2`, `"A":3`):  DuplicateKey,
		many(`"b":1`, `"a":1`, `"K7":2`, `"A":3`): FoldedKey,
	} {
		_, err := Parse([]byte(src), Limits{FoldKeys: true})
		if got, ok := err.(*Error); !ok || got.Code != want {
			t.Errorf("%s: %v", src, err)
		}
	}
}

// foldedKeys draws keys of which many differ only in case.
func foldedKeys(t *rapid.T) []string {
	letter := rapid.SampledFrom(
		[]string{"a", "A", "k", "K", "\u212a", "s", "S", "ſ", "σ", "ς", "Σ", "ß", "ẞ", "é", "É", "_", "日", "0"},
	)
	stem := rapid.SampledFrom(
		[]string{"", "x", "abcdefgh", "日本語日本語日本語", strings.Repeat("é", 20), strings.Repeat("q", 70)},
	)
	key := rapid.Custom(func(t *rapid.T) string {
		return stem.Draw(t, "stem") + strings.Join(
			rapid.SliceOfN(letter, 0, 3).Draw(t, "letters"),
			"",
		) + stem.Draw(t, "end")
	})
	return rapid.SliceOfNDistinct(key, 0, 40, rapid.ID[string]).Draw(t, "keys")
}

// The scan, the tree and Go values agree with strings.EqualFold on which keys are equal.
func TestAllReadersFoldAsEncodingJSONDoes(t *testing.T) {
	sc := &Scratch{}
	rapid.Check(t, func(t *rapid.T) {
		keys := foldedKeys(t)
		alike := false
		for i, a := range keys {
			for _, b := range keys[:i] {
				alike = alike || strings.EqualFold(a, b)
			}
		}
		doc := map[string]any{}
		tree := Value{Kind: Object}
		for _, k := range keys {
			doc[k] = 1.0
			tree.Members = append(tree.Members, Member{Key: k, Value: Value{Kind: Null}})
		}
		src, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		fold := Limits{FoldKeys: true}
		_, parsed := Parse(src, fold)
		_, fromMap := FromGo(doc, fold)
		_, fromTree := FromGo(tree, fold)
		for who, err := range map[string]error{
			"Scan":    anything.Scan(src, fold, sc),
			"Parse":   parsed,
			"Fill":    anything.Fill(doc, fold, sc),
			"FromGo":  fromMap,
			"a Value": fromTree,
		} {
			if (err != nil) != alike || err != nil && err.(*Error).Code != FoldedKey {
				t.Fatalf("%s of %q: %v, alike %v", who, keys, err, alike)
			}
		}

		for who, err := range map[string]error{
			"Scan": anything.Scan(src, Limits{}, sc),
			"Fill": anything.Fill(doc, Limits{}, sc),
		} {
			if err != nil {
				t.Fatalf("%s tells %q not apart: %v", who, keys, err)
			}
		}

		if len(sc.names) > 0 {
			t.Fatalf("%d names are left over", len(sc.names))
		}
	})
}

// Keys that are equal under folding have the same hash, whatever their length in bytes;
// otherwise they would never be compared.
func TestHashFolds(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			for _, around := range [][2]string{
				{"", ""},
				{"a", "b"},
				{"abcdefgh", "abcdefgh"},
				{"日本語日本語", "日本語日本語"},
				{"éééééééééé", "x"},
			} {
				a, b := around[0]+string(r)+around[1], strings.ToUpper(around[0])+string(f)+around[1]
				if strings.EqualFold(a, b) && hashKey(a) != hashKey(b) {
					t.Fatalf("%+q and %+q", a, b)
				}
			}
		}
	}
}

func TestFoldingAllocatesNothing(t *testing.T) {
	doc := map[string]any{
		"amount":   1.0,
		"Currency": "EUR",
		"Straße":   true,
		"o":        map[string]any{"a": 1.0, "B": 2.0},
	}
	src := []byte(`{"amount":1,"Currency":"EUR","Straße":true,"\u0054o":"x","o":{"a":1,"B":2}}`)
	sc := &Scratch{}
	for name, run := range map[string]func() error{
		"Scan": func() error { return anything.Scan(src, Limits{FoldKeys: true}, sc) },
		"Fill": func() error { return anything.Fill(doc, Limits{FoldKeys: true}, sc) },
	} {
		if err := run(); err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { _ = run() }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// The cost of keys with colliding hashes is proportional to their number and length, even for
// adversarial keys. The test counts how often twins reads a key, and checks that repeats leaves
// the comparison to twins.
func TestKeysAreNotComparedPairByPair(t *testing.T) {
	alike := func(n, length int) (keys []string) {
		for i := range n {
			keys = append(keys, fmt.Sprintf("abcdefgh%s%06dabcdefgh", strings.Repeat("k", length), i))
		}
		return keys
	}
	for name, keys := range map[string][]string{
		"few long keys":   alike(manyKeys, 10_000),
		"many keys":       alike(manyKeys+1, 0),
		"1,000 keys":      alike(1_000, 0),
		"10,000 keys":     alike(10_000, 0),
		"1,000 long keys": alike(1_000, longKey),
		"two long keys":   alike(2, longKey),
	} {
		for _, fold := range []bool{false, true} {
			reads := 0
			key := func(i int) string { reads++; return keys[i] }
			if _, _, found := twins(len(keys), key, fold); found || reads > 2*len(keys) {
				t.Errorf("%s, fold %t: found %t with %d reads", name, fold, found, reads)
			}
		}
	}

	open := func(keys []string) (p scanner, next keyRef) {
		for _, text := range keys {
			key := keyRef{start: uint32(len(p.text)), end: uint32(len(p.text) + len(text)), hash: hashKey(text)}
			p.text += text
			p.keys = append(p.keys, key)
		}
		last := len(p.keys) - 1
		next = p.keys[last]
		p.keys = p.keys[:last]
		return p, next
	}
	for name, c := range map[string]struct {
		keys  []string
		later bool
	}{
		"few keys":      {alike(manyKeys, 0), false},
		"many keys":     {alike(manyKeys+1, 0), true},
		"two long keys": {alike(2, longKey), true},
	} {
		p, next := open(c.keys)
		if repeated, later := p.repeats(0, next); repeated || later != c.later {
			t.Errorf("%s: repeated %t, later %t", name, repeated, later)
		}
	}
}

// Keys with equal ends are distinguished in an object that is compared pairwise, in larger
// ones, and in many small ones.
func TestCollidingKeysAreToldApart(t *testing.T) {
	object := func(n int, key string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"`+key+`":1`, i)
		}
		return "{" + b.String()[1:] + "}"
	}
	long := "abcdefgh" + strings.Repeat("дД", 500)
	for name, src := range map[string]string{
		"different":          object(1_000, "%d"),
		"alike":              object(1_000, "abcdefgh%06dabcdefgh"),
		"alike but for case": object(1_000, "abcdefgh%06dABCDEFGH"),
		"escaped":            object(1_000, `\u0061bcdefgh%06dabcdefgh`),
		"long":               object(32, long+"%06dabcdefgh"),
		"many and long":      object(100, long+"%06dabcdefgh"),
		"many small objects": "[" + strings.Repeat(object(31, "abcdefgh%02dabcdefgh")+",", 100) + "{}]",
	} {
		for _, fold := range []bool{false, true} {
			if err := anything.Scan([]byte(src), Limits{FoldKeys: fold}, &Scratch{}); err != nil {
				t.Errorf("%s, fold %t: %v", name, fold, err)
			}
		}
	}
}
