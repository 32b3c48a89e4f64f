package resolve_test

import (
	"fmt"
	"testing"

	"github.com/assent-dev/assent/resolve"
)

// TestTrace checks that the trace contains every rule that matches a call, including those that
// don't ask, but no rule whose document can't be read.
func TestTrace(t *testing.T) {
	const policy = "policy_ref: p\napplies: implicit\nrules: [{id: seen, match: {targets: [trade]}, approval: true}]\n"
	p := plan(t, resolve.Options{}, deskTools, policy)
	for _, c := range []struct {
		call *resolve.Call
		want string
	}{
		{tool("trade", `{"amount":5,"currency":"USD"}`), "local_tools.trade 0 false [{false [false true]}]; seen 3 true []; "},
		{tool("trade", `{"currency":"USD"}`), "local_tools.trade 0 unknown [{unknown [unknown true]}]; seen 3 true []; "},
		{tool("trade", `{"a":1,"a":2}`), ""},
		{tool("free", `{}`), ""},
		{&resolve.Call{Kind: "odd"}, ""},
	} {
		got := ""
		for _, x := range p.Trace(c.call) {
			got += fmt.Sprintf("%s %d %v %v; ", x.Rule, x.Use, x.Truth, x.Groups)
			if (x.Condition == nil) != (len(x.Groups) == 0) || x.Range.Start.Line == 0 || x.File == "" {
				t.Errorf("odd trace: %+v", x)
			}
		}

		if got != c.want {
			t.Errorf("%s %s: %s", c.call.Target(), c.call.Args, got)
		}
	}
}
