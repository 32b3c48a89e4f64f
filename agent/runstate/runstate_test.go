package runstate_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/runstate"
	"github.com/assent-dev/assent/internal/must"
)

func tell(all []*content.ToolApprovalRequest) string {
	var out []string
	for _, q := range all {
		line := fmt.Sprintf("%s %s(%s)%s", q.RequestID, q.Call.ToolName(), q.Call.Args(), content.ServerWords(q.Call))
		if q.Note.Agent != "" {
			line += " by " + q.Note.Agent
		}
		out = append(out, line)
	}

	return strings.Join(out, "\n")
}

// Release 0.24 of the SDK saved testdata/nested.json: an agent made a call, and so did another
// one that it uses as a tool.
func TestReadsASavedState(t *testing.T) {
	state := must.Get(os.ReadFile("testdata/nested.json"))(t)
	all := must.Get(runstate.Read(state))(t)
	want := `c1 transfer({"amount": 5.5, "to": "Zoë"})` + "\n" + `in1 transfer({"amount":7,"to":"eve"}) by desk`
	if got := tell(all); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if !strings.Contains(string(state), `"$schemaVersion": "`+runstate.Newest+`"`) {
		t.Error("the state is not of the newest version")
	}
}

// state returns a state with these interruptions, nested as the SDK does.
func state(items ...string) string {
	return `{"$schemaVersion":"1.14","current_agent":{"name":"bank"},"current_step":` +
		`{"type":"next_step_interruption","data":{"interruptions":[` + strings.Join(items, ",") + `]}}}`
}

func item(raw string, more ...string) string {
	return `{"type":"tool_approval_item","agent":{"name":"bank"},"raw_item":` + raw + strings.Join(more, "") + `}`
}

func TestReadsEveryKindOfCall(t *testing.T) {
	for name, c := range map[string]struct{ item, want string }{
		"function": {item(`{"type":"function_call","call_id":"c","name":"pay","arguments":"{\"n\":1}"}`),
			`c pay({"n":1})`},
		"no arguments": {item(`{"type":"function_call","call_id":"c","name":"pay","arguments":""}`), `c pay()`},
		"namespace": {
			item(`{"type":"function_call","call_id":"c","name":"pay","arguments":"{}"}`,
				`,"tool_name":"pay","tool_namespace":"bank"`),
			`c bank.pay({})`,
		},
		"namespace of the call": {
			item(`{"type":"function_call","call_id":"c","name":"pay","namespace":"bank","arguments":"{}"}`), `c bank.pay({})`,
		},
		"namespace that is the name": {
			item(`{"type":"function_call","call_id":"c","name":"pay","arguments":"{}"}`, `,"tool_namespace":"pay"`), `c pay({})`,
		},
		"hosted MCP": {
			item(`{"type":"mcp_approval_request","id":"mcpr_1","name":"list","arguments":"{}","server_label":"drive"}`),
			`mcpr_1 list({}) on the server "drive"`,
		},
		"shell": {
			item(`{"type":"shell_call","call_id":"c","action":{"commands":["rm x"]}}`, `,"tool_name":"shell"`),
			`c shell({"action":{"commands":["rm x"]}})`,
		},
		"patch": {
			item(`{"type":"apply_patch_call","call_id":"c","operation":{"type":"delete_file","path":"x"}}`,
				`,"tool_name":"apply_patch"`),
			`c apply_patch({"operation":{"type":"delete_file","path":"x"}})`,
		},
		"custom": {item(`{"type":"custom_tool_call","call_id":"c","name":"sql","input":"drop"}`),
			`c sql({"input":"drop"})`},
		"another agent of that name": {
			`{"type":"tool_approval_item","agent":{"name":"bank","identity":"bank#2"},"raw_item":` +
				`{"type":"function_call","call_id":"c","name":"pay"}}`,
			`c pay() by bank`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tell(must.Get(runstate.Read([]byte(state(c.item))))(t)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestNothingWaits(t *testing.T) {
	for _, step := range []string{`null`, `{"type":"next_step_run_again"}`} {
		all, err := runstate.Read([]byte(`{"$schemaVersion":"1.0","current_agent":{"name":"a"},"current_step":` + step + `}`))
		if err != nil || len(all) != 0 {
			t.Errorf("%s: %v, %v", step, all, err)
		}
	}
}

// An interruption that can't be shown completely is an error.
func TestRefusesWhatCannotBeAsked(t *testing.T) {
	pay := item(`{"type":"function_call","call_id":"c","name":"pay","arguments":"{}"}`)
	at := "current_step.data.interruptions[0]."
	for name, c := range map[string]struct{ state, want string }{
		"no JSON":       {`{`, string(content.BadJSON)},
		"a key twice":   {`{"$schemaVersion":"1.1","$schemaVersion":"1.2"}`, string(content.BadJSON)},
		"no version":    {`{"current_step":null}`, "$schemaVersion"},
		"later":         {strings.Replace(state(pay), "1.14", "1.22", 1), `expected 1.0 to 1.21, found "1.22"`},
		"later major":   {strings.Replace(state(pay), "1.14", "2.0", 1), `found "2.0"`},
		"odd version":   {strings.Replace(state(pay), "1.14", "1.014", 1), `found "1.014"`},
		"JavaScript's":  {`{"$schemaVersion":"1.5","currentStep":{},"current_step":{"type":"next_step_interruption"}}`, "current_agent"},
		"twice":         {state(pay, pay), `the call id "c" stands for two interruptions`},
		"no call id":    {state(item(`{"type":"function_call","name":"pay"}`)), at + "raw_item.call_id"},
		"no name":       {state(item(`{"type":"function_call","call_id":"c"}`)), at + "raw_item.name"},
		"no server":     {state(item(`{"type":"mcp_approval_request","id":"m","name":"list"}`)), at + "raw_item.server_label"},
		"another item":  {state(`{"type":"tool_call_item"}`), "expected tool_approval_item"},
		"another call":  {state(item(`{"type":"computer_call","call_id":"c","name":"x"}`)), `found "computer_call"`},
		"bad arguments": {state(item(`{"type":"function_call","call_id":"c","name":"pay","arguments":"[]"}`)), string(content.BadArguments)},
		"cut arguments": {state(item(`{"type":"function_call","call_id":"c","name":"pay","arguments":"{"}`)), string(content.BadArguments)},
		"empty shell":   {state(item(`{"type":"shell_call","call_id":"c","name":"shell"}`)), "raw_item.action"},
		"no agent":      {state(strings.Replace(pay, `"agent":{"name":"bank"},`, "", 1)), at + "agent"},
		"no array":      {strings.Replace(state(), "[]", "{}", 1), "interruptions"},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := runstate.Read([]byte(c.state))
			var bad *content.BadError
			if !errors.As(err, &bad) || all != nil {
				t.Fatalf("read %v, %v", all, err)
			}
			if told := string(bad.Code) + " " + err.Error(); !strings.Contains(told, c.want) {
				t.Errorf("%s does not tell %q", told, c.want)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(state(item(`{"type":"function_call","call_id":"c","name":"pay","arguments":"{}"}`))))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := runstate.Read(data)
		if err != nil && !errors.As(err, new(*content.BadError)) {
			t.Fatalf("%T %v", err, err)
		}
		for _, q := range all {
			if q.RequestID == "" || q.Call.ID() != q.RequestID || q.Call.ToolName() == "" {
				t.Fatalf("%+v", q)
			}
		}
	})
}
