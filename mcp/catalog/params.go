package catalog

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/value"
)

// Param is a header that repeats an argument.
type Param struct{ Name, Value string }

// paramPrefix is the prefix of the names of these headers.
const paramPrefix = "Mcp-Param-"

// Params returns the headers for a request with these arguments: one for each marked argument that
// is present and not null. They are computed from the arguments that are sent, so that an
// approver's edit is in both. It returns an error for an argument that no header can repeat.
func (t *Tool) Params(args []byte) ([]Param, error) {
	if len(t.Headers) == 0 {
		return nil, nil
	}
	doc, err := value.Parse(args, value.Limits{})
	if err != nil {
		return nil, fmt.Errorf("the arguments: %w", err)
	}
	var out []Param
	for _, h := range t.Headers {
		v, given := argument(doc, h.Path)
		if !given {
			continue
		}
		text, sound := h.text(v)
		if !sound {
			return nil, fmt.Errorf(
				"the argument %q: expected a value of the type %s, which the header %s repeats",
				strings.Join(h.Path, "."),
				h.Type,
				paramPrefix+h.Name,
			)
		}

		out = append(out, Param{Name: paramPrefix + h.Name, Value: EncodeHeader(text)})
	}

	return out, nil
}

// CheckParams compares the headers that a client sent with the arguments in the body. values
// returns the values of a header by name. Headers for which no argument is marked are ignored.
func (t *Tool) CheckParams(args []byte, values func(name string) []string) error {
	want, err := t.Params(args)
	if err != nil {
		return err
	}
	wanted := map[string]string{}
	for _, p := range want {
		wanted[p.Name] = p.Value
	}
	for _, h := range t.Headers {
		name := paramPrefix + h.Name
		if problem := h.compare(wanted, values(name)); problem != "" {
			return fmt.Errorf("the header %s %s", name, problem)
		}
	}

	return nil
}

// compare returns what is wrong with the values of a header, or an empty string.
func (h Header) compare(wanted map[string]string, got []string) string {
	want, needed := wanted[paramPrefix+h.Name]
	switch {
	case !needed && len(got) == 0:
		return ""
	case !needed:
		return "repeats an argument that is not there"
	case len(got) == 0:
		return "is missing"
	case len(got) > 1:
		return "stands there several times"
	case !h.same(want, got[0]):
		return "differs from the argument"
	}

	return ""
}

// same compares two values of a header. Integers are compared as
// numbers.
func (h Header) same(a, b string) bool {
	a, soundA := DecodeHeader(a)
	b, soundB := DecodeHeader(b)
	if !soundA || !soundB || h.Type != "integer" {
		return soundA && soundB && a == b
	}
	x, errX := value.ParseNum(a)
	y, errY := value.ParseNum(b)
	return errX == nil && errY == nil && x.Cmp(y) == 0
}

// argument returns the value at a path of names. It returns false if there is none or it is null.
// Paths don't lead into lists.
func argument(v value.Value, path []string) (value.Value, bool) {
	for _, name := range path {
		next, found := v.Get(name)
		if !found || v.Kind != value.Object {
			return value.Value{}, false
		}
		v = next
	}

	return v, v.Kind != value.Null
}

// largest is the limit up to which a double represents every integer exactly.
const largest = 1<<53 - 1

// text returns an argument in the form that its header has.
func (h Header) text(v value.Value) (string, bool) {
	switch {
	case h.Type == "string" && v.Kind == value.String:
		return v.Text, true
	case h.Type == "boolean" && v.Kind == value.Bool:
		return strconv.FormatBool(v.Bool), true
	case h.Type == "integer" && v.Kind == value.Number:
		small := v.Num.Cmp(value.IntNum(-largest)) >= 0 && v.Num.Cmp(value.IntNum(largest)) <= 0
		return v.Num.Canonical(), small && v.Num.IsInt()
	}

	return "", false
}

// The marks around a header value that is encoded in base64.
const (
	codedBegin = "=?base64?"
	codedEnd   = "?="
)

// EncodeHeader encodes a text as the value of a header. Visible ASCII without blanks at its ends
// that can't be mistaken for the encoded form is used unchanged. Any other text is encoded in
// base64.
func EncodeHeader(text string) string {
	plain := strings.Trim(text, " \t") == text && text != "" &&
		!strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
	if plain && !strings.HasPrefix(strings.ToLower(text), codedBegin) {
		return text
	}
	return codedBegin + base64.StdEncoding.EncodeToString([]byte(text)) + codedEnd
}

// DecodeHeader decodes the value of a header. It returns false if the value is marked as base64 but
// is not valid base64.
func DecodeHeader(text string) (string, bool) {
	inside, begins := strings.CutPrefix(text, codedBegin)
	inside, ends := strings.CutSuffix(inside, codedEnd)
	if !begins || !ends {
		return text, true
	}
	out, err := base64.StdEncoding.Strict().DecodeString(inside)
	return string(out), err == nil
}
