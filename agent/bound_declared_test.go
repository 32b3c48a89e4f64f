package agent

import (
	"testing"

	"github.com/assent-dev/assent/agent/content"
)

// markedDeclared is a tool of the caller's that needs approval.
type markedDeclared struct{ declaredTool }

func (m markedDeclared) Unwrap() Tool { return RequireApproval(toolOf("x", nil)) }

func TestCallerChangesADeclaredCallInPlace(t *testing.T) {
	a := chat(talk(t, said(call("1", "theirs", `{"n":5}`)), said(text("ok"))), LoopConfig{}, nil,
		declaredTool("theirs"))
	th := NewThread("t")
	resp := mustRun(t, a, th, content.UserText("pay"))
	for f := range content.All[*content.FunctionCall](resp.Messages) {
		f.Name = "changed"
	}
	resp = mustRun(t, a, th)
	expect(t, "shown again", tell(resp.Messages), "assistant: 1=theirs({\"n\":5})\n")
}
