package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/assent-dev/assent/value"
)

// The bounds of fields.
const (
	maxName = 128     // characters
	maxID   = 8 << 10 // bytes of what is opaque to us
	maxURL  = 4096    // bytes
)

func trim(raw []byte) []byte { return bytes.Trim(raw, " \t\r\n") }

// sound reads a string, nil when it is none.
func (r *reader) sound(path string, raw []byte) *string {
	if len(raw) == 0 || raw[0] != '"' {
		r.fail(path, "a string, found "+kindOf(raw))
		return nil
	}
	v, err := value.Parse(raw, value.Limits{MaxBytes: maxBytes})
	if err != nil {
		r.fail(path, "a string that all readers understand alike")
		return nil
	}
	return &v.Text
}

// str is a string, empty when it is none.
func (r *reader) str(path string, raw []byte) string {
	if s := r.sound(path, raw); s != nil {
		return *s
	}
	return ""
}

// text is a string that must be there, though it may be empty.
func (o object) text(name string) string { return o.str(o.at(name), o.raw(name)) }

// optional is a string, nil when it is absent.
func (o object) optional(name string) *string {
	raw := o.raw(name)
	if raw == nil {
		return nil
	}
	return o.sound(o.at(name), raw)
}

// optionalText is a string, empty when it is absent.
func (o object) optionalText(name string) string {
	if s := o.optional(name); s != nil {
		return *s
	}
	return ""
}

// id is a string that names something. It is "" when it is not valid.
func (o object) id(name string) string { return o.opaque(o.at(name), o.raw(name)) }

func (r *reader) opaque(path string, raw []byte) string {
	s := r.sound(path, raw)
	if s == nil {
		return ""
	}
	if *s == "" || len(*s) > maxID {
		r.fail(path, fmt.Sprintf("1 to %d bytes", maxID))
		return ""
	}
	return *s
}

// optionalID is a string that may be absent or empty, nil when it is absent or not valid.
func (o object) optionalID(name string) *string {
	s := o.optional(name)
	if s != nil && len(*s) > maxID {
		o.fail(o.at(name), fmt.Sprintf("at most %d bytes", maxID))
		return nil
	}
	return s
}

// name is a string of 1 to 128 characters.
func (o object) name(field string) string {
	s := o.text(field)
	if n := utf8.RuneCountInString(s); n < 1 || n > maxName {
		o.fail(o.at(field), fmt.Sprintf("1 to %d characters", maxName))
	}
	return s
}

// flag is a boolean, nil when it is absent.
func (o object) flag(name string) *bool {
	raw := o.raw(name)
	if raw == nil {
		return nil
	}
	is := string(raw) == "true"
	if !is && string(raw) != "false" {
		o.fail(o.at(name), "true or false, found "+kindOf(raw))
	}
	return &is
}

// set is a boolean that is false when it is absent.
func (o object) set(name string) bool {
	is := o.flag(name)
	return is != nil && *is
}

// index is a number from 0 in digits alone: other readers refuse 1.0 and 1e0, or take them for something else.
func (o object) index(name string) int {
	raw := o.raw(name)
	n, err := strconv.ParseInt(string(raw), 10, 32)
	if err != nil || slices.ContainsFunc(raw, func(c byte) bool { return c < '0' || c > '9' }) {
		o.fail(o.at(name), "an index from 0, in digits, found "+badIndex(raw))
		return 0
	}
	return int(n)
}

func badIndex(raw []byte) string {
	if kind := kindOf(raw); kind != "a number" {
		return kind
	}
	return "another number"
}

// strings reads a list of strings by read, nil when it is empty.
func (o object) strings(name string, most int, read func(path string, raw []byte) string) []string {
	var out []string
	for path, raw := range o.list(name, most) {
		out = append(out, read(path, raw))
	}
	return out
}

// rawObject is the untouched text of an object that must be there. Nil when it is not.
func (o object) rawObject(name string) json.RawMessage {
	raw := o.raw(name)
	if len(raw) == 0 || raw[0] != '{' {
		o.fail(o.at(name), "an object, found "+kindOf(raw))
		return nil
	}
	return bytes.Clone(raw)
}

// url is an absolute address to which something is posted, byte for byte. It is "" when it is not valid. Which origins it may have is not
// said here.
func (o object) url(name string) string {
	s := o.text(name)
	expected := badURL(s, "http", "https")
	if expected == "" && strings.Contains(s, "#") {
		expected = "a URL without a fragment"
	}
	if expected != "" {
		o.fail(o.at(name), expected)
		return ""
	}
	return s
}

// badURL says what was expected of a URL that has two readings or none, and nothing of it: it may hold a secret.
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

// notInURL reports what may not stand in a URL (RFC 3986). Some readers take a backslash for a slash.
func notInURL(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"<>\\^`{|}", r)
}

// soundHost wants a host in letters that needed no decoding, and a port, if any, that there is.
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
