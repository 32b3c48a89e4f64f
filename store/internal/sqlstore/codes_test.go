package sqlstore

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/must"
)

func testAuthenticator(t testing.TB, secret, period string) *authenticator {
	t.Helper()
	return must.Get(newAuthenticator([]byte(secret), period))(t)
}

// TestNoTwoRowsHaveTheSameCode checks that values can't be moved between columns, kinds,
// tables, periods or keys.
func TestNoTwoRowsHaveTheSameCode(t *testing.T) {
	const secret = "0123456789abcdef0123456789abcdef"
	a := testAuthenticator(t, secret, "period")
	rows := map[string][]byte{
		"one":               a.code("t", "ab", "c"),
		"other split":       a.code("t", "a", "bc"),
		"one column less":   a.code("t", "abc"),
		"one column more":   a.code("t", "ab", "c", ""),
		"none at the end":   a.code("t", "ab", "c", nil),
		"other order":       a.code("t", "c", "ab"),
		"bytes":             a.code("t", []byte("ab"), "c"),
		"other table":       a.code("u", "ab", "c"),
		"table and column":  a.code("tab", "c"),
		"an integer":        a.code("t", int64(1)),
		"its text":          a.code("t", "1"),
		"no text":           a.code("t", ""),
		"nothing":           a.code("t", nil),
		"other type":        a.code("t", 1),
		"other period":      testAuthenticator(t, secret, "period2").code("t", "ab", "c"),
		"other key":         testAuthenticator(t, secret+"x", "period").code("t", "ab", "c"),
		"like a long value": a.code("t", "s\x00\x00\x00\x00\x00\x00\x00\x01a"),
	}
	found := map[string]string{}
	for name, code := range rows {
		if other, there := found[string(code)]; there {
			t.Errorf("%q and %q have one code", name, other)
		}
		found[string(code)] = name
	}

	if !bytes.Equal(a.code("t", []byte{}), a.code("t", nil)) {
		t.Error("no bytes and NULL have two codes, and drivers don't tell them apart")
	}
}

// TestCodesDependOnEveryByte includes values that don't fit into the coder's buffer at
// once.
func TestCodesDependOnEveryByte(t *testing.T) {
	a := testAuthenticator(t, "secret", "period")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.Byte(), 1, 5000).Draw(t, "text")
		before := rapid.StringN(0, 1100, -1).Draw(t, "before")
		code := a.code("t", before, text)
		if !bytes.Equal(code, a.code("t", before, bytes.Clone(text))) {
			t.Fatal("one row has two codes")
		}
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		text[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if bytes.Equal(code, a.code("t", before, text)) {
			t.Fatal("another text has the same code")
		}
	})
}

// TestWithoutKeyThereAreNoCodes covers embedders and tests, which use stores without a key.
func TestWithoutKeyThereAreNoCodes(t *testing.T) {
	var a *authenticator
	if code := a.code("t", "a"); code != nil {
		t.Errorf("a code %x", code)
	}
}

// TestCodesTakeNoMemory checks that a code allocates nothing, even for a long value.
func TestCodesTakeNoMemory(t *testing.T) {
	a := testAuthenticator(t, "secret", "period")
	long := string(bytes.Repeat([]byte("x"), 8<<20))
	allocated := testing.AllocsPerRun(5, func() { a.code("requests", "default", "apr_1", int64(3), long) })
	if allocated > 10 {
		t.Errorf("%v allocations for one code", allocated)
	}
}

// BenchmarkCode measures a code for rows of different lengths. The MB/s should stay the
// same.
func BenchmarkCode(b *testing.B) {
	a := testAuthenticator(b, "secret", "period")
	for _, size := range []int{100, 1 << 10, 16 << 10, 1 << 20, 8 << 20} {
		text := string(bytes.Repeat([]byte("x"), size))
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				a.code("requests", "default", "apr_1", int64(3), text)
			}
		})
	}
}
