package sqlstore

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
)

// What is put together from parts is the very document that a plain encoder writes, whatever texts it holds.
func TestEncodeIsPlain(t *testing.T) {
	hostile := rapid.SampledFrom([]string{"", `"revisions":null`, `\"revisions\":null`, `x","revisions":null,"y":"`, "<&>\u2028", "\x00é"})
	rapid.Check(t, func(t *rapid.T) {
		r := &approval.Request{ID: hostile.Draw(t, "id"), By: hostile.Draw(t, "by"), Reason: hostile.Draw(t, "reason"), Answer: hostile.Draw(t, "answer")}
		var known revisions
		for n := range 3 {
			r.Revisions = append(r.Revisions, approval.Revision{Number: n, Call: resolve.Call{Args: resolve.Raw(hostile.Draw(t, "args"))}, Note: hostile.Draw(t, "note")})
			for range 2 {
				r.Version++
				want, err := json.Marshal(r)
				if err != nil {
					t.Fatal(err)
				}
				got, now, err := encode(r, known)
				if err != nil || string(got) != string(want) {
					t.Fatalf("%s, %v\nwant %s", got, err, want)
				}
				known = now
			}
		}
	})
}
