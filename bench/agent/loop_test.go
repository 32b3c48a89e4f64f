package agent

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// TestSame checks that all subjects make the same messages, and so do the same work.
func TestSame(t *testing.T) {
	for _, calls := range []int{1, 4} {
		var want string
		for _, s := range subjects(t, calls, 0) {
			for range 2 { // the model begins again
				said, err := s.run(t.Context(), before())
				if err != nil {
					t.Fatal(s.name, err)
				}
				for _, m := range said {
					for _, c := range m.Contents {
						if call, ok := c.(*content.FunctionCall); ok {
							call.InformationalOnly = false // Compatible marks the calls that it ran
						}
					}
				}

				raw, err := content.DotNet().AppendMessages(nil, said)
				if err != nil {
					t.Fatal(s.name, err)
				}
				if want == "" {
					want = string(raw)
				}
				if string(raw) != want || len(said) != 2*turns+1 {
					t.Errorf("%s made %d messages\n%s\nwant\n%s", s.name, len(said), raw, want)
				}
			}
		}
	}
}

// BenchmarkTurn measures one turn of the model with its calls.
func BenchmarkTurn(b *testing.B) {
	for _, calls := range []int{1, 4} {
		for _, s := range subjects(b, calls, 0) {
			b.Run(fmt.Sprintf("calls=%d/%s", calls, s.name), func(b *testing.B) {
				messages := before()
				b.ReportAllocs()
				for n := 0; n < b.N; n += turns + 1 {
					if _, err := s.run(b.Context(), messages); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkLongHistory measures a whole run on a long thread.
func BenchmarkLongHistory(b *testing.B) {
	var thread agent.Thread
	if err := json.Unmarshal(longThread(b), &thread); err != nil {
		b.Fatal(err)
	}
	messages := append(thread.Messages, content.UserText("And then?"))
	for _, s := range subjects(b, 1, 0) {
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.run(b.Context(), messages); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
