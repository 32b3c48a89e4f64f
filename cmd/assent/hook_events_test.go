package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestHookAnswersEachEvent: the document is the event's own.
func TestHookAnswersEachEvent(t *testing.T) {
	const (
		claude = `"session_id":"s","permission_mode":"default"`
		dialog = `{` + claude + `,"hook_event_name":"PermissionRequest","tool_name":"Read","tool_input":{"a":1}}`
		asks   = `{` + claude + `,"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{},"tool_use_id":"1"}`
		ran    = `{` + claude + `,"hook_event_name":"PostToolUse","tool_name":"Nothing","tool_input":{},"tool_response":{}}`
		inner  = `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":`
		gemini = `{"session_id":"s","hook_event_name":"BeforeTool","tool_input":{},"tool_name":"mcp_github_`
		github = `","mcp_context":{"server_name":"github","tool_name":"`
		before = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":`
		other  = `{"sessionId":"s","toolName":"Nothing","toolArgs":{},"toolResult":{"resultType":"failure"}}`
		cursor = `{"conversation_id":"s","hook_event_name":"beforeMCPExecution","tool_input":"{\"a\":1}",` +
			`"tool_name":"mcp__github__get_issue"}`
	)
	bypass := strings.Replace(asks, "default", "bypassPermissions", 1)
	for _, row := range []struct{ product, doc, want, flag string }{
		{"claude-code", dialog, "", ""},
		{"claude-code", strings.Replace(dialog, "Read", "Nothing", 1), inner + `"deny","message":"Not run. Policy denies`, ""},
		{"claude-code", ran, "", ""},
		{"claude-code", asks, before + `"defer","permissionDecisionReason":"people are asked: apr_`, "--defer"},
		{"claude-code", bypass, before + `"deny","permissionDecisionReason":"Not run yet.`, "--defer"},
		{"codex", dialog, "", ""},
		{"copilot", dialog, "", ""},
		{"copilot", asks, `{"permissionDecision":"deny"`, ""},
		{"copilot", other, "", ""},
		{"cursor", cursor, "", ""},
		{"gemini", gemini + "get_issue" + github + `get_issue"}}`, "", ""},
		{"gemini", gemini + "drop" + github + `drop"}}`, `{"decision":"deny","reason":"Not run. Policy denies`, ""},
		{"gemini", gemini + `get_issue"}`, `{"decision":"deny"`, ""},
	} {
		flags := append(hookDir(t), "--wait", "0s")
		if row.flag != "" {
			flags = append(flags, row.flag)
		}
		h := hookRuns(t, row.product, row.doc, flags...)
		if h.code != 0 || h.err != "" || !strings.HasPrefix(h.out, row.want) || (row.want == "") != (h.out == "") {
			t.Errorf("%s answers %s\nwith %+v\nexpected %s", row.product, row.doc, h, row.want)
		}
	}

	nothing := hookRuns(t, "claude-code", strings.Replace(dialog, "PermissionRequest", "PreToolUse", 1))
	blocks(t, "claude-code", nothing)
	if got := hookRuns(t, "claude-code", dialog); got.code != 0 || !strings.HasPrefix(got.out, inner+`"deny"`) {
		t.Errorf("a dialog without anybody to ask: %+v", got)
	}
}

// TestHookReplacesPermissions: with replace_permissions the rules answer
// instead of the product, but not for a tool that is a question to the
// user, or that starts what this hook does not see.
func TestHookReplacesPermissions(t *testing.T) {
	own := map[string][]string{
		"claude-code": {"AskUserQuestion", "ExitPlanMode", "EnterPlanMode", "Skill", "SlashCommand"},
		"codex":       {"request_user_input", "request_permissions"},
		"copilot":     {"ask_user", "exit_plan_mode", "skill"},
		"cursor":      {"AskQuestion", "SwitchMode", "CreatePlan"},
		"gemini":      {"ask_user", "exit_plan_mode", "enter_plan_mode", "activate_skill"},
	}
	everyHook(t, func(t *testing.T, product string, doc func(toolCall) string) {
		dir := t.TempDir()
		tools := "{alias: Read}, {alias: Task}"
		for _, tool := range own[product] {
			tools += ", {alias: " + tool + "}"
		}
		writeFiles(t, dir, map[string]string{
			"dev.agf.yaml": strings.Replace(devAgent, "{alias: Read}, {alias: Bash, approval: true}, "+
				"{alias: Shell, approval: true}, {alias: AskUserQuestion},\n    {alias: Elicitation}", tools, 1),
			"decisions.yaml": "replace_permissions: true\n",
		})
		flags := []string{"--agent-file", dir + "/dev.agf.yaml", "--decisions", dir + "/decisions.yaml", "--wait", "0s"}
		for _, call := range []toolCall{{"Read", `{"a":1}`, "1"}, {"Task", `{"prompt":"x"}`, "2"}} {
			if got := answers(t, product, doc(call), flags...); got != (said{"allow", "", ""}) {
				t.Errorf("%s: %+v", call.tool, got)
			}
		}
		opened := []toolCall{{"Task", `{"mode":"acceptEdits"}`, "3"}, {"Task", `{"isolation":"remote"}`, "4"}}
		for i, tool := range own[product] {
			if tool != "AskUserQuestion" { // people answer it
				opened = append(opened, toolCall{tool, `{"a":1}`, fmt.Sprint(5 + i)})
			}
		}
		for _, call := range opened {
			if got := answers(t, product, doc(call), flags...); got != noOpinion() {
				t.Errorf("%s: %+v", call.tool, got)
			}
		}
	})
}

// TestHookTellsToolsOfServersFromThoseOfTheProduct: an MCP server may
// call a tool as it likes, also as one of Cursor that is allowed.
func TestHookTellsToolsOfServersFromThoseOfTheProduct(t *testing.T) {
	const doc = `{"conversation_id":"s","hook_event_name":"beforeMCPExecution","tool_name":"Read","tool_input":"{}",` +
		`"command":"evil"}`
	if h := hookRuns(t, "cursor", doc, append(hookDir(t), "--wait", "0s")...); h.code != 2 || h.out != "" {
		t.Errorf("a tool of a server that is called as one of Cursor: %+v", h)
	}
}
