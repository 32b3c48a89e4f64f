package wire

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/assent-dev/assent/internal/jsonmsg"
)

// The bounds of fields.
const (
	maxName = 128     // characters
	maxID   = 8 << 10 // bytes of what is opaque to us
	maxURL  = 4096    // bytes
)

// id is a string that names something. It is "" when it is not valid.
func (o object) id(name string) string { return o.opaque(o.At(name), o.Raw(name)) }

func (o object) opaque(path string, raw []byte) string {
	s, ok := o.String(path, raw)
	if ok && (s == "" || len(s) > maxID) {
		o.expect(path, fmt.Sprintf("1 to %d bytes", maxID))
		return ""
	}
	return s
}

// str is a string that stands at a path.
func (o object) str(path string, raw []byte) string {
	s, _ := o.String(path, raw)
	return s
}

// expect fails at a path.
func (o object) expect(path, expected string) { o.Fail(&jsonmsg.Error{Path: path, Expected: expected}) }

// optionalID is a string that may be absent or empty, nil when it is
// absent or not valid.
func (o object) optionalID(name string) *string {
	s := o.Optional(name)
	if s != nil && len(*s) > maxID {
		o.Expect(name, fmt.Sprintf("at most %d bytes", maxID))
		return nil
	}
	return s
}

// name is a string of 1 to 128 characters.
func (o object) name(field string) string {
	s := o.Need(field)
	if n := utf8.RuneCountInString(s); n < 1 || n > maxName {
		o.Expect(field, fmt.Sprintf("1 to %d characters", maxName))
	}
	return s
}

// set is a boolean that is false when it is absent.
func (o object) set(name string) bool {
	is := o.Bool(name)
	return is != nil && *is
}

// index is a number from 0 that must be there.
func (o object) index(name string) int {
	if !o.Has(name) {
		o.Expect(name, "an index from 0, in digits, found nothing")
	}
	return int(o.Int(name, 0, math.MaxInt32))
}

// strings reads a list of strings by read, nil when it is empty.
func (o object) strings(name string, most int, read func(path string, raw []byte) string) []string {
	var out []string
	for path, raw := range o.list(name, most) {
		out = append(out, read(path, raw))
	}
	return out
}

// url is an absolute address to which something is posted, byte for
// byte. It is "" when it is not valid. Which origins it may have is not
// said here.
func (o object) url(name string) string {
	s := o.Need(name)
	expected := badURL(s, "http", "https")
	if expected == "" && strings.Contains(s, "#") {
		expected = "a URL without a fragment"
	}
	if expected != "" {
		o.Expect(name, expected)
		return ""
	}
	return s
}

// badURL says what was expected of a URL that has two readings or none,
// and nothing of it: it may hold a secret.
func badURL(s string, schemes ...string) string {
	if len(s) > maxURL {
		return fmt.Sprintf("a URL of at most %d bytes", maxURL)
	}
	if strings.ContainsFunc(s, notInURL) {
		return "a URL, percent-encoded where it must be"
	}
	u, err := url.Parse(s)
	switch {
	case err != nil, !slices.Contains(schemes, u.Scheme), u.Opaque != "", !soundHost(u), !soundEscapes(s):
		return "an absolute " + strings.Join(schemes, " or ") + " URL"
	case u.User != nil:
		return "a URL without user and password"
	}

	return ""
}

// notInURL reports what may not stand in a URL (RFC 3986). Some readers
// take a backslash for a slash.
func notInURL(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"<>\\^`{|}", r)
}

// soundHost wants a host in letters that needed no decoding, and a
// port, if any, that there is.
func soundHost(u *url.URL) bool {
	decoded := strings.ContainsFunc(u.Host, func(r rune) bool { return r == '%' || r >= utf8.RuneSelf })
	if decoded || u.Hostname() == "" || strings.HasSuffix(u.Host, ":") {
		return false
	}
	if u.Port() == "" {
		return true
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && port > 0
}

// soundEscapes wants two hexadecimal digits after each percent sign.
func soundEscapes(s string) bool {
	_, err := url.PathUnescape(s)
	return err == nil
}
