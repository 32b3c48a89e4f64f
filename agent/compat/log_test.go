package compat_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/compat"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

// Each answer that acts is recorded in .NET's words; one whose call has
// its result by now acts no more.
func TestAnswersAreToldToTheLog(t *testing.T) {
	var log bytes.Buffer
	model := newScripted([]content.Content{&content.Text{Text: "ok"}})
	loop := compat.NewFunctionInvoking(model,
		compat.Config{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	asked := func(id string) *content.ToolApprovalRequest {
		return &content.ToolApprovalRequest{RequestID: "ficc_" + id,
			Call: &content.FunctionCall{CallID: id, Name: "Func" + id}}
	}
	must.Get(loop.Respond(t.Context(), []*content.Message{
		content.NewMessage(content.Assistant, asked("1"), asked("2"), asked("3")),
		content.NewMessage(content.User,
			asked("1").CreateApproval(""), asked("2").CreateRejection("no"), asked("3").CreateApproval("")),
		content.NewMessage(content.ToolRole, &content.FunctionResult{CallID: "3"}),
	}, &agent.Options{}))(t)

	var got []string
	for _, line := range strings.Split(log.String(), "\n") {
		if _, rest, ok := strings.Cut(line, "level=DEBUG msg=\"Processing"); ok {
			got = append(got, rest)
		}
	}
	want := ` approval response for 'Func1'. Approved: True"; approval response for 'Func2'. Approved: False"`
	if strings.Join(got, ";") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ";"), want)
	}
}
