package agent

import (
	"fmt"
	"testing"

	"github.com/assent-dev/assent/agent/content"
	"pgregory.net/rapid"
)

// histories generates messages in any order, with few call ids so that ids collide.
func histories(rt *rapid.T) []*content.Message {
	id := func() string {
		return rapid.SampledFrom([]string{"1", "2", "3"}).Draw(rt, "id")
	}
	var out []*content.Message
	for i := range rapid.IntRange(0, 8).Draw(rt, "messages") {
		var m *content.Message
		switch rapid.SampledFrom([]string{"user", "assistant", "results"}).Draw(rt, "role") {
		case "user":
			m = content.UserText(fmt.Sprint("u", i))
		case "assistant":
			m = content.NewMessage(content.Assistant)
			if rapid.Bool().Draw(rt, "text") {
				m.Contents = append(m.Contents, text(fmt.Sprint("a", i)))
			}
			for range rapid.IntRange(0, 3).Draw(rt, "calls") {
				m.Contents = append(m.Contents, call(id(), "f", ""))
			}
		default:
			m = content.NewMessage(content.ToolRole)
			for range rapid.IntRange(1, 3).Draw(rt, "results") {
				m.Contents = append(m.Contents, &content.FunctionResult{CallID: id()})
			}
		}

		out = append(out, m)
	}

	return out
}

// census counts calls and results by id and collects the texts.
func census(messages []*content.Message) (calls, results map[string]int, texts string) {
	calls, results = map[string]int{}, map[string]int{}
	for _, m := range messages {
		for _, c := range m.Contents {
			switch c := c.(type) {
			case *content.FunctionCall:
				calls[c.CallID]++
			case *content.FunctionResult:
				results[c.CallID]++
			case *content.Text:
				texts += c.Text + " "
			}
		}
	}

	return calls, results, texts
}

func TestTidyHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := histories(rt)
		before := tell(in)
		strict := strictHistory(in) == nil
		if inOrder(in) != strict {
			rt.Fatalf("in order %v, strict %v:\n%s", !strict, strict, before)
		}
		out := tidy(in)
		if err := strictHistory(out); err != nil {
			rt.Fatalf("%v:\n%sof\n%s", err, tell(out), before)
		}
		if tell(in) != before {
			rt.Fatalf("the input was changed:\n%sfrom\n%s", tell(in), before)
		}
		if strict && tell(out) != before {
			rt.Fatalf("changed without need:\n%sfrom\n%s", tell(out), before)
		}
		if again := tidy(out); tell(again) != tell(out) {
			rt.Fatalf("tidied twice:\n%sthen\n%s", tell(out), tell(again))
		}
		calls, results, texts := census(in)
		keptCalls, keptResults, keptTexts := census(out)
		if texts != keptTexts {
			rt.Fatalf("texts %q became %q", texts, keptTexts)
		}
		for id := range calls {
			if want := min(calls[id], results[id]); keptCalls[id] != want || keptResults[id] != want {
				rt.Fatalf("%s: %d calls and %d results became %d and %d", id, calls[id], results[id], keptCalls[id],
					keptResults[id])
			}
		}
	})
}

func TestFirstNew(t *testing.T) {
	u := content.UserText("u")
	a := content.AssistantText("a")
	tool := content.NewMessage(content.ToolRole)
	for _, tt := range []struct {
		messages []*content.Message
		fresh    int
		want     int
	}{
		{nil, 0, 0},
		{[]*content.Message{u, u}, 0, 0},
		{[]*content.Message{u, a, u, tool}, 0, 2},
		{[]*content.Message{u, a}, 0, 2},
		{[]*content.Message{u, a, u}, 1, 2},
		{[]*content.Message{u, a, u}, 3, 0},
		{[]*content.Message{u}, 9, 0},
	} {
		if got := FirstNew(tt.messages, tt.fresh); got != tt.want {
			t.Errorf("%sfresh %d: %d, want %d", tell(tt.messages), tt.fresh, got, tt.want)
		}
	}
}

// TestInputHidesWhatIsAsked puts requests and answers at every place of a history and checks
// that no model sees them.
func TestInputHidesWhatIsAsked(t *testing.T) {
	q := &content.ToolApprovalRequest{RequestID: "r", Call: call("1", "pay", "")}
	all := []*content.Message{
		content.NewMessage(content.Assistant, text("a"), q), answers(q.CreateApproval("")),
		content.NewMessage(content.Assistant, q), content.NewMessage(content.System, q, text("s")),
		answers(text("b"), q.CreateRejection(""), &content.TextApprovalResponse{RequestID: "t"}, text("c")),
	}
	for first := range len(all) + 1 {
		in := readInput(NewThread("t"), false, all, first)
		expect(t, fmt.Sprint("from ", first), tell(in.history), "assistant: \"a\"\nsystem: \"s\"\nuser: \"b\" \"c\"\n")
		want := map[int]int{0: 3, 1: 3, 2: 2, 3: 2, 4: 2, 5: 0}[first]
		if len(in.answers) != want || in.more != (first < 5) {
			t.Errorf("from %d: %d answers, more %v", first, len(in.answers), in.more)
		}
	}
}

func TestEmptyMessagesAreLeftOut(t *testing.T) {
	in := readInput(NewThread("t"), false,
		[]*content.Message{content.NewMessage(content.Assistant), content.NewMessage(content.User)}, 0)
	if len(in.history) != 0 || in.more {
		t.Error(in)
	}
}
