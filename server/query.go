package server

import (
	"fmt"
	"strconv"
	"time"

	"github.com/assent-dev/assent/server/openapi"
)

// flag reads a parameter that is true or false; absent is false.
func (x *exchange) flag(name string) (bool, error) {
	switch x.query[name] {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, fail(openapi.CodeBadRequest, name+": expected true or false").in(name)
}

// integer reads a parameter that is a whole number.
func (x *exchange) integer(name string, least, most, absent int64) (int64, error) {
	text, ok := x.query[name]
	if !ok {
		return absent, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, fail(openapi.CodeBadRequest, fmt.Sprintf("%s: expected a whole number from %d to %d", name, least, most)).in(name)
	}
	return n, nil
}

// duration reads a parameter such as 30s; absent is 0.
func (x *exchange) duration(name string) (time.Duration, error) {
	text, ok := x.query[name]
	if !ok {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fail(openapi.CodeBadRequest, name+": expected a duration such as 30s").in(name)
	}
	return d, nil
}

// time reads a parameter that is a time; absent is the zero time.
func (x *exchange) time(name string) (time.Time, error) {
	text, ok := x.query[name]
	if !ok {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fail(openapi.CodeBadRequest, name+": expected a time such as 2026-01-02T15:04:05Z").in(name)
	}
	return t.UTC(), nil
}

// pathNumber reads a segment of the path that is a whole number.
func (x *exchange) pathNumber(name string) (int64, error) {
	n, err := strconv.ParseInt(x.r.PathValue(name), 10, 64)
	if err != nil || n < 0 {
		return 0, fail(openapi.CodeBadRequest, "the path: expected a whole number").in(name)
	}
	return n, nil
}
