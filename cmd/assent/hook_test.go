package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/hook"
	"github.com/assent-dev/assent/internal/must"
)

// devAgent may read, runs commands after people agreed, and may look at issues. It may open an
// issue after people agreed.
const devAgent = `schema_version: "1.0.0"
metadata: {id: dev, name: Dev, version: "1.0.0", description: Codes.}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Code., model: any}}
action_space:
  local_tools: [{alias: Read}, {alias: Bash, approval: true}, {alias: Shell, approval: true}, {alias: AskUserQuestion},
    {alias: Elicitation}]
  mcp_servers:
    - alias: github
      server_ref: github
      description: Issues.
      allowed_tools: [get_issue, {name: create_issue, approval: true}]
`

// hookDir writes an agent's file and returns the flags with which hooks ask without a server.
func hookDir(t *testing.T) (flags []string) {
	t.Helper()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"dev.agf.yaml": devAgent})

	return []string{"--agent-file", filepath.Join(dir, "dev.agf.yaml")}
}

// hooked is the outcome of a hook.
type hooked struct {
	out, err string
	code     int
}

// hookRuns runs a hook of a product on a document.
func hookRuns(t *testing.T, product, doc string, args ...string) hooked {
	t.Helper()
	cmd := exec.Command("assent", append([]string{"hook", product}, args...)...)
	cmd.Stdin = strings.NewReader(doc)

	return ends(t, cmd)
}

// ends runs a command to its end.
func ends(t *testing.T, cmd *exec.Cmd) hooked {
	t.Helper()
	var out, errOut bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &errOut
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}

	return hooked{out: out.String(), err: errOut.String(), code: cmd.ProcessState.ExitCode()}
}

// toolCall is a call as a product's document has it.
type toolCall struct {
	tool, args string
	id         string // "" in the documents of products that give none
}

func callOf(tool, args string) toolCall { return toolCall{tool, args, "toolu_1"} }

// hookDocs returns, for each product, a function that writes its document about a call.
func hookDocs() map[string]func(c toolCall) string {
	claude := func(c toolCall) string {
		return fmt.Sprintf(`{"session_id":"s","cwd":"/w","permission_mode":"default","hook_event_name":"PreToolUse",`+
			`"tool_name":%q,"tool_input":%s,"tool_use_id":%q}`, c.tool, c.args, c.id)
	}

	return map[string]func(c toolCall) string{
		"claude-code": claude,
		"codex":       claude,
		"copilot": func(c toolCall) string {
			return fmt.Sprintf(`{"sessionId":"s","timestamp":1,"cwd":"/w","toolName":%q,"toolArgs":%q}`, c.tool, c.args)
		},
		"cursor": func(c toolCall) string {
			return fmt.Sprintf(`{"conversation_id":"s","generation_id":"g","hook_event_name":"preToolUse","cwd":"/w",`+
				`"tool_name":%q,"tool_input":%s,"tool_use_id":%q}`, c.tool, c.args, c.id)
		},
		"gemini": func(c toolCall) string {
			return fmt.Sprintf(`{"session_id":"s","cwd":"/w","hook_event_name":"BeforeTool","tool_name":%q,"tool_input":%s}`,
				c.tool, c.args)
		},
	}
}

// said is the part of an answer that a product reads: allow or deny, the arguments, and the reason.
type said struct{ word, args, why string }

// noOpinion is the hook's answer to a call that the rules allow: nothing, so that the product's own
// permissions decide.
func noOpinion() said { return said{word: "no opinion"} }

// hookSays reads an answer in the same way as the product.
func hookSays(t *testing.T, product, text string) said {
	t.Helper()
	var doc struct {
		Inner struct {
			Permission string          `json:"permissionDecision"`
			Why        string          `json:"permissionDecisionReason"`
			Input      json.RawMessage `json:"updatedInput"`
			Merged     json.RawMessage `json:"tool_input"`
			Context    string          `json:"additionalContext"`
		} `json:"hookSpecificOutput"`
		CopilotWord string          `json:"permissionDecision"`
		CopilotWhy  string          `json:"permissionDecisionReason"`
		CopilotArgs json.RawMessage `json:"modifiedArgs"`
		Context     string          `json:"additionalContext"`
		CursorWord  string          `json:"permission"`
		CursorWhy   string          `json:"agent_message"`
		CursorArgs  json.RawMessage `json:"updated_input"`
		GeminiWord  string          `json:"decision"`
		GeminiWhy   string          `json:"reason"`
	}
	if text == "" {
		return noOpinion()
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatalf("%s reads %q: %v", product, text, err)
	}

	switch product {
	case "copilot":
		return said{doc.CopilotWord, string(doc.CopilotArgs), doc.CopilotWhy + doc.Context}
	case "cursor":
		return said{doc.CursorWord, string(doc.CursorArgs), doc.CursorWhy}
	case "gemini":
		return said{doc.GeminiWord, string(doc.Inner.Merged), doc.GeminiWhy}
	}

	return said{doc.Inner.Permission, string(doc.Inner.Input), doc.Inner.Why + doc.Inner.Context}
}

// editedCall returns what a product reads about a call that an approver changed. Gemini CLI informs
// the model itself.
func editedCall(product, args string) said {
	if product == "gemini" {
		return said{"allow", args, ""}
	}
	return said{"allow", args, "A person changed this call before it ran. It ran with: " + args}
}

// answers runs a hook that must answer with a document.
func answers(t *testing.T, product, doc string, args ...string) said {
	t.Helper()
	h := hookRuns(t, product, doc, args...)
	if h.code != 0 || h.err != "" || h.out != "" && strings.Count(h.out, "\n") != 1 {
		t.Fatalf("%s: exit %d\n%s%s", product, h.code, h.out, h.err)
	}

	return hookSays(t, product, h.out)
}

// everyHook runs a test for each product.
func everyHook(t *testing.T, test func(t *testing.T, product string, doc func(toolCall) string)) {
	for product, doc := range hookDocs() {
		t.Run(product, func(t *testing.T) {
			t.Parallel()
			test(t, product, doc)
		})
	}
}

// TestEveryHookIsTried checks that the tests and the contract have a row
// for each product.
func TestEveryHookIsTried(t *testing.T) {
	contract := string(must.Get(os.ReadFile("../../docs/contracts/hook.md"))(t))
	for _, product := range hook.Products() {
		if !strings.Contains(contract, "\n| `"+product+"` |") || !strings.Contains(contract, " | `"+product+"` |") {
			t.Errorf("docs/contracts/hook.md has no row and no column for %s", product)
		}
		if hookDocs()[product] == nil {
			t.Errorf("%s is missing from hookDocs: how it tells of a call", product)
		}
		if hookSettings("", product) == "" {
			t.Errorf("%s is missing from hookSettings: the file of its hooks", product)
		}
	}
}

func TestHookAllowsDeniesAndAsks(t *testing.T) {
	everyHook(t, func(t *testing.T, product string, doc func(toolCall) string) {
		flags := append(hookDir(t), "--wait", "0s")
		args := `{"path":"/a","n":9007199254740993,"b":1.0}`
		if got := answers(t, product, doc(callOf("Read", args)), flags...); got != noOpinion() {
			t.Errorf("an allowed call: %+v", got)
		}
		got := answers(t, product, doc(callOf("Delete", `{}`)), flags...)
		if got.word != "deny" || !strings.Contains(got.why, `Policy denies this call: the agent's file declares no`) {
			t.Errorf("a tool that no file names: %+v", got)
		}
		if product != "gemini" {
			got = answers(t, product, doc(callOf("mcp__github__delete_repo", `{}`)), flags...)
			if got.word != "deny" || !strings.Contains(got.why, "delete_repo") {
				t.Errorf("a tool that isn't allowed: %+v", got)
			}
		}

		got = answers(t, product, doc(callOf("Bash", `{"command":"ls"}`)), flags...)
		if got.word != "deny" || got.args != "" || !strings.HasPrefix(got.why, "Not run yet. People are still asked") {
			t.Errorf("what people are asked about: %+v", got)
		}
	})
}

// TestHookRunsWhatWasApprovedOnce: the request waits in one process, the
// inbox answers in another, and another hook takes the run.
func TestHookRunsWhatWasApprovedOnce(t *testing.T) {
	everyHook(t, func(t *testing.T, product string, doc func(toolCall) string) {
		flags := append(hookDir(t), "--wait", "0s")
		call := doc(callOf("Bash", `{"command":"make"}`))
		asked := answers(t, product, call, flags...)
		at := inboxOn(t, "hook", flags[:2]...)
		if again := answers(t, product, call, flags...); again != asked {
			t.Errorf("the same call once more: %+v, expected %+v", again, asked)
		}
		approveIn(t, at, asked.why)
		if got := answers(t, product, call, flags...); got != (said{"allow", "", ""}) {
			t.Errorf("the approved call: %+v", got)
		}

		got := answers(t, product, call, flags...)
		if got.word != "deny" || got.args != "" {
			t.Fatalf("the same call once it ran: %+v", got)
		}
		if product == "copilot" || product == "gemini" { // they don't tell calls apart: it is asked as a new one
			if id := hookRequest(got.why); id == "" || id == hookRequest(asked.why) {
				t.Errorf("the same text once more: %s", got.why)
			}
		} else if got.why != "Not run again. The approval has been used already." {
			t.Errorf("the same call once it ran: %s", got.why)
		}
	})
}

func hookRequest(why string) string { return regexp.MustCompile(`(apr|qst)_[0-9a-z]+`).FindString(why) }

// TestHookWaitsForPeople: a decision that is made while the hook waits is returned immediately.
func TestHookWaitsForPeople(t *testing.T) {
	t.Parallel()
	flags := hookDir(t)
	at := inboxOn(t, "hook", flags...)
	call := hookDocs()["claude-code"](callOf("mcp__github__create_issue", `{"title":"x"}`))
	asked := answers(t, "claude-code", call, append(flags, "--wait", "0s")...)
	done := make(chan said, 1)
	go func() { done <- answers(t, "claude-code", call, append(flags, "--wait", "1m")...) }()
	args := append([]string{"deny", hookRequest(asked.why), "--reason", "not from this branch"}, at...)
	if _, errOut, code := ran("", args...); code != 0 {
		t.Fatal(errOut)
	}
	want := "Not run. you denied this call: not from this branch. Do not try it again."
	if got := <-done; got != (said{"deny", "", want}) {
		t.Errorf("a call that was denied: %+v", got)
	}
}

// TestHookRunsWhatAnApproverEdited: the product gets the approved arguments. If it can't take
// arguments, the reason contains them.
func TestHookRunsWhatAnApproverEdited(t *testing.T) {
	everyHook(t, func(t *testing.T, product string, doc func(toolCall) string) {
		flags := append(hookDir(t), "--wait", "0s")
		at := inboxOn(t, "hook", flags[:2]...)
		edits := func(call, to string) said {
			asked := answers(t, product, call, flags...)
			edit(t, at, hookRequest(asked.why), to)
			return answers(t, product, call, flags...)
		}
		to := `{"command":"make -n","timeout":1e3}`
		if got := edits(doc(toolCall{"Bash", `{"command":"make"}`, "1"}), to); got != editedCall(product, to) {
			t.Errorf("an edited call: %+v", got)
		}

		got := edits(doc(toolCall{"Bash", `{"command":"make","force":true}`, "2"}), `{"command":"make"}`)
		if product != "gemini" {
			if got != editedCall(product, `{"command":"make"}`) {
				t.Errorf("an edit that takes an argument out: %+v", got)
			}
			return
		}

		want := `Not run. It was approved with other arguments, and Gemini CLI can't take the argument force out ` +
			`of a call. Make a new call with what was approved: {"command":"make"}`
		if got != (said{"deny", "", want}) {
			t.Errorf("an edit that can't be run: %+v", got)
		}
	})
}

// TestHookRunsNothingInAnotherDirectory than the one that people were
// shown: neither while they are asked, nor once they have approved.
func TestHookRunsNothingInAnotherDirectory(t *testing.T) {
	everyHook(t, func(t *testing.T, product string, doc func(toolCall) string) {
		flags := append(hookDir(t), "--wait", "0s")
		at := inboxOn(t, "hook", flags[:2]...)
		call := doc(toolCall{"Bash", `{"command":"rm -rf build"}`, "1"})
		elsewhere := func(id string) string {
			return strings.Replace(doc(toolCall{"Bash", `{"command":"rm -rf build"}`, id}), `"/w"`, `"/elsewhere"`, 1)
		}
		if !strings.Contains(elsewhere("2"), "/elsewhere") {
			t.Fatal("the document names no directory")
		}
		asked := answers(t, product, call, flags...).why
		id := hookRequest(asked)
		want := `Not run. People are asked about the same call in another directory, "/w" (` + id + ")."
		refused := func() {
			t.Helper()
			got := answers(t, product, elsewhere("2"), flags...)
			if got.word != "deny" || !strings.HasPrefix(got.why, want) {
				t.Errorf("%+v", got)
			}
		}

		refused()
		approveIn(t, at, asked)
		refused()
		if got := answers(t, product, call, flags...); got.word != "allow" {
			t.Errorf("where it was approved: %+v", got)
		}
		got := answers(t, product, elsewhere("3"), flags...)
		if got.word != "deny" || hookRequest(got.why) == "" || hookRequest(got.why) == id {
			t.Errorf("afterwards people are asked anew: %+v", got)
		}
	})
}

// edit edits a request and so approves it.
func edit(t *testing.T, at []string, id, args string) {
	t.Helper()
	out, errOut, _ := ran("", append([]string{"show", id, "--json"}, at...)...)
	binding := regexp.MustCompile(`"binding": *"([^"]+)"`).FindStringSubmatch(out)
	if binding == nil {
		t.Fatalf("show %s: %s%s", id, out, errOut)
	}
	file := filepath.Join(t.TempDir(), "args.json")
	writeFiles(t, filepath.Dir(file), map[string]string{"args.json": args})
	_, errOut, code := ran("", append([]string{"edit", id, "--args", file, "--yes", "--binding", binding[1]}, at...)...)
	if code != 0 {
		t.Fatalf("edit %s: %s", id, errOut)
	}
}

// TestHookRefusesEditsAtEventsThatTakeNone: the approval is withdrawn, and the model is informed.
func TestHookRefusesEditsAtEventsThatTakeNone(t *testing.T) {
	t.Parallel()
	flags := append(hookDir(t), "--wait", "0s")
	at := inboxOn(t, "hook", flags[:2]...)
	shell := `{"conversation_id":"s","hook_event_name":"beforeShellExecution","command":"make","cwd":"/w"}`
	asked := answers(t, "cursor", shell, flags...)
	edit(t, at, hookRequest(asked.why), `{"command":"make -n"}`)
	got := answers(t, "cursor", shell, flags...)
	want := `Not run. It was approved with other arguments, and Cursor runs the arguments of the model at this point, ` +
		`and no others. Make a new call with what was approved: {"command":"make -n"}`
	if got != (said{"deny", "", want}) {
		t.Errorf("an edited command: %+v", got)
	}
	out, _, _ := ran("", append([]string{"show", hookRequest(asked.why), "--json"}, at...)...)
	if !strings.Contains(out, `"state": "expired"`) {
		t.Errorf("the request is %s", out)
	}
}

// TestHookLeavesUndeclaredToolsToTheProduct: silence is the product's
// own rules, and for nothing but tools that no file names.
func TestHookLeavesUndeclaredToolsToTheProduct(t *testing.T) {
	everyHook(t, func(t *testing.T, product string, doc func(toolCall) string) {
		flags := append(hookDir(t), "--wait", "0s", "--undeclared", "native")
		if got := hookRuns(t, product, doc(callOf("Delete", `{}`)), flags...); got != (hooked{}) {
			t.Errorf("a tool that no file names: %+v", got)
		}
		if got := answers(t, product, doc(toolCall{"Bash", `{}`, "2"}), flags...); got.word != "deny" {
			t.Errorf("a tool that is asked about: %+v", got)
		}
		flags[len(flags)-1] = "ask"
		got := answers(t, product, doc(toolCall{"Delete", `{}`, "3"}), flags...)
		if got.word != "deny" || hookRequest(got.why) == "" {
			t.Errorf("people are not asked about a tool that no file names: %+v", got)
		}
	})
}
