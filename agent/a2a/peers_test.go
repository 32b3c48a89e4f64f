package a2a

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent/content"
)

func TestTellsTheServerOfAHostedCall(t *testing.T) {
	status, err := asked("hosted").Status("m1")
	if err != nil || !strings.Contains(status.Message.Text(), `Approve running search on the server "docs"?`) {
		t.Errorf("%v, %v", status, err)
	}
}

// An SDK of A2A writes numbers as doubles, so what it shows is another
// call. The refusal says why.
func TestSaysThatNumbersCameBackRounded(t *testing.T) {
	a := Asked{
		TaskID: "task-1",
		Requests: []content.InputRequest{&content.ToolApprovalRequest{RequestID: "r",
			Call: &content.FunctionCall{CallID: "c", Name: "pay",
				Arguments: json.RawMessage(`{"id":9007199254740993,"amount":5}`)}}},
	}
	for shown, words := range map[string]string{
		`{"id":9007199254740992,"amount":5.0}`: "rounded numbers",
		`{"id":9007199254740992,"amount":6}`:   "another call",
	} {
		for _, approved := range []string{"true", "false"} {
			m := &Message{
				MessageID: "m",
				TaskID:    "task-1",
				Role:      RoleUser,
				Parts: []Part{
					{
						MediaType: ResponseMediaType,
						Data: json.RawMessage(
							`{"$type":"toolApprovalResponse","requestId":"r","approved":` + approved +
								`,"toolCall":{"callId":"c","name":"pay","arguments":` + shown + `}}`,
						),
					},
				},
			}
			_, err := a.Answers(m)
			var refused *Error
			if !errors.As(err, &refused) || refused.Code != OtherCall || !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %v, want %s", shown, err, words)
			}
		}
	}
}
