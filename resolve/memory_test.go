package resolve_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/value"
)

const numberTools = `action_space:
  local_tools:
    - {alias: free, approval: {condition: {args_match: {amount: {gt: 5}}}}}
    - {alias: held, approval: {message_template: "Send it?"}}
`

// allocated returns how many bytes a function allocates, whether they are freed or not.
func allocated(work func()) uint64 {
	var before, after runtime.MemStats
	work() // what is made once is not counted
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestNumbersTakeNoTrees checks that deciding or binding takes a few times the memory of the text,
// regardless of its values.
func TestNumbersTakeNoTrees(t *testing.T) {
	p := plan(t, resolve.Options{}, numberTools)
	args := `{"amount":1,"a":[` + strings.Repeat("1,", 49_000) + `1]}`
	bind := func(c *resolve.Call) func() {
		return func() {
			if _, err := p.Bind(c); err != nil {
				t.Error(err)
			}
		}
	}
	decide := func(c *resolve.Call, want resolve.Outcome) func() {
		return func() {
			if d := p.Decide(c); d.Outcome != want {
				t.Errorf("%v", d.Outcome)
			}
		}
	}
	for name, work := range map[string]func(){
		"allowed": decide(tool("free", args), resolve.Allow),
		"denied":  decide(tool("unheard-of", args), resolve.Deny),
		"bound":   bind(tool("held", args)),
	} {
		t.Run(name, func(t *testing.T) {
			took, most := allocated(work), uint64(8*len(args))
			if took > most {
				t.Errorf("%d bytes of arguments take %d, expected at most %d", len(args), took, most)
			}
		})
	}
}

// TestFieldsOfACallTakeNoTreesOfMillions checks that fields other than the arguments must be small.
func TestFieldsOfACallTakeNoTreesOfMillions(t *testing.T) {
	numbers := "[" + strings.Repeat("1,", 500_000) + "1]"
	for field, line := range map[string]string{
		"tool":        `{"kind":"tool","tool":` + numbers + `}`,
		"remote":      `{"kind":"delegation","agent":"a","remote":` + numbers + `}`,
		"annotations": `{"kind":"mcp_tool","server":"s","tool":"t","annotations":{"a":` + numbers + `}}`,
	} {
		t.Run(field, func(t *testing.T) {
			took := allocated(func() {
				_, err := resolve.ParseCall([]byte(line), value.Limits{})
				if err == nil || !strings.Contains(err.Error(), " values, at most 10000 are read") {
					t.Errorf("%v", err)
				}
			})
			if took > uint64(2*len(line)) {
				t.Errorf("%d bytes take %d", len(line), took)
			}
		})
	}
}
