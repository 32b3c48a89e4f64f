package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/agent/filestore"
	"github.com/assent-dev/assent/internal/must"
)

// careful is a function that may or may not track the progress of its calls. Its process dies
// at the end of its first run.
type careful struct {
	agent.Function
	recovers bool
}

func (c careful) Recovers() bool { return c.recovers }

// dying is a store that saves nothing once its process is gone.
type dying struct {
	agent.ThreadStore
	gone bool
}

func (d *dying) Save(ctx context.Context, t *agent.Thread) error {
	if d.gone {
		return errors.New("killed")
	}
	return d.ThreadStore.Save(ctx, t)
}

// TestACallThatItsFunctionKnowsIsNotLost interrupts an approved call in the middle of its run.
// The next process begins it again only if the function tracks its progress (Recoverer).
func TestACallThatItsFunctionKnowsIsNotLost(t *testing.T) {
	for recovers, want := range map[bool]struct {
		runs int
		says string
		kept string
	}{
		true:  {2, `paid 2`, "recovered"},
		false: {1, `the process ended while this call was running`, "lost"},
	} {
		t.Run(fmt.Sprint(recovers), func(t *testing.T) {
			store := &dying{ThreadStore: must.Get(filestore.New(t.TempDir()))(t)}
			runs := 0
			pay := careful{recovers: recovers, Function: agent.NewFunction("pay", "", nil,
				func(context.Context, json.RawMessage) (any, error) {
					runs++
					store.gone = runs == 1
					return fmt.Sprintf("paid %d", runs), nil
				})}
			model := &script{says: []content.Content{
				&content.FunctionCall{CallID: "call_1", Name: "pay"},
				&content.Text{Text: "That is all."},
			}}
			var kept []string
			cfg := agent.LoopConfig{Audit: func(_ context.Context, e agent.Event) error {
				kept = append(kept, e.Type)
				return nil
			}}
			bot := agent.NewChatAgent(agent.NewFunctionInvoking(model, cfg),
				agent.ChatAgentConfig{Tools: []agent.Tool{agent.RequireApproval(pay)}, Store: store})
			first := must.Get(bot.Run(t.Context(), agent.NewThread("t"), content.UserText("Pay.")))(t)
			yes := first.UserInputRequests()[0].(*content.ToolApprovalRequest).CreateApproval("")
			thread := must.Get(store.Load(t.Context(), "t"))(t)
			if _, err := bot.Run(t.Context(), thread, content.NewMessage(content.User, yes)); err == nil {
				t.Fatal("the process did not die")
			}

			store.gone = false
			resp := must.Get(bot.Run(t.Context(), must.Get(store.Load(t.Context(), "t"))(t)))(t)
			var told string
			for r := range content.All[*content.FunctionResult](resp.Messages) {
				told = string(r.Result)
			}

			record := fmt.Sprint(kept)
			if runs != want.runs || !strings.Contains(told, want.says) || !strings.Contains(record, want.kept) {
				t.Errorf("%d runs, told %s, record %s", runs, told, record)
			}
		})
	}
}
