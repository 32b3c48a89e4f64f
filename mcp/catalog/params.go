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

// paramPrefix begins the names of these headers.
const paramPrefix = "Mcp-Param-"

// Params are the headers that a request with these arguments carries:
// those of the arguments that are there, and not null. They are made
// from the bytes that are sent, so that an edit of an approver is in
// both. An argument that no header can repeat is an error.
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

// CheckParams compares headers that a client sent with the arguments
// beside them. values returns those of a name. Headers that no argument
// is marked for are no matter of this tool.
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

// compare says what is wrong with the values of a header.
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

// argument is what stands at a path of names; false where nothing does,
// or null. Names of a list's elements lead nowhere.
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

// largest is the integer up to which doubles hold each one.
const largest = 1<<53 - 1

// text is an argument as its header repeats it.
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

// The marks around a value of a header that is written in base64.
const (
	codedBegin = "=?base64?"
	codedEnd   = "?="
)

// EncodeHeader writes a text as the value of a header: as it is where it
// is visible ASCII without blanks at its ends, and is not taken for the
// other form; in base64 else.
func EncodeHeader(text string) string {
	plain := strings.Trim(text, " \t") == text && text != "" &&
		!strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
	if plain && !strings.HasPrefix(strings.ToLower(text), codedBegin) {
		return text
	}
	return codedBegin + base64.StdEncoding.EncodeToString([]byte(text)) + codedEnd
}

// DecodeHeader is the text behind the value of a header; false for one
// that is marked as base64 and is none.
func DecodeHeader(text string) (string, bool) {
	inside, begins := strings.CutPrefix(text, codedBegin)
	inside, ends := strings.CutSuffix(inside, codedEnd)
	if !begins || !ends {
		return text, true
	}
	out, err := base64.StdEncoding.Strict().DecodeString(inside)
	return string(out), err == nil
}
