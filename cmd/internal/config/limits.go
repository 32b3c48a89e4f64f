package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/internal/yamldoc"
)

// Limits is what callers of a server may take of it. Zero fields take the defaults.
type Limits struct {
	Values      int   // JSON values of one call
	Memory      Parts // bytes that what is in work may take
	Heavy       Parts // pieces of heavy work at a time
	Streams     Parts // event streams
	Polls       Parts // requests that wait for a change
	Open        Parts // requests that nobody has decided; no total
	OpenBytes   Parts // bytes of these; no total
	HourlyBytes Parts // bytes of calls recorded in an hour; no total
}

// Parts are what everybody together, one tenant, and one token or person may take.
type Parts struct{ Total, Tenant, Token int64 }

// parts reads the parts of one limit.
func (r *configReader) parts(into *Parts, read func(*int64) func(*yamldoc.Node), total bool) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) {
		known := fields{"tenant": read(&into.Tenant), "token": read(&into.Token)}
		if total {
			known["total"] = read(&into.Total)
		}
		r.mapping(n, known)
		if exceeds(into.Token, into.Tenant) || exceeds(into.Tenant, into.Total) {
			r.wrong(n, "a part is larger than what it is a part of",
				"token no more than tenant, and tenant no more than total", "")
		}
	}
}

func (r *configReader) limits(into *Limits) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) {
		r.mapping(n, fields{
			"values":            r.number(&into.Values),
			"memory":            r.parts(&into.Memory, r.size, true),
			"heavy":             r.parts(&into.Heavy, r.count, true),
			"streams":           r.parts(&into.Streams, r.count, true),
			"polls":             r.parts(&into.Polls, r.count, true),
			"open_requests":     r.parts(&into.Open, r.count, false),
			"open_bytes":        r.parts(&into.OpenBytes, r.size, false),
			"recorded_per_hour": r.parts(&into.HourlyBytes, r.size, false),
		})
	}
}

// exceeds reports whether a part is larger than what it is a part of, if both are given.
func exceeds(part, whole int64) bool { return part > 0 && whole > 0 && part > whole }

// count reads a positive count.
func (r *configReader) count(into *int64) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) {
		var i int
		r.number(&i)(n)
		*into = int64(i)
	}
}

// size reads a number of bytes, such as 256MiB.
func (r *configReader) size(into *int64) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) {
		bytes, err := parseSize(n.Text)
		if n.Kind != yamldoc.String && n.Kind != yamldoc.Number || err != nil {
			r.wrong(n, "this is no size",
				"a whole number above 0, with KiB, MiB or GiB behind it unless it counts bytes, such as 256MiB", "")
			return
		}
		*into = bytes
	}
}

const mostSize = 1 << 50

func parseSize(text string) (int64, error) {
	unit := int64(1)
	for suffix, u := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if digits, ok := strings.CutSuffix(text, suffix); ok {
			text, unit = digits, u
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n <= 0 || n > mostSize/unit {
		return 0, fmt.Errorf("%q is no size", text)
	}
	return n * unit, nil
}
