package agent

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/assent-dev/assent/agent/content"
	"pgregory.net/rapid"
)

func TestJoin(t *testing.T) {
	marked := &content.Text{Text: "cited", Common: content.Common{Properties: json.RawMessage(`{"a":1}`)}}
	for name, tt := range map[string]struct {
		updates []*Update
		want    string
	}{
		"nothing": {nil, ""},
		"texts": {[]*Update{{Contents: says(text("a"))}, {Contents: says(text("b"), text("c"))}},
			"assistant: \"abc\"\n"},
		"ids": {[]*Update{{MessageID: "1", Contents: says(text("a"))}, {MessageID: "2", Contents: says(text("b"))}},
			"assistant: \"a\"\nassistant: \"b\"\n"},
		"an id later": {
			[]*Update{
				{Contents: says(text("a"))},
				{MessageID: "1", Contents: says(text("b"))},
				{Contents: says(text("c"))},
			},
			"assistant: \"abc\"\n",
		},
		"roles": {
			[]*Update{
				{Contents: says(text("a"))},
				{Role: content.ToolRole, Contents: says(text("b"))},
				{Contents: says(text("c"))},
			},
			"assistant: \"a\"\ntool: \"bc\"\n",
		},
		"authors": {
			[]*Update{{AuthorName: "x", Contents: says(text("a"))}, {AuthorName: "y", Contents: says(text("b"))}},
			"assistant: \"a\"\nassistant: \"b\"\n",
		},
		"a call between": {
			[]*Update{{Contents: says(text("a"))}, {Contents: says(call("1", "f", ""))}, {Contents: says(text("b"))}},
			"assistant: \"a\" 1=f() \"b\"\n",
		},
		"properties": {[]*Update{{Contents: says(text("a"), marked, text("b"))}},
			"assistant: \"a\" \"cited\" \"b\"\n"},
		"an empty message": {[]*Update{{MessageID: "1"}}, "assistant:\n"},
		"nothing said":     {[]*Update{{Model: "m"}, {FinishReason: "stop"}}, ""},
	} {
		if got := tell(Join(tt.updates).Messages); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, tt.want)
		}
	}
}

func TestJoinReasoning(t *testing.T) {
	r := Join([]*Update{
		{
			Contents: says(&content.Reasoning{Text: "a"}, &content.Reasoning{Text: "b", Protected: "seal"},
				&content.Reasoning{Text: "c"}),
		},
	})
	got := r.Messages[0].Contents
	if first := got[0].(*content.Reasoning); len(got) != 2 || first.Text != "ab" || first.Protected != "seal" {
		t.Errorf("%+v", got)
	}
}

func TestJoinOfTheWhole(t *testing.T) {
	r := Join([]*Update{{ID: "i", Model: "m", ConversationID: "c", Refused: []Refusal{{RequestID: "1"}},
		Contents: says(&content.Usage{Input: 1, Output: 2, Total: 3})},
		{
			FinishReason: "stop",
			Refused:      []Refusal{{RequestID: "2"}},
			Contents:     says(&content.Usage{Input: 10, Output: 20, Total: 30}, text("a")),
		}, {ID: "j"}})
	if r.ID != "j" || r.Model != "m" || r.ConversationID != "c" || r.FinishReason != "stop" || len(r.Refused) != 2 {
		t.Errorf("%+v", r)
	}
	if r.Usage.Input != 11 || r.Usage.Output != 22 || r.Usage.Total != 33 || len(r.Messages) != 1 ||
		r.Text() != "a" {
		t.Errorf("%+v", r.Usage)
	}
}

// TestJoinKeepsPieces cuts a text at random places and joins the pieces.
func TestJoinKeepsPieces(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pieces := rapid.SliceOf(rapid.String()).Draw(rt, "pieces")
		var updates []*Update
		want := ""
		for _, p := range pieces {
			c := &content.Text{Text: p}
			updates, want = append(updates, &Update{MessageID: "m", Contents: says(c)}), want+p
			defer func() {
				if c.Text != p {
					rt.Fatal("a piece was changed")
				}
			}()
		}

		r := Join(updates)
		if r.Text() != want || len(pieces) > 0 && len(r.Messages[0].Contents) != 1 {
			rt.Fatalf("%q became %q", want, r.Text())
		}
	})
}

func TestCollectKeepsWhatCameBefore(t *testing.T) {
	boom := errors.New("boom")
	r, err := Collect(func(yield func(*Update, error) bool) {
		if yield(&Update{Contents: says(text("a"))}, nil) {
			yield(nil, boom)
		}
	})
	if !errors.Is(err, boom) || r.Text() != "a" {
		t.Error(err, r)
	}
}
