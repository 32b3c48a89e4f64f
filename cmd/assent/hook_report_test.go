package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
)

// after returns the document of a call that has run.
func after(t *testing.T, product string, doc func(toolCall) string, c toolCall, failed bool) string {
	t.Helper()
	before := doc(c)
	switch product {
	case "copilot":
		result := map[bool]string{false: "success", true: "failure"}[failed]
		return strings.TrimSuffix(before, "}") + `,"toolResult":{"resultType":"` + result + `"}}`
	case "cursor":
		event := map[bool]string{false: "postToolUse", true: "postToolUseFailure"}[failed]
		return strings.Replace(before, "preToolUse", event, 1)
	case "gemini":
		result := map[bool]string{false: `{}`, true: `{"error":"no"}`}[failed]
		return strings.TrimSuffix(strings.Replace(before, "BeforeTool", "AfterTool", 1), "}") +
			`,"tool_response":` + result + `}`
	}

	event := map[bool]string{false: "PostToolUse", true: "PostToolUseFailure"}[failed]
	return strings.Replace(before, "PreToolUse", event, 1)
}

// hookLedger returns the types of the ledger entries about calls in the store next to an agent's
// file.
func hookLedger(t *testing.T, agentFile string) (types []string) {
	t.Helper()
	at := inboxOn(t, "hook", "--agent-file", agentFile)
	file := filepath.Join(t.TempDir(), "ledger.jsonl")
	if _, errOut, code := ran("", append([]string{"audit", "export", "--out", file}, at...)...); code != 0 {
		t.Fatal(errOut)
	}
	text, err := os.ReadFile(file)
	must.Do(t, err)
	for line := range strings.Lines(string(text)) {
		for _, kind := range []string{"call_allowed", "call_denied", "call_returned", "call_failed", "call_observed",
			"call_not_run"} {
			if strings.Contains(line, `"`+kind+`"`) || strings.Contains(line, `\"`+kind+`\"`) {
				types = append(types, kind)
			}
		}
	}

	return types
}

// TestHookRecordsHowACallEnded: once for each call that has an id.
func TestHookRecordsHowACallEnded(t *testing.T) {
	everyHook(t, func(t *testing.T, product string, doc func(toolCall) string) {
		flags := hookDir(t)
		one, other := toolCall{"Read", `{"path":"/a"}`, "1"}, toolCall{"Read", `{"path":"/b"}`, "2"}
		answers(t, product, doc(one), flags...)
		for _, told := range []string{
			after(t, product, doc, one, false), after(t, product, doc, one, false), after(t, product, doc, other, true),
		} {
			if got := hookRuns(t, product, told, flags...); got != (hooked{}) {
				t.Errorf("%s: %+v", told, got)
			}
		}

		want := []string{"call_allowed", "call_returned", "call_failed"}
		if product == "copilot" || product == "gemini" { // they tell no two runs of one text apart
			want = slices.Insert(want, 1, "call_returned")
		}
		if got := hookLedger(t, flags[1]); !slices.Equal(got, want) {
			t.Errorf("the ledger tells %v, expected %v", got, want)
		}
	})
}

// TestHookRecordsWhatTheProductBlocked: the hook let the call through, and then the product did not run
// it.
func TestHookRecordsWhatTheProductBlocked(t *testing.T) {
	call := toolCall{"Read", `{"path":"/a"}`, "1"}
	for product, change := range map[string]func(doc string) string{
		"claude-code": func(doc string) string {
			doc = strings.Replace(doc, "PreToolUse", "PermissionDenied", 1)
			return strings.TrimSuffix(doc, "}") + `,"reason":"the classifier"}`
		},
		"copilot": func(doc string) string {
			return strings.TrimSuffix(doc,
				"}") + `,"toolResult":{"resultType":"denied"}}`
		},
		"cursor": func(doc string) string {
			doc = strings.Replace(doc, "preToolUse", "postToolUseFailure", 1)
			return strings.TrimSuffix(doc, "}") + `,"failure_type":"permission_denied"}`
		},
	} {
		flags := hookDir(t)
		doc := hookDocs()[product](call)
		answers(t, product, doc, flags...)
		if got := hookRuns(t, product, change(doc), flags...); got != (hooked{}) {
			t.Errorf("%s: %+v", product, got)
		}
		if got := hookLedger(t, flags[1]); !slices.Equal(got, []string{"call_allowed", "call_not_run"}) {
			t.Errorf("%s: the ledger tells %v", product, got)
		}
	}
	blocks(t, "codex", hookRuns(t, "codex", strings.Replace(hookDocs()["codex"](call), "PreToolUse",
		"PermissionDenied", 1),
		hookDir(t)...))
}

// TestHookThatOnlyObserves: nothing is blocked, and the ledger records which calls would have been
// asked about or denied.
func TestHookThatOnlyObserves(t *testing.T) {
	everyHook(t, func(t *testing.T, product string, doc func(toolCall) string) {
		flags := append(hookDir(t), "--observe")
		for i, tool := range []string{"Read", "Bash", "Delete"} {
			call := doc(toolCall{tool, `{}`, string(rune('1' + i))})
			if got := hookRuns(t, product, call, flags...); got != (hooked{}) {
				t.Errorf("%s: %+v", tool, got)
			}
		}

		want := []string{"call_observed", "call_observed", "call_observed"}
		if got := hookLedger(t, flags[1]); !slices.Equal(got, want) {
			t.Errorf("the ledger tells %v, expected %v", got, want)
		}

		for name, bad := range map[string][]string{
			"a store that is gone": append(flags, "--store", "/proc/none/s.db"),
			"no agent":             {"--observe"},
			"a server that is gone": {
				"--observe", "--agent", "dev", "--server", "http://127.0.0.1:1", "--token-file", "/nowhere",
			},
			"flags that contradict": append(flags, "--undeclared", "native"),
		} {
			got := hookRuns(t, product, doc(toolCall{"Bash", `{}`, "9"}), bad...)
			if got.code != 0 || got.out != "" || !strings.HasPrefix(got.err, "assent: not recorded. ") {
				t.Errorf("%s: %+v", name, got)
			}
		}

		got := hookRuns(t, product, "{", flags...)
		if got.code != 0 || got.out != "" || !strings.HasPrefix(got.err, "assent: not recorded. ") {
			t.Errorf("a document that can't be read: %+v", got)
		}
	})
}

// TestHookSaysWhatItCouldNotRecord: a call that has run can't be blocked any more, so the hook only
// reports the failure.
func TestHookSaysWhatItCouldNotRecord(t *testing.T) {
	everyHook(t, func(t *testing.T, product string, doc func(toolCall) string) {
		told := after(t, product, doc, callOf("Read", `{}`), false)
		got := hookRuns(t, product, told, append(hookDir(t), "--store", "/proc/none/s.db")...)
		if got.code != 1 || got.out != "" || !strings.HasPrefix(got.err, "assent: not recorded. ") {
			t.Errorf("%+v", got)
		}
	})
}

// TestHookReportsToAServer: with the token that asks.
func TestHookReportsToAServer(t *testing.T) {
	w := start(t, "")
	token := filepath.Join(t.TempDir(), "token")
	must.Do(t, os.WriteFile(token, []byte(w.token["runtime"]), 0o600))
	everyHook(t, func(t *testing.T, product string, doc func(toolCall) string) {
		flags := []string{"--agent", "desk", "--server", w.ready.API, "--token-file", token}
		call := toolCall{"quote", `{"n":1}`, "1"}
		for _, told := range []string{doc(call), after(t, product, doc, call, false)} {
			got := hookRuns(t, product, told, append(flags, "--observe")...)
			if got != (hooked{}) {
				t.Errorf("%s: %+v", told, got)
			}
		}
	})
}
