package wire_test

import (
	"fmt"
	"testing"

	"github.com/assent-dev/assent/mcp/wire"
)

func TestLogLevelsAreOrdered(t *testing.T) {
	levels := []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
	for rank, level := range levels {
		if got := wire.LogRank(level); got != rank {
			t.Errorf("%s has rank %d, expected %d", level, got, rank)
		}
		if _, bad := wire.ReadLog(fmt.Appendf(nil, `{"level":%q,"data":1}`, level)); bad != nil {
			t.Errorf("%s: %v", level, bad)
		}
	}
	for _, level := range []string{"", "trace", "Debug", "warn"} {
		if got := wire.LogRank(level); got != -1 {
			t.Errorf("%q has rank %d, expected -1", level, got)
		}
	}
}

func TestLogLinesAreReadAndWritten(t *testing.T) {
	for _, params := range []string{
		`{"level":"debug","logger":"db","data":{ "a": 1.0 }}`,
		`{"level":"emergency","data":"text"}`,
		`{"level":"info","data":false}`,
	} {
		l, bad := wire.ReadLog([]byte(params))
		if bad != nil {
			t.Errorf("%s: %v", params, bad)
			continue
		}
		if written, err := l.Params(); err != nil || string(written) != params {
			t.Errorf("%s\nbecame %s (%v)", params, written, err)
		}
	}
}

func TestReadLogRefusesUnknownLevelsAndMissingData(t *testing.T) {
	for _, params := range []string{
		``,
		`{}`,
		`{"data":1}`,
		`{"level":"","data":1}`,
		`{"level":"trace","data":1}`,
		`{"level":4,"data":1}`,
		`{"level":"info"}`,
		`{"level":"info","data":null}`,
		`{"level":"info","logger":1,"data":1}`,
		`{"level":"info","data":1,"data":2}`,
		`[]`,
	} {
		if l, bad := wire.ReadLog([]byte(params)); bad == nil || bad.Code != wire.CodeInvalidParams {
			t.Errorf("%s was read as %+v, error %v", params, l, bad)
		}
	}
}
