package hook

import (
	"time"

	"github.com/assent-dev/assent/internal/jsonmsg"
)

// product is a coding agent that runs hooks: how its documents read,
// and how it is answered.
type product struct {
	name  string
	title string
	// wait is how long people have unless a flag says it, and reserve
	// the time behind it in which the hook answers in any case. Together
	// they are less than the product's own time, after which most let
	// the call run.
	wait    time.Duration
	reserve time.Duration
	read    func(in jsonmsg.Fields, e *event)
	say     func(w *jsonmsg.Writer, e *event, v verdict)
	// merges: an edit is merged into the arguments, so that it can
	// take nothing out of them.
	merges bool
	// asks names the tool by which the agent asks its user; "" none.
	asks string
	// ownQuestions names the tools that are a question to the user, or
	// that start something which this hook does not see. The rules alone
	// never let them run.
	ownQuestions []string
	// project is the variable of the environment that names the directory
	// of the project; "" none.
	project string
	// elicits are the events at which an MCP server asks the user.
	elicits []string
	// defers: a call can be put off until the session is resumed.
	defers bool
}

// products are the coding agents whose hooks are spoken.
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
