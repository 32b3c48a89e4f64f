package hook

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assent-dev/assent/resolve"
)

// protectedNames lists directories and files that a call may touch only if a person approves it,
// regardless of the rules: the settings of the products, with which the hook could be removed, and
// those of assent.
var protectedNames = []string{
	".claude", ".claude.json", ".codex", ".gemini", ".copilot", ".cursor", ".github/hooks",
	"claude-code/managed-settings",
	"managed-settings.json", ".mcp.json", "assent.key", "hook.db",
	"hook.db-wal", "hook.db-shm", "hook.db-journal", "mcp.token", "mcp.sign-ins",
	"config/assent", ".assent",
}

// touches returns the name of a settings file of a product or of assent that the call may touch, or
// an empty string if the call names none.
func (e *event) touches(f flags) string {
	files := e.product.settings(f)
	changes := slices.ContainsFunc(e.names(), func(n string) bool {
		return slices.Contains(changers, filepath.Base(n)) || n == "-delete"
	})
	recursive := slices.ContainsFunc(e.names(), func(n string) bool {
		return slices.Contains([]string{"chmod", "chown", "chgrp", "clean"}, filepath.Base(n))
	})
	dirs, known := e.places()
	if !known {
		for _, file := range files { // any directory, so also those of the files
			dirs = append(dirs, filepath.Dir(file))
		}
	}
	for _, text := range e.names() {
		// Quotes and backslashes would hide a name from this search.
		plain := strings.ToLower(strings.NewReplacer("'", "", `"`, "", `\`, "").Replace(text))
		for _, name := range protectedNames {
			if holdsName(plain, name) {
				return name
			}
		}
		if strings.ContainsAny(text, " \n") {
			continue // the words of a line come by themselves
		}
		for _, dir := range dirs {
			if name := e.touchesFrom(dir, text, files, changes, recursive); name != "" {
				return name
			}
		}
	}

	return ""
}

// touchesFrom returns the name of a settings file that a word of the call means if programs run in a
// directory, or an empty string.
func (e *event) touchesFrom(dir, text string, files []string, changes, recursive bool) string {
	at := text
	home, _ := os.UserHomeDir()
	switch {
	case at == "~" || strings.HasPrefix(at, "~/"), strings.HasPrefix(at, "$HOME"):
		at = filepath.Join(home, strings.TrimPrefix(strings.TrimPrefix(at, "~"), "$HOME"))
	case !filepath.IsAbs(at):
		at = filepath.Join(dir, at)
	}
	at = filepath.Clean(at)
	real := text // below the directory of the call
	if resolved, err := filepath.EvalSymlinks(at); err == nil {
		if below, err := filepath.Rel(e.cwd, resolved); err == nil && resolved != at && e.inDirectory(resolved) {
			real = below
		}
		at = resolved
	}
	for _, name := range protectedNames {
		if real != text && holdsName(strings.ToLower(real), name) {
			return name
		}
	}
	inside, pattern := e.inDirectory(at), isGlob(text)
	reaches := at != "/" && (!inside || changes && (recursive || filepath.Clean(text) != "."))
	for _, file := range files {
		if at == file || pattern && globs(at, file, changes || !inside) || reaches && strings.HasPrefix(file, at) &&
			(&resolve.Workspace{Root: at}).Contains(file) {
			return file
		}
	}

	return ""
}

// inDirectory reports whether a path is in the directory of the call.
func (e *event) inDirectory(at string) bool { return (&resolve.Workspace{Root: e.cwd}).Contains(at) }

// changers are programs that remove, replace or move the directories that they are given.
var changers = []string{
	"mv", "rm", "rmdir", "cp", "rsync", "install", "ln", "chmod", "chown", "chgrp", "shred", "unlink", "clean", "tar",
	"unzip", "truncate", "trash",
}

// globs reports whether a pattern matches a file or, with above, a directory above it.
func globs(pattern, file string, above bool) bool {
	for at := file; ; at = filepath.Dir(at) {
		if ok, err := filepath.Match(pattern, at); ok || err != nil {
			return true
		}
		if !above || filepath.Dir(at) == at {
			return false
		}
	}
}

// holdsName reports whether the text contains the name as a whole word, or a pattern that matches
// the name.
func holdsName(text, name string) bool {
	for rest := text; ; {
		i := strings.Index(rest, name)
		if i < 0 {
			break
		}
		end := i + len(name)
		if (i == 0 || !isNameRune(rest[i-1])) && (end == len(rest) || !isNameRune(rest[end]) || rest[end] == '.') {
			return true
		}
		rest = rest[i+1:]
	}
	if !strings.ContainsAny(text, "*?[") {
		return false
	}

	return slices.ContainsFunc(strings.FieldsFunc(text,
		func(c rune) bool { return strings.ContainsRune("/ \t\n;&|", c) }),
		func(c string) bool {
			ok, _ := filepath.Match(c, name)
			return ok && c[0] == name[0] && len(c) > 1
		})
}

func isNameRune(c byte) bool {
	return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 0x80
}

// settings returns the paths of the files that decide about a call, with symbolic links resolved.
func (p *product) settings(f flags) []string {
	var out []string
	for _, name := range slices.Concat([]string{f.Agent, f.People, f.Store, f.Decisions, f.TokenFile()}, f.Policies) {
		if name == "" {
			continue
		}
		if abs, err := filepath.Abs(name); err == nil {
			out = append(out, abs)
			if real, err := filepath.EvalSymlinks(abs); err == nil {
				out = append(out, real)
			}
		}
	}
	if f.Agent != "" && f.Store == "" && len(out) > 0 {
		out = append(out, filepath.Join(filepath.Dir(out[0]), "hook.db"))
	}
	for _, file := range slices.Clone(out) { // what SQLite keeps next to a store
		out = append(out, file+"-wal", file+"-shm", file+"-journal")
	}
	for _, dir := range []string{os.Getenv("XDG_CONFIG_HOME"), filepath.Join(os.Getenv("HOME"), ".config")} {
		if filepath.IsAbs(dir) {
			out = append(out, filepath.Join(dir, "assent"))
		}
	}

	return out
}
