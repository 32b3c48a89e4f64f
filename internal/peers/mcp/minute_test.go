//go:build peers && minute

package mcp_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/mcp"
)

// TestTheMinuteOfTheSDK: clients of TypeScript give up a request
// after 60 seconds, with their own settings and in real time.
func TestTheMinuteOfTheSDK(t *testing.T) {
	t.Setenv("ASSENT_MCP_STEPS", "minute")
	w := newWorld(t, agentFile, newFiles(), func(cfg *mcp.Config) { cfg.Callers[1].Hold = 25 * time.Minute })
	for _, script := range []string{"legacy.mjs", "dual.mjs"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			text := run(t, "node", script, "http", "", w.front.URL+"/long", w.front.URL, script, "legacy")
			t.Logf("%s", text)
			var s seen
			must.Do(t, json.Unmarshal(text, &s))
			want(t, "without progress", s.Pending, true, "Not run yet.")
			want(t, "with progress", s.Progress, false, "run 1")
			if s.Timeout.Failed == "" || len(s.Messages) < 10 {
				t.Errorf("it didn't give up, or was told %d times: %+v", len(s.Messages), s.Timeout)
			}
			want(t, "after its limit", s.After, false, "run 1")
		})
	}
}
