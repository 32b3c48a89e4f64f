// Package hookfile adds the hook of assent to the settings of coding agents, such that they block
// calls if the hook fails. It also removes the hook and reports its status.
package hookfile

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"github.com/assent-dev/assent/cmd/internal/edits"
	"github.com/assent-dev/assent/cmd/internal/hook"
	"github.com/assent-dev/assent/internal/settings"
)

// product is a coding agent, with the location and format of its hook settings.
type product struct {
	name  string
	title string
	// scopes are the scopes in which the product has settings.
	scopes []string
	// events are the events whose hook decides; the first one is before a call. reports are events
	// after a call, whose hook only records.
	events  []string
	reports []string
	// dialog is the event that replaces the product's own question to its user. A gentle install
	// uses it instead of the first event. It is empty if the product has none.
	dialog string
	// groups is set if hooks are in groups with a matcher.
	groups bool
	// version is set if the file must contain "version": 1.
	version bool
	// exec is set if the program and its arguments are separate fields. Otherwise they are one line
	// for a shell.
	exec bool
	file func(p edits.Place, scope string) string
	// line is the name of the field with the command.
	line string
	// limit is the name of the field with the hook's time limit, and unit is the unit of its value.
	limit string
	unit  time.Duration
	// label is set if hooks have a name.
	label bool
	// closed is the field that makes the product block if the hook fails. It is nil if there is
	// none.
	closed *settings.Field
	// guarded is set if the product has no such field and runs calls if the hook fails. The command
	// line then uses a shell that blocks in this case.
	guarded bool
	// open describes the calls that run without the hook even so. It is empty if there are none.
	open string
	// further returns what the person must do before the hook runs.
	further func(scope string) string
	// off returns how the product's hooks are switched off, or an empty string if they are not.
	off func(p edits.Place, s *settings.Table) (string, error)
}

func all() []*product { return []*product{claudeCode(), codex(), copilot(), cursor(), gemini()} }

func find(name string) (*product, error) {
	i := slices.IndexFunc(all(), func(p *product) bool { return p.name == name })
	if i < 0 {
		return nil, fmt.Errorf("%q is no product: expected one of %s", name, strings.Join(hook.Products(), ", "))
	}

	return all()[i], nil
}

func nothing(string) string { return "" }

// anywhere returns the scopes of most products.
func anywhere() []string { return []string{edits.User, edits.Project} }

// permissionRequest is the event of three products that replaces a dialog.
const permissionRequest = "PermissionRequest"

func claudeCode() *product {
	return &product{
		name:    "claude-code",
		title:   "Claude Code",
		scopes:  append(anywhere(), edits.Local),
		events:  []string{"PreToolUse", "Elicitation"},
		reports: []string{"PostToolUse", "PostToolUseFailure", "PermissionDenied"},
		dialog:  permissionRequest,
		groups:  true,
		exec:    true,
		line:    "command",
		limit:   "timeout",
		unit:    time.Second,
		closed:  &settings.Field{Name: "onFailure", Value: "block"},
		file: func(p edits.Place, scope string) string {
			switch {
			case scope == edits.Project:
				return p.InProject(".claude", "settings.json")
			case scope == edits.Local:
				return p.InProject(".claude", "settings.local.json")
			}

			return filepath.Join(cmp.Or(p.Getenv("CLAUDE_CONFIG_DIR"), p.Home(".claude")), "settings.json")
		},
		further: nothing,
		open:    "before version 2.1.295, which doesn't know onFailure, calls run when the hook is killed",
		off: func(p edits.Place, _ *settings.Table) (string, error) {
			return switchedOff(settings.JSON, claudeCode().files(p), true, disableAll)
		},
	}
}

func codex() *product {
	home := func(p edits.Place, scope string) string {
		if dir := p.Getenv("CODEX_HOME"); dir != "" && scope == edits.User {
			return dir
		}

		return p.Either(scope, ".codex")
	}

	return &product{
		name:    "codex",
		title:   "Codex",
		scopes:  anywhere(),
		events:  []string{"PreToolUse"},
		reports: []string{"PostToolUse"},
		dialog:  permissionRequest,
		groups:  true,
		line:    "command",
		limit:   "timeout",
		unit:    time.Second,

		guarded: true,

		file: func(p edits.Place, scope string) string { return filepath.Join(home(p, scope), "hooks.json") },
		further: func(scope string) string {
			text := "Codex runs the hook once you have trusted it: start codex, type /hooks, and trust this one"
			if scope == edits.Project {
				text += "; and the project has to be trusted"
			}

			return text
		},
		open: "calls run when the hook runs out of time, and until you have trusted it (/hooks); and no hook hears of what " +
			"the model writes to a program that runs already (write_stdin)",
		off: func(p edits.Place, _ *settings.Table) (string, error) {
			var files []string
			for _, scope := range anywhere() {
				files = append(files, filepath.Join(home(p, scope), "config.toml"))
			}

			return switchedOff(settings.TOML, files, false, "features", "hooks")
		},
	}
}

func copilot() *product {
	return &product{
		name:    "copilot",
		title:   "Copilot CLI",
		scopes:  anywhere(),
		events:  []string{"preToolUse"},
		reports: []string{"postToolUse"},
		dialog:  permissionRequest,
		version: true,
		line:    "bash",
		limit:   "timeoutSec",
		unit:    time.Second,
		file: func(p edits.Place, scope string) string {
			if scope == edits.Project {
				return p.InProject(".github", "hooks", "assent.json")
			}

			return filepath.Join(cmp.Or(p.Getenv("COPILOT_HOME"), p.Home(".copilot")), "hooks", "assent.json")
		},
		further: nothing,
		open:    "calls run when the hook runs out of time",
		off: func(p edits.Place, s *settings.Table) (string, error) {
			if text := disabled(s); text != "" {
				return text, nil
			}
			dir := cmp.Or(p.Getenv("COPILOT_HOME"), p.Home(".copilot"))

			return switchedOff(settings.JSON, []string{filepath.Join(dir, "settings.json")}, true, disableAll)
		},
	}
}

func cursor() *product {
	return &product{
		name:    "cursor",
		title:   "Cursor",
		scopes:  anywhere(),
		events:  []string{"preToolUse"},
		reports: []string{"postToolUse", "postToolUseFailure"},
		version: true,
		line:    "command",
		limit:   "timeout",
		unit:    time.Second,
		closed:  &settings.Field{Name: "failClosed", Value: true},
		file:    func(p edits.Place, scope string) string { return p.Either(scope, ".cursor", "hooks.json") },
		further: nothing,
		off:     func(edits.Place, *settings.Table) (string, error) { return "", nil },
	}
}

func gemini() *product {
	return &product{
		name:    "gemini",
		title:   "Gemini CLI",
		scopes:  anywhere(),
		events:  []string{"BeforeTool"},
		reports: []string{"AfterTool"},
		groups:  true,
		line:    "command",
		limit:   "timeout",
		unit:    time.Millisecond,
		label:   true,

		guarded: true,

		file: func(p edits.Place, scope string) string {
			if home := p.Getenv("GEMINI_CLI_HOME"); home != "" && scope == edits.User {
				return filepath.Join(home, ".gemini", "settings.json")
			}

			return p.Either(scope, ".gemini", "settings.json")
		},
		further: func(scope string) string {
			if scope == edits.Project {
				return "Gemini CLI runs hooks of a project only where the folder is trusted"
			}

			return ""
		},
		open: "calls run when the hook runs out of time",
		off: func(p edits.Place, _ *settings.Table) (string, error) {
			files := gemini().files(p)
			text, err := switchedOff(settings.JSON, files, false, "hooksConfig", "enabled")
			if text != "" || err != nil {
				return text, err
			}

			return leftOut(files)
		},
	}
}

// hookName is the name of the hook in products whose hooks have names.
const hookName = "assent"

// disableAll is the setting of two products that disables all hooks.
const disableAll = "disableAllHooks"

// disabled returns a message if all hooks are disabled in the file, and an empty string otherwise.
func disabled(s *settings.Table) string {
	if m := s.Member(disableAll); m != nil && m.Value == true {
		return disableAll + " is true"
	}

	return ""
}

// files returns the files of all scopes. The product merges them, so each of them may disable the
// hooks of another.
func (p *product) files(at edits.Place) []string {
	var out []string
	for _, scope := range p.scopes {
		out = append(out, p.file(at, scope))
	}

	return out
}

// switchedOff returns a message if one of the files sets the switch to the value that disables all
// hooks, and an empty string otherwise. The last name of the path is the switch.
func switchedOff(form settings.Form, files []string, off bool, path ...string) (string, error) {
	for _, file := range files {
		m, err := memberOf(form, file, path)
		if err != nil {
			return "", err
		}
		if m != nil && m.Value == off {
			return fmt.Sprintf("%s is %t in %s", strings.Join(path, "."), off, file), nil
		}
	}

	return "", nil
}

// leftOut returns a message if one of Gemini CLI's files lists the hook as disabled, by its name or
// its command line, and an empty string otherwise.
func leftOut(files []string) (string, error) {
	for _, file := range files {
		m, err := memberOf(settings.JSON, file, []string{"hooksConfig", "disabled"})
		if err != nil {
			return "", err
		}
		if m == nil {
			continue
		}
		list, _ := m.Value.([]any)
		if slices.ContainsFunc(list, func(name any) bool {
			text, _ := name.(string)
			return text == hookName || strings.Contains(text, " hook gemini ")
		}) {
			return "hooksConfig.disabled has this hook in " + file, nil
		}
	}

	return "", nil
}

// memberOf returns the member of a file at a path of names, or nil if it doesn't exist.
func memberOf(form settings.Form, file string, path []string) (*settings.Member, error) {
	f, err := settings.Open(file)
	if err != nil {
		return nil, err
	}
	last := len(path) - 1
	t, err := settings.Parse(form, file, f.Text, path[:last]...)
	if err != nil {
		return nil, err
	}

	return t.Member(path[last]), nil
}

// slack is added to the time that the hook needs to get the limit that the product is given.
const slack = 30 * time.Second

// allEvents returns all events that may have the hook. The first one is before a call.
func (p *product) allEvents() []string {
	events := slices.Clone(p.events)
	if p.dialog != "" {
		events = append(events, p.dialog)
	}

	return append(events, p.reports...)
}

// deciding returns the events whose hook decides. The first one is the event of the call itself.
func (p *product) deciding(gentle bool) []string {
	if !gentle {
		return p.events
	}

	return append([]string{p.dialog}, p.events[1:]...)
}

// items returns the hook in the format of the product's settings, by event.
func (p *product) items(program string, line hook.Line, gentle bool) (map[string]settings.Object, error) {
	reporting, deciding, err := p.handlers(program, line)
	out := map[string]settings.Object{}
	for _, event := range p.reports {
		out[event] = p.item(reporting)
	}
	for _, event := range p.deciding(gentle) {
		out[event] = p.item(deciding)
	}

	return out, err
}

// handlers returns the handler for events after a call and the one for events that decide. The
// latter blocks calls if it fails, unless the hook only observes.
func (p *product) handlers(program string, line hook.Line) (reporting, deciding settings.Object, err error) {
	if p.exec {
		command := settings.Object{
			{Name: p.line, Value: program},
			{Name: "args", Value: line.Args},
		}
		reporting = p.handler(command, line.Limit)
		return reporting, p.shut(reporting, line.Args), nil
	}

	text, err := shellLine(append([]string{program}, line.Args...))
	if err != nil {
		return nil, nil, err
	}
	reporting = p.handler(settings.Object{{Name: p.line, Value: text}}, line.Limit)
	if p.guarded && !observes(line.Args) {
		text = guard + text
	}
	deciding = p.handler(settings.Object{{Name: p.line, Value: text}}, line.Limit)

	return reporting, p.shut(deciding, line.Args), nil
}

// shut adds the field that makes the product block calls if the hook fails. An observing hook
// doesn't get it.
func (p *product) shut(handler settings.Object, args []string) settings.Object {
	if p.closed == nil || observes(args) {
		return handler
	}

	return append(slices.Clone(handler), *p.closed)
}

func observes(args []string) bool { return slices.Contains(args, "--observe") }

// guard is the beginning of a command line that runs the hook in sh and exits with the code that
// blocks if the hook ends without an answer. It comes first so that every shell that a product may
// use parses the line the same way.
const guard = `sh -c '"$0" "$@" || { echo assent: Not run. The hook gave no answer. >&2; exit 2; }' `

// handler returns the hook with the time limit for the product.
func (p *product) handler(command settings.Object, needs time.Duration) settings.Object {
	out := append(settings.Object{{Name: "type", Value: "command"}}, command...)
	if p.label {
		out = append(out, settings.Field{Name: "name", Value: hookName})
	}
	limit := (needs + slack + time.Second - 1).Truncate(time.Second)

	return append(out, settings.Field{Name: p.limit, Value: int(limit / p.unit)})
}

// item returns the handler as an item in the list of its event.
func (p *product) item(handler settings.Object) settings.Object {
	if !p.groups {
		return handler
	}

	return settings.Object{
		{Name: "matcher", Value: "*"},
		{Name: "hooks", Value: []settings.Object{handler}},
	}
}

// shellLine quotes words for a POSIX shell.
func shellLine(words []string) (string, error) {
	quoted := make([]string, len(words))
	for i, word := range words {
		var err error
		if quoted[i], err = syntax.Quote(word, syntax.LangPOSIX); err != nil {
			return "", fmt.Errorf("%q can't be written for a shell: %w", word, err)
		}
	}

	return strings.Join(quoted, " "), nil
}

// spot is the file of a product in a scope.
type spot struct {
	*product

	place edits.Place
	scope string
	path  string
}

func (p *product) spotOf(at edits.Place, scope string) (spot, error) {
	if !slices.Contains(p.scopes, scope) {
		return spot{}, fmt.Errorf("--scope %s: %s has no such file: expected %s", scope, p.title,
			strings.Join(p.scopes, " or "))
	}
	s := spot{product: p, place: at, scope: scope, path: p.file(at, scope)}
	if !filepath.IsAbs(s.path) {
		return spot{}, fmt.Errorf("nobody knows where %s keeps its settings: set HOME", p.title)
	}
	if at.OS == "windows" && !p.exec {
		return spot{}, errors.New("on Windows the lines of " + p.title + " are written by hand: docs/contracts/hook.md")
	}

	return s, nil
}

// project returns the project directory of a file, or an empty string if the file is the user's.
func (s spot) project() string {
	if s.scope == edits.User {
		return ""
	}

	return s.place.Project
}
