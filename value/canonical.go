package value

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// Digest is a SHA-256 digest.
type Digest [32]byte

// String returns "sha256:" and 64 hexadecimal digits.
func (d Digest) String() string { return "sha256:" + hex.EncodeToString(d[:]) }

// SumCanonical returns the digest of a text that is canonical already.
func SumCanonical(b []byte) Digest { return sha256.Sum256(b) }

// Digest returns the SHA-256 digest of the canonical form.
func (v Value) Digest() Digest { return SumCanonical(v.AppendCanonical(nil)) }

// AppendJSON appends v in compact form and source order, with numbers in their original
// spelling. An Absent value is written as null.
func (v Value) AppendJSON(dst []byte) []byte {
	return v.append(dst, Num.appendText, false)
}

// AppendCanonical appends v in the form of RFC 8785: no white space, keys ordered by UTF-16
// code units, the shortest escapes. Numbers are written by Num.Canonical.
func (v Value) AppendCanonical(dst []byte) []byte {
	return v.append(dst, Num.appendCanonical, true)
}

func (v Value) append(dst []byte, number func(Num, []byte) []byte, sorted bool) []byte {
	switch v.Kind {
	case Bool:
		if v.Bool {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case Number:
		return number(v.Num, dst)
	case String:
		return appendString(dst, v.Text)
	case Array:
		dst = append(dst, '[')
		for i, item := range v.Items {
			dst = item.append(separate(dst, i), number, sorted)
		}
		return append(dst, ']')
	case Object:
		return appendObject(dst, v.Members, number, sorted)
	}

	return append(dst, "null"...)
}

func separate(dst []byte, i int) []byte {
	if i > 0 {
		return append(dst, ',')
	}
	return dst
}

func appendObject(dst []byte, members []Member, number func(Num, []byte) []byte, sorted bool) []byte {
	var few [32]int32
	order := few[:0]
	for i := range members {
		order = append(order, int32(i))
	}
	if sorted {
		slices.SortFunc(order, func(a, b int32) int { return cmpUTF16(members[a].Key, members[b].Key) })
	}
	dst = append(dst, '{')
	for i, at := range order {
		m := &members[at]
		dst = append(appendString(separate(dst, i), m.Key), ':')
		dst = m.Value.append(dst, number, sorted)
	}
	return append(dst, '}')
}

// cmpUTF16 compares strings by UTF-16 code units. That equals the order of UTF-8 bytes except
// for code points above U+FFFF (first byte 0xf0 and up): their surrogates are less than U+E000
// to U+FFFF (first byte 0xee or 0xef).
func cmpUTF16(a, b string) int {
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if x >= 0xee && y >= 0xee && (x >= 0xf0) != (y >= 0xf0) {
			return cmp.Compare(y, x)
		}
		return cmp.Compare(x, y)
	}

	return cmp.Compare(len(a), len(b))
}

// appendString appends a JSON string in the form of RFC 8785, which escapes only what must be
// escaped.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		if s[i] >= ' ' && s[i] != '"' && s[i] != '\\' {
			continue
		}
		dst = appendEscape(append(dst, s[from:i]...), s[i])
		from = i + 1
	}

	return append(append(dst, s[from:]...), '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '\b':
		return append(dst, '\\', 'b')
	case '\t':
		return append(dst, '\\', 't')
	case '\n':
		return append(dst, '\\', 'n')
	case '\f':
		return append(dst, '\\', 'f')
	case '\r':
		return append(dst, '\\', 'r')
	case '"', '\\':
		return append(dst, '\\', c)
	}

	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
}
