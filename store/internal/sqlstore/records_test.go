package sqlstore

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestBehind checks that a key begins with a prefix if and only if it sorts at or after the
// prefix and before behind(prefix).
func TestBehind(t *testing.T) {
	for prefix, want := range map[string]string{
		"":                      "",
		"a":                     "b",
		"a/":                    "a0",
		"é":                     "ê",
		"\x7f":                  "\u0080",
		"\u07FF":                "\u0800",
		"\uFFFF":                "\U00010000",
		"\uD7FF":                "\uE000",
		"a\U0010FFFF":           "b",
		"\U0010FFFF":            "",
		"a\U0010FFFF\U0010FFFF": "b",
		"\U0010FFFF\U0010FFFF":  "",
		"\x01":                  "\x02",
	} {
		if got := behind(prefix); got != want {
			t.Errorf("behind %q: got %q, want %q", prefix, got, want)
		}
	}

	text := rapid.StringOf(
		rapid.OneOf(rapid.SampledFrom([]rune("ab\x01\x7f\u0080\uD7FF\uE000\uFFFF\U0010FFFF")), rapid.Rune()),
	)
	rapid.Check(t, func(t *rapid.T) {
		prefix := text.Draw(t, "prefix")
		key := rapid.OneOf(text, rapid.Map(text, func(tail string) string { return prefix + tail })).
			Draw(t, "key")
		end := behind(prefix)
		if within := key >= prefix && (end == "" || key < end); within != strings.HasPrefix(key, prefix) {
			t.Fatalf("key %q, prefix %q, end %q: within is %v", key, prefix, end, within)
		}
	})
}
