package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/testwait"
)

// elicits is the document of an MCP server that asks for a seat.
const elicits = `{"session_id":"s","cwd":"/w","permission_mode":"default","hook_event_name":"Elicitation",` +
	`"mcp_server_name":"trains","message":"Which seat?","mode":"form","requested_schema":{"type":"object",` +
	`"properties":{"seat":{"type":"string","enum":["aisle","window"]},"coach":{"type":"integer","maximum":9}},` +
	`"required":["seat"]}}`

// elicited is the answer that an MCP server gets.
type elicited struct{ action, content, why string }

func readElicited(t *testing.T, h hooked) elicited {
	t.Helper()
	var doc struct {
		Reason string
		Inner  struct {
			Event   string `json:"hookEventName"`
			Action  string
			Content json.RawMessage
		} `json:"hookSpecificOutput"`
	}
	err := json.Unmarshal([]byte(h.out), &doc)
	if err != nil || h.code != 0 || h.err != "" || doc.Inner.Event != "Elicitation" {
		t.Fatalf("%+v: %v", h, err)
	}

	return elicited{doc.Inner.Action, string(doc.Inner.Content), doc.Reason}
}

// TestHookHasPeopleAnswerMCPServers: what they give in is the content,
// and a dismissal declines.
func TestHookHasPeopleAnswerMCPServers(t *testing.T) {
	t.Parallel()
	flags := hookDir(t)
	at := inboxOn(t, "hook", flags...)
	for _, c := range []struct {
		answer []string
		want   elicited
	}{
		{
			[]string{"answer", "--field", "seat=aisle", "--field", "coach=7"},
			elicited{"accept", `{"coach":7,"seat":"aisle"}`, ""},
		},
		{[]string{"answer", "--field", "seat=window"}, elicited{"accept", `{"seat":"window"}`, ""}},
		{
			[]string{"dismiss"},
			elicited{"decline", "", "Not answered. A person dismissed the question. Do not ask it again."},
		},
	} {
		told := make(chan hooked, 1)
		go func() { told <- hookRuns(t, "claude-code", elicits, append(flags, "--wait", "30s")...) }()
		waits := testwait.Value(t, "people are asked", func() (string, bool) {
			listed, _, _ := ran("", append([]string{"list", "--json"}, at...)...)
			return listed, strings.Contains(listed, `"qst_`)
		})
		answerIn(t, at, waits, c.answer[0], c.answer[1:]...)
		if got := readElicited(t, <-told); got != c.want {
			t.Errorf("%v: %+v, expected %+v", c.answer, got, c.want)
		}
	}
}

// TestHookCancelsWhatNobodyAnswered: a question of an MCP server that was not answered, or that
// can't be asked, is cancelled. It is never accepted, and never reported as declined by a person.
func TestHookCancelsWhatNobodyAnswered(t *testing.T) {
	t.Parallel()
	flags := append(hookDir(t), "--wait", "0s")
	at := inboxOn(t, "hook", flags[:2]...)
	for old, c := range map[string]struct{ with, says string }{
		`"s"`:                   {`"s"`, "Not answered. Nobody answered the question (qst_"},
		`"form"`:                {`"url","url":"https://x.example/"`, "it wants its user to open a link"},
		`:"form"`:               {`:"voice"`, `the mode "voice": expected form`},
		`requested`:             {"x", "it has no requested_schema"},
		`"integer"`:             {`"object"`, "properties.coach"},
		`"coach":`:              {`"password":`, "properties.password"},
		`"object","properties"`: {`"string","x"`, "can't be put to people"},
	} {
		doc := strings.Replace(elicits, old, c.with, 1)
		got := readElicited(t, hookRuns(t, "claude-code", doc, flags...))
		if got.action != "cancel" || got.content != "" || !strings.Contains(got.why, c.says) {
			t.Errorf("%s\nis answered %+v, expected %s", doc, got, c.says)
		}
	}

	if listed, _, _ := ran("", append([]string{"list", "--json"}, at...)...); strings.Contains(listed, "qst_") {
		t.Errorf("people are still asked: %s", listed)
	}
}

// TestHookDeclinesWhatMCPServersMayNotAsk: a question is declined if no file allows it, if that
// can't be determined, or if it can't be read.
func TestHookDeclinesWhatMCPServersMayNotAsk(t *testing.T) {
	t.Parallel()
	other := strings.Replace(devAgent, "{alias: Elicitation}", "{alias: Other}", 1)
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"dev.agf.yaml": other})
	flags := []string{"--agent-file", dir + "/dev.agf.yaml", "--wait", "0s"}
	got := readElicited(t, hookRuns(t, "claude-code", elicits, flags...))
	if got.action != "decline" || !strings.HasPrefix(got.why, "Not run. Policy denies this call") {
		t.Errorf("a server that may not ask: %+v", got)
	}
	if h := hookRuns(t, "claude-code", elicits, append(flags, "--undeclared", "native")...); h != (hooked{}) {
		t.Errorf("with the product's own dialog: %+v", h)
	}
	blocks(t, "claude-code", hookRuns(t, "claude-code", elicits))
	blocks(t, "claude-code", hookRuns(t, "claude-code", strings.Replace(elicits, "trains", "", 1), flags...))
	blocks(t, "codex", hookRuns(t, "codex", elicits, flags...))
}
