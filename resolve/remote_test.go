package resolve_test

import (
	"encoding/json"
	"testing"

	"github.com/assent-dev/assent/resolve"
)

// Remote is written as a call's JSON says it, and read back; nothing
// else is taken for it.
func TestRemoteJSON(t *testing.T) {
	for r, want := range map[resolve.Remote]string{
		resolve.RemoteUnstated: "null",
		resolve.RemoteYes:      "true",
		resolve.RemoteNo:       "false",
	} {
		text, err := json.Marshal(r)
		if err != nil || string(text) != want {
			t.Errorf("%d: %s, %v", r, text, err)
		}
		back := resolve.RemoteNo
		if err := back.UnmarshalJSON(text); err != nil || back != r {
			t.Errorf("%s: %d, %v", text, back, err)
		}
	}

	for _, text := range []string{`"true"`, "1", "{}"} {
		var r resolve.Remote
		if err := json.Unmarshal([]byte(text), &r); err == nil {
			t.Errorf("%s is read as %d", text, r)
		}
	}
}
