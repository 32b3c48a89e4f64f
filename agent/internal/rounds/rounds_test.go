package rounds

import (
	"fmt"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
	"github.com/assent-dev/assent/internal/must"
)

func request(id string) *content.ToolApprovalRequest {
	return &content.ToolApprovalRequest{RequestID: id, Call: &content.FunctionCall{CallID: "c", Name: "f"}}
}

func TestBookForgetsTheOldest(t *testing.T) {
	var b Book
	for i := range maxKept + 5 {
		must.Do(t, b.Record(request(fmt.Sprint("q", i))))
	}
	if len(b.Open) != maxKept || b.Open[0].ID != "q5" {
		t.Fatalf("%d are open from %s", len(b.Open), b.Open[0].ID)
	}
	for len(b.Open) > 0 {
		b.Close(b.Open[0], true)
	}
	if len(b.Closed) != maxKept || Find(b.Closed, "q5") == nil || b.Closed[0].Request != nil {
		t.Errorf("%d are closed", len(b.Closed))
	}
}

// TestStrainedHeads removes the first update of a message. The following updates still belong
// to that message.
func TestStrainedHeads(t *testing.T) {
	drop := func(c content.Content) (bool, error) {
		_, ok := c.(content.InputRequest)
		return !ok, nil
	}
	q := request("q")
	for name, row := range map[string]struct {
		updates []*agent.Update
		ids     string
	}{
		"continued": {[]*agent.Update{{
			MessageID: "m1",
			Role:      content.Assistant,
			Contents:  []content.Content{q},
		}, {Contents: []content.Content{&content.Text{Text: "x"}}}}, "m1 assistant;"},
		"another message": {[]*agent.Update{{MessageID: "m1", Contents: []content.Content{q}}, {
			MessageID: "m2",
			Role:      content.User,
			Contents:  []content.Content{&content.Text{Text: "x"}},
		}}, "m2 user;"},
		"said on the way": {[]*agent.Update{{
			MessageID:    "m1",
			FinishReason: "stop",
			Contents:     []content.Content{q},
		}, {Model: "x"}, {Contents: []content.Content{&content.Text{Text: "x"}}}}, "m1 assistant;"},
		"nothing left": {[]*agent.Update{{MessageID: "m1", Contents: []content.Content{q}}}, ""},
	} {
		s := strainer{take: drop}
		var out []*agent.Update
		for _, u := range row.updates {
			kept := must.Get(s.update(u))(t)
			if kept != nil {
				out = append(out, kept)
			}
		}

		r, ids := agent.Join(out), ""
		for _, m := range r.Messages {
			ids += m.ID + " " + string(m.Role) + ";"
		}
		if ids != row.ids || name == "said on the way" && (r.FinishReason != "stop" || r.Model != "x") {
			t.Errorf("%s: %q, %+v", name, ids, r)
		}
	}
}
