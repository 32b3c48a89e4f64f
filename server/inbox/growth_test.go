package inbox

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/growth"
	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
)

// costly returns texts that are the most expensive to inspect.
func costly() map[string]func(n int) string {
	each := func(unit string) func(n int) string {
		return func(n int) string { return strings.Repeat(unit, n/len(unit)) }
	}
	return map[string]func(n int) string{
		"quotes":                 each(`"`),
		"backslashes":            each(`\`),
		"escapes that never end": func(n int) string { return `\u{` + strings.Repeat("a", n) },
		"escapes":                each("\u202ex"),
		"equal escapes":          each("\u202e"),
		"isolates":               each("\u2068x"),
		"isolates with an end":   func(n int) string { return strings.Repeat("\u2068x", n/4) + "\u2069" },
		"isolates in pairs":      each("\u2068x\u2069"),
		"tags":                   each("\U000e0041"),
		"tags and letters":       each("\U000e0041x"),
		"marks":                  each("\u0301"),
		"letters with marks":     each("a\u0301\u0301"),
		"spaces":                 each("         x"),
		"breaks":                 each("\n \t"),
		"few breaks":             func(n int) string { return "\n" + strings.Repeat(" \t", n/2) + "\n" },
		"no UTF-8":               each("\xff"),
		"look-alike words":       each("а "),
		"one look-alike word":    each("а"),
		"mixed words":            each("aа "),
		"Chinese":                each("汉字"),
		"a long word and a sign": func(n int) string { return strings.Repeat("a", n) + "—" },
		"signs":                  each("∕"),
		"full width":             each("ａ"),
	}
}

func TestShowsTextsInLinearTime(t *testing.T) {
	for name, text := range costly() {
		t.Run(name, func(t *testing.T) {
			growth.Linear(t, 5_000, func(n int) func() {
				s := text(n)
				return func() {
					for _, f := range []safetext.Form{
						{}, {Quoted: true}, {Block: true}, {Lines: true, Limit: longText}, {Block: true, Limit: n / 2},
					} {
						safetext.Inspect(s, f)
					}
				}
			})
		})
	}
}

// TestShowsLargeCallsInLinearTime covers arguments and everything that is made from them: the tree,
// the raw text, the offer of a standing approval, and the editor.
func TestShowsLargeCallsInLinearTime(t *testing.T) {
	calls := map[string]func(n int) string{
		"members": func(n int) string {
			var b strings.Builder
			for i := range n / 12 {
				fmt.Fprintf(&b, `"k%d":"%d",`, i, i)
			}
			return "{" + b.String() + `"z":1}`
		},
		"zeros":    func(n int) string { return "[" + strings.Repeat("0,", n/2) + "0]" },
		"numbers":  func(n int) string { return "[" + strings.Repeat("1,", n/2) + "1]" },
		"a number": func(n int) string { return "[" + strings.Repeat("1", n) + "]" },
		"deep": func(n int) string {
			return strings.Repeat("[", 20) + strings.Repeat("1,", n/2) + "1" + strings.Repeat("]", 20)
		},
		"too deep": func(n int) string {
			return strings.Repeat("[", 100) + strings.Repeat("1,", n/2) + "1" + strings.Repeat("]", 100)
		},
		"a long key above many items": func(n int) string {
			return `{"` + strings.Repeat("k", n/2) + `":[` + strings.Repeat("0,", n/4) + "0]}"
		},
		"a long key above many members": func(n int) string {
			return `{"` + strings.Repeat("k", n/2) + `":{` + manyMembers(n/20) + "}}"
		},
	}
	for name, text := range costly() {
		if name != "no UTF-8" && name != "few breaks" && name != "breaks" {
			calls["a text of "+name] = func(n int) string {
				return `{"a":"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(text(n)) + `"}`
			}
		}
	}

	hides := policy.Arguments{Redact: []string{"a.b", strings.Repeat("k", 50), "0", "**.secret"}}
	redact := hides.Redaction()
	for name, text := range calls {
		t.Run(name, func(t *testing.T) {
			growth.Linear(t, 5_000, func(n int) func() {
				s := text(n)
				return func() {
					for _, all := range []bool{false, true} {
						inspectDocument("Arguments", s, policy.Redaction{}, all, nil)
						inspectDocument("Arguments", s, redact, all, nil)
					}
					summarize(&resolve.Call{Args: resolve.Raw(s)}, hides)
					indentedJSON(s)
				}
			})
		})
	}
}

func manyMembers(n int) string {
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf(`"m%d":0`, i)
	}
	return strings.Join(members, ",")
}

// TestAPageHasABudget: a page stops drawing at its budget, says what it left out, and then doesn't
// count as fully shown.
func TestAPageHasABudget(t *testing.T) {
	ctx := t.Context()
	const pieces = 10_000
	alike := `{"a":"` + strings.Repeat("а ", 15_000) + `"}`
	for name, text := range map[string]string{
		"texts":  alike,
		"values": "[" + strings.Repeat("1,", 12_000) + "1]",
		"keys":   "{" + manyMembers(12_000) + "}",
	} {
		b := newBudget(ctx, pieces)
		d := inspectDocument("Arguments", text, policy.Redaction{}, true, b)
		if n := countPieces(d); !d.Cut || !d.Huge || n > pieces+10 {
			t.Errorf("%s: cut %v, can't be approved %v, %d pieces", name, d.Cut, d.Huge, n)
		}
	}

	d := inspectDocument("Arguments", alike, policy.Redaction{}, true, newBudget(ctx, pagePieces))
	if d.Cut || d.Huge {
		t.Error("a page has no room for 45,000 pieces")
	}
	s := safetext.Inspect("а а а а", safetext.Form{Spend: newBudget(ctx, 4).spend})
	if got := s.Spoken(); !s.Cut || !strings.HasSuffix(got, "… 4 of 7 characters not shown here …") {
		t.Errorf("got %q", got)
	}
}

func countPieces(d document) int {
	n := 0
	if d.Raw != nil {
		n = len(d.Raw.Pieces)
	}
	var walk func(*node)
	walk = func(x *node) {
		n += len(x.Text.Pieces)
		if x.Key != nil {
			n += len(x.Key.Pieces)
		}
		for _, item := range x.Items {
			walk(item)
		}
	}
	walk(d.Tree)
	return n
}

// TestNobodyDrawsForWhoLeft: the budget ends when the reader has left.
func TestNobodyDrawsForWhoLeft(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	leave()
	d := inspectDocument(
		"Arguments",
		`{"a":"`+strings.Repeat("а ", 300_000)+`"}`,
		policy.Redaction{},
		true,
		newBudget(ctx, 100_000_000),
	)
	if n := countPieces(d); n > 3*lookAfter {
		t.Errorf("%d pieces were drawn for nobody", n)
	}
	b := attended{ctx: ctx}
	writes := 0
	for ; writes < 10*lookAfter; writes++ {
		if _, err := b.Write([]byte("x")); err != nil {
			break
		}
	}
	if writes >= lookAfter {
		t.Errorf("%d writes to nobody", writes)
	}
}

// BenchmarkShow draws the largest call that a page shows in full, and the largest possible call.
func BenchmarkShow(b *testing.B) {
	for name, unit := range map[string]string{"plain": "x", "quotes": `\"`, "look-alikes": "а "} {
		for _, size := range []int{approvable - 100, 2<<20 - 100} {
			text := `{"a":"` + strings.Repeat(unit, size/len(unit)) + `"}`
			b.Run(fmt.Sprintf("%s/%d", name, len(text)), func(b *testing.B) {
				for b.Loop() {
					inspectDocument("Arguments", text, policy.Redaction{}, true, newBudget(b.Context(), pagePieces))
				}
			})
		}
	}
}
