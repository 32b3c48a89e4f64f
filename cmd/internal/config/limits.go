package config

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/internal/document"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// Limits are the limits on the resources that callers of a server may use. Zero fields take the
// defaults.
type Limits struct {
	Values      int   `doc:"values"`            // JSON values of one call
	Memory      Parts `doc:"memory"`            // bytes that what is in work may take
	Heavy       Parts `doc:"heavy"`             // pieces of heavy work at a time
	Streams     Parts `doc:"streams"`           // event streams
	Polls       Parts `doc:"polls"`             // requests that wait for a change
	Open        Parts `doc:"open_requests"`     // undecided requests; no total
	OpenBytes   Parts `doc:"open_bytes"`        // bytes of these; no total
	HourlyBytes Parts `doc:"recorded_per_hour"` // bytes of calls recorded in an hour; no total
}

// Parts are the limits for all callers together, for one tenant, and for one token or person.
type Parts struct {
	Total  int64 `doc:"total"`
	Tenant int64 `doc:"tenant"`
	Token  int64 `doc:"token"`
}

// checkParts reports a limit that is larger than the limit that contains it.
func checkParts(d *document.Decoder, n *yamldoc.Node, p *Parts) {
	if exceeds(p.Token, p.Tenant) || exceeds(p.Tenant, p.Total) {
		d.Wrong(
			n,
			"a part is larger than what it is a part of",
			"token no more than tenant, and tenant no more than total",
			"",
		)
	}
}

// exceeds reports whether a part is larger than what it is a part of,
// if both are given.
func exceeds(part, whole int64) bool { return part > 0 && whole > 0 && part > whole }

const mostSize = 1 << 50

func parseSize(text string) (int64, error) {
	unit := int64(1)
	for suffix, u := range map[string]int64{
		"KiB": 1 << 10,
		"MiB": 1 << 20,
		"GiB": 1 << 30,
	} {
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
