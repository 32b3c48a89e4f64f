package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

// TestAuditTo: the record of a run is whole although the service keeps
// the history.
func TestAuditTo(t *testing.T) {
	var out bytes.Buffer
	var c counted
	model := paying(t, `{"n":1}`)
	model.keeps = "conv"
	a := c.asked(model, LoopConfig{Audit: AuditTo(&out)})
	thread := NewThread("t")
	q := approvalOf(t, mustRun(t, a, thread, content.UserText("pay")), 0)
	mustRun(t, a, thread, answers(q.CreateApproval("fine")))
	var types []string
	for line := range strings.Lines(out.String()) {
		var e Event
		must.Do(t, json.Unmarshal([]byte(line), &e))
		if e.Thread != "t" || e.Tool != "pay" || e.Arguments != `{"n":1}` || e.At.IsZero() {
			t.Errorf("%+v", e)
		}
		types = append(types, e.Type)
	}

	expect(t, "events", strings.Join(types, " "), "requested answered started finished")
}

func TestAuditToFullDisk(t *testing.T) {
	full := errors.New("no space left")
	if err := AuditTo(fullDisk{full})(t.Context(), Event{}); !errors.Is(err, full) {
		t.Error(err)
	}
}

type fullDisk struct{ err error }

func (b fullDisk) Write([]byte) (int, error) { return 0, b.err }

// TestWhoAnswered: the record and the function learn who or what approved.
func TestWhoAnswered(t *testing.T) {
	for by, want := range map[string]string{"": "user", "standing rule-1": "standing rule-1"} {
		var out bytes.Buffer
		told := ""
		pay := NewFunction("pay", "", nil, func(ctx context.Context, _ json.RawMessage) (any, error) {
			told = InvocationOf(ctx).Approval
			return nil, nil
		})
		a := chat(paying(t, ""), LoopConfig{Audit: AuditTo(&out)}, nil, RequireApproval(pay))
		thread := NewThread("t")
		answer := approvalOf(t, mustRun(t, a, thread, content.UserText("pay")), 0).CreateApproval("")
		answer.By = by
		mustRun(t, a, thread, answers(answer))
		if told != want || strings.Count(out.String(), `"by":"`+want+`"`) != 3 {
			t.Errorf("the function was told %q:\n%s", told, out.String())
		}
	}
}
