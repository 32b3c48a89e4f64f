package server

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/server/openapi"
)

// flag reads a boolean parameter. It returns false if the parameter is absent.
func (x *exchange) flag(name string) (bool, error) {
	text, ok := x.query[name]
	if ok && text != "true" && text != "false" {
		return false, bad(name, "expected true or false")
	}
	return text == "true", nil
}

// word reads a parameter that must be one of some words. It returns the first one if it is
// absent.
func (x *exchange) word(name string, words ...string) (string, error) {
	text, ok := x.query[name]
	if !ok {
		return words[0], nil
	}
	if !slices.Contains(words, text) {
		return "", bad(name, "expected one of "+strings.Join(words, ", "))
	}
	return text, nil
}

// mostWhole is the largest integer that every client can represent, including clients whose
// numbers are doubles.
const mostWhole = 1<<53 - 1

// integer reads an integer parameter between least and most. It returns absent if there is
// none.
func (x *exchange) integer(name string, least, most, absent int64) (int64, error) {
	text, ok := x.query[name]
	if !ok {
		return absent, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, bad(name, fmt.Sprintf("expected a whole number from %d to %d", least, most))
	}
	return n, nil
}

// duration reads a parameter such as 30s. It returns 0 if the parameter is absent.
func (x *exchange) duration(name string) (time.Duration, error) {
	text, ok := x.query[name]
	if !ok {
		return 0, nil
	}
	d, ok := parseDuration(text)
	if !ok {
		return 0, bad(name, "expected a duration such as 30s")
	}
	return d, nil
}

// durationText is the form of a duration: numbers with units, such as
// 30s and 1h30m. openapi.yaml has the same pattern.
var durationText = pattern.Of(`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`)

// parseDuration parses a duration. A value that is too large becomes the largest
// time.Duration.
func parseDuration(text string) (d time.Duration, ok bool) {
	if !durationText().MatchString(text) {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	if err != nil { // the form is right, so it is too long
		return math.MaxInt64, true
	}
	return d, true
}

// time reads a time parameter. It returns the zero time if the parameter is absent.
func (x *exchange) time(name string) (time.Time, error) {
	text, ok := x.query[name]
	if !ok {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, bad(name, "expected a time such as 2026-01-02T15:04:05Z")
	}
	return t.UTC(), nil
}

// pathNumber reads an integer segment of the path.
func (x *exchange) pathNumber(name string) (int64, error) {
	n, err := strconv.ParseInt(x.r.PathValue(name), 10, 64)
	if err != nil || n < 0 || n > mostWhole {
		return 0, fail(openapi.CodeBadRequest, "the path: expected a whole number").in(name)
	}
	return n, nil
}
