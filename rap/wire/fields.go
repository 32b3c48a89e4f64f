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

// Limits of fields.
const (
	maxName = 128     // characters
	maxID   = 8 << 10 // bytes of an opaque id
	maxURL  = 4096    // bytes
)

// id reads a required id. It returns an empty string if the member is not valid.
func (o object) id(name string) string { return o.opaque(o.At(name), o.Raw(name)) }

func (o object) opaque(path string, raw []byte) string {
	s, ok := o.String(path, raw)
	if ok && (s == "" || len(s) > maxID) {
		o.expect(path, fmt.Sprintf("1 to %d bytes", maxID))
		return ""
	}
	return s
}

// str returns the string at a path.
func (o object) str(path string, raw []byte) string {
	s, _ := o.String(path, raw)
	return s
}

// expect records an error at a path.
func (o object) expect(path, expected string) { o.Fail(&jsonmsg.Error{Path: path, Expected: expected}) }

// optionalID reads a string that may be absent or empty. It returns nil if the member is absent
// or not valid.
func (o object) optionalID(name string) *string {
	s := o.Optional(name)
	if s != nil && len(*s) > maxID {
		o.Expect(name, fmt.Sprintf("at most %d bytes", maxID))
		return nil
	}
	return s
}

// name reads a string of 1 to 128 characters.
func (o object) name(field string) string {
	s := o.Need(field)
	if n := utf8.RuneCountInString(s); n < 1 || n > maxName {
		o.Expect(field, fmt.Sprintf("1 to %d characters", maxName))
	}
	return s
}

// set reads a boolean that is false if it is absent.
func (o object) set(name string) bool {
	is := o.Bool(name)
	return is != nil && *is
}

// index reads a required index, from 0.
func (o object) index(name string) int {
	if !o.Has(name) {
		o.Expect(name, "an index from 0, in digits, found nothing")
	}
	return int(o.Int(name, 0, math.MaxInt32))
}

// strings reads a list of strings with the function read. It returns nil if the list is empty.
func (o object) strings(name string, most int, read func(path string, raw []byte) string) []string {
	var out []string
	for path, raw := range o.list(name, most) {
		out = append(out, read(path, raw))
	}
	return out
}

// url reads an absolute URL to which messages are posted, and returns it byte for byte. It
// returns an empty string if the member is not valid. It does not check the origin.
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

// badURL returns what was expected if a URL is invalid or ambiguous, and otherwise an empty
// string. The text does not quote the URL, which may contain a secret.
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

// notInURL reports characters that are not allowed in a URL (RFC 3986). Some readers treat a
// backslash as a slash.
func notInURL(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"<>\\^`{|}", r)
}

// soundHost reports whether the host is ASCII without percent-encoding, and the port, if any,
// is valid.
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

// soundEscapes reports whether two hexadecimal digits follow each percent sign.
func soundEscapes(s string) bool {
	_, err := url.PathUnescape(s)
	return err == nil
}
