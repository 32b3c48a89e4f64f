package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent/content"
)

func TestSaysThatAnAnswerShowsRoundedNumbers(t *testing.T) {
	var c counted
	k := paying(t, `{"id":9007199254740993}`)
	a := c.asked(k, LoopConfig{})
	th, q := runner{T: t}.asks(a, "pay")

	rounded := q.CreateApproval("")
	rounded.Call.(*content.FunctionCall).Arguments = json.RawMessage(`{"id":9007199254740992}`)
	resp := mustRun(t, a, th, answers(rounded))
	if len(resp.Refused) != 1 || resp.Refused[0].Reason != OtherCall ||
		!strings.Contains(resp.Refused[0].Detail, "rounded numbers") {
		t.Errorf("%+v", resp.Refused)
	}
	if len(c.runs) != 0 {
		t.Errorf("ran %v", c.runs)
	}
}
