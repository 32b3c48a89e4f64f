package hook

import (
	"time"

	"github.com/assent-dev/assent/internal/jsonmsg"
)

// product is a coding agent that runs hooks. It has functions to read the documents of the agent
// and to write its answers.
type product struct {
	name  string
	title string
	// wait is the time that people have unless --wait is set. reserve is the additional time in
	// which the hook always answers. Their sum is less than the product's own limit, after which
	// most products run the call.
	wait    time.Duration
	reserve time.Duration
	read    func(in jsonmsg.Fields, e *event)
	say     func(w *jsonmsg.Writer, e *event, v verdict)
	// merges is set if the product merges changed arguments into the original ones, so that an edit
	// can't remove an argument.
	merges bool
	// asks is the tool with which the agent asks its user. It is empty if there is none.
	asks string
	// ownQuestions lists tools that ask the user a question or start work that this hook doesn't
	// see. Rules alone never allow them; a person must approve.
	ownQuestions []string
	// project is the environment variable that contains the project directory. It is empty if there
	// is none.
	project string
	// elicits lists the events at which an MCP server asks the user.
	elicits []string
	// blocked lists the events at which the product did not run a call that the hook let through.
	blocked []string
	// defers is set if the product can defer a call until the session is resumed.
	defers bool
}

// products returns the supported coding agents.
func products() []*product {
	return []*product{
		{
			name:    "claude-code",
			project: "CLAUDE_PROJECT_DIR",
			title:   "Claude Code",
			wait:    9 * time.Minute,
			reserve: 30 * time.Second,
			read:    readClaude,
			say:     sayClaude,
			asks:    "AskUserQuestion",
			elicits: []string{elicitation},
			blocked: []string{"PermissionDenied"}, // of its auto mode
			defers:  true,

			ownQuestions: []string{"AskUserQuestion", "ExitPlanMode", "EnterPlanMode", "Skill", "SlashCommand"},
		},
		{
			name:    "codex",
			title:   "Codex",
			wait:    9 * time.Minute,
			reserve: 30 * time.Second,
			read:    readClaude,
			say:     sayCodex,

			ownQuestions: []string{"request_user_input", "request_permissions"},
		},
		{
			name:    "copilot",
			title:   "Copilot CLI",
			wait:    20 * time.Second,
			reserve: 5 * time.Second,
			read:    readCopilot,
			say:     sayCopilot,

			ownQuestions: []string{"ask_user", "exit_plan_mode", "skill"},
		},
		{
			name:    "cursor",
			project: "CURSOR_PROJECT_DIR",
			title:   "Cursor",
			wait:    45 * time.Second,
			reserve: 10 * time.Second,
			read:    readCursor,
			say:     sayCursor,

			ownQuestions: []string{"AskQuestion", "SwitchMode", "CreatePlan"},
		},
		{
			name:    "gemini",
			project: "GEMINI_PROJECT_DIR",
			title:   "Gemini CLI",
			wait:    45 * time.Second,
			reserve: 10 * time.Second,
			read:    readGemini,
			say:     sayGemini,
			merges:  true,

			ownQuestions: []string{"ask_user", "exit_plan_mode", "enter_plan_mode", "activate_skill"},
		},
	}
}
