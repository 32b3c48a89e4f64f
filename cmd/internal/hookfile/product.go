// Package hookfile writes the hook of assent into the settings of coding
// agents, with what has them block when the hook fails, takes it out
// again, and says how it stands.
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

// product is a coding agent: where it keeps its hooks, and how they are
// written.
type product struct {
	name  string
	title string
	// scopes are those that it has settings for.
	scopes []string
	// events decide, and the first of them before a call; reports come
	// after one, and decide nothing.
	events  []string
	reports []string
	// dialog is the event in the place of the product's own question to
	// its user, which a gentle install writes in the place of the first
	// one; "" where it has none.
	dialog string
	// groups: a hook stands among others in a group with a matcher.
	groups bool
	// version: the file says at its top that it is of version 1.
	version bool
	// exec: the program and its arguments stand by themselves; else they
	// are one line for a shell.
	exec bool
	file func(p edits.Place, scope string) string
	// line names the field with the command.
	line string
	// limit is the field with the time that the hook has, in units.
	limit string
	unit  time.Duration
	// label: a hook has a name.
	label bool
	// closed is the field that has the product block when the hook
	// fails; nil where it has none.
	closed *settings.Field
	// guarded: the product has no such field and lets calls run when the
	// hook fails, so the line has a shell that blocks them then.
	guarded bool
	// open says what runs all the same; "" for nothing.
	open string
	// further is what the person has to do before the hook runs.
	further func(scope string) string
	// off says how the product's hooks are switched off, "" when they are not.
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

// anywhere are the scopes of most products.
func anywhere() []string { return []string{edits.User, edits.Project} }

// permissionRequest is the event in the place of a dialog of three
// products.
const permissionRequest = "PermissionRequest"

func claudeCode() *product {
	return &product{
		name:    "claude-code",
		title:   "Claude Code",
		scopes:  append(anywhere(), edits.Local),
		events:  []string{"PreToolUse", "Elicitation"},
		reports: []string{"PostToolUse", "PostToolUseFailure"},
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

// hookName is the name of the hook where hooks have one.
const hookName = "assent"

// disableAll is the switch of two products that ends all hooks.
const disableAll = "disableAllHooks"

// disabled says that the hooks of a file are switched off in it; "" when
// they are not.
func disabled(s *settings.Table) string {
	if m := s.Member(disableAll); m != nil && m.Value == true {
		return disableAll + " is true"
	}

	return ""
}

// files are those of all scopes: a product reads them as one, so that
// any of them may switch off the hooks of another.
func (p *product) files(at edits.Place) []string {
	var out []string
	for _, scope := range p.scopes {
		out = append(out, p.file(at, scope))
	}

	return out
}

// switchedOff says that a switch of one of the files has the value that
// ends all hooks; "" when none has. The last name of its path is the
// switch.
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

// leftOut says that one of Gemini CLI's files has the hook among those
// that don't run, by its name or by its line; "" when none has.
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

// memberOf is what a path of names leads to in a file; nil for nothing.
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

// slack is what a product gives the hook beside the time that it needs.
const slack = 30 * time.Second

// allEvents are those that may have the hook, the first before a call.
func (p *product) allEvents() []string {
	events := slices.Clone(p.events)
	if p.dialog != "" {
		events = append(events, p.dialog)
	}

	return append(events, p.reports...)
}

// deciding are the events whose hook decides. The first one is that of
// the call itself.
func (p *product) deciding(gentle bool) []string {
	if !gentle {
		return p.events
	}

	return append([]string{p.dialog}, p.events[1:]...)
}

// items are the hook as the product's settings have it, by the events.
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

// handlers are the hook at events that decide nothing, and at those that
// do, with what has calls blocked when it fails. One that only observes
// holds nothing up.
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

// shut is a handler with the field that has calls blocked when it fails.
func (p *product) shut(handler settings.Object, args []string) settings.Object {
	if p.closed == nil || observes(args) {
		return handler
	}

	return append(slices.Clone(handler), *p.closed)
}

func observes(args []string) bool { return slices.Contains(args, "--observe") }

// guard begins a line: a shell runs the hook, and ends as one that blocks
// whatever ends the hook but an answer. It stands in front, so that all
// shells that a product may hand the line to read it alike.
const guard = `sh -c '"$0" "$@" || { echo assent: Not run. The hook gave no answer. >&2; exit 2; }' `

// handler is the hook with the time that the product gives it.
func (p *product) handler(command settings.Object, needs time.Duration) settings.Object {
	out := append(settings.Object{{Name: "type", Value: "command"}}, command...)
	if p.label {
		out = append(out, settings.Field{Name: "name", Value: hookName})
	}
	limit := (needs + slack + time.Second - 1).Truncate(time.Second)

	return append(out, settings.Field{Name: p.limit, Value: int(limit / p.unit)})
}

// item is the handler as an item of the list of its event.
func (p *product) item(handler settings.Object) settings.Object {
	if !p.groups {
		return handler
	}

	return settings.Object{
		{Name: "matcher", Value: "*"},
		{Name: "hooks", Value: []settings.Object{handler}},
	}
}

// shellLine writes words for a POSIX shell.
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

// project is the directory of a file that isn't the user's; "" else.
func (s spot) project() string {
	if s.scope == edits.User {
		return ""
	}

	return s.place.Project
}
