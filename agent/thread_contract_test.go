package agent

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
)

// TestThreadContract reads the thread of docs/contracts/thread.md, and
// looks for members that the page does not explain.
func TestThreadContract(t *testing.T) {
	page := must.Get(os.ReadFile("../docs/contracts/thread.md"))(t)
	example := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(page)
	if example == nil {
		t.Fatal("the page has no example")
	}
	thread := &Thread{}
	must.Do(t, json.Unmarshal(example[1], thread))
	if len(thread.Pending()) != 1 || thread.ended("ficc_call_0.1c22b0a4d96e8f13") != howAnswered {
		t.Errorf("pending %v", thread.Pending())
	}
	golden := must.Get(os.ReadFile("testdata/threads/version-1.json"))(t)
	var all map[string]any
	must.Do(t, json.Unmarshal(golden, &all))
	members := map[string]bool{}
	for name := range all {
		members[name] = true
	}
	for _, b := range all["pending"].([]any) {
		for _, c := range b.(map[string]any)["calls"].([]any) {
			for name := range c.(map[string]any) {
				members[name] = true
			}
		}
	}

	for name := range members {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the page does not explain %q", name)
		}
	}
}
