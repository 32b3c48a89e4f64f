package hook

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/resolve/shellfacts"
)

// workspace returns the workspace of the call, with facts that only this machine can find out:
// links that lead outside, and the git repository.
func (e *event) workspace() *resolve.Workspace {
	unknown := func(why string) *resolve.Workspace { return &resolve.Workspace{Unknown: why} }
	if e.cwd == "" {
		return unknown("the document of the product names no directory")
	}
	root := e.root
	if root == "" {
		root = e.cwd
	}
	root = filepath.Clean(root)
	at, err := os.Lstat(root)
	switch {
	case !filepath.IsAbs(root), filepath.Dir(root) == root:
		return unknown("the workspace " + root + " is no directory below the root of the file system")
	case err != nil:
		return unknown("the workspace " + root + " can't be read")
	case at.Mode()&os.ModeSymlink != 0:
		return unknown("the workspace " + root + " is a link")
	case !at.IsDir():
		return unknown("the workspace " + root + " is no directory")
	}
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return unknown("the workspace " + root + " can't be read")
	}
	w := &resolve.Workspace{Root: root, Directory: filepath.Clean(e.cwd)}
	if w.Contains(w.Directory) && leads(w.Directory, real) {
		return unknown("the directory " + w.Directory + " leads out of the workspace")
	}
	w.Outside, w.Sensitive = follow(e.names(), w, real)
	w.Foreign = foreign(w)
	e.findSecrets(w, real)
	w.Installed = e.installed(w)

	return w
}

// mostNames limits how many names of a call are looked up. If a call has more, its workspace is
// unknown; see names.
const mostNames = 2000

// contents lists arguments that contain text to write or to say, and no file names.
var contents = []string{
	"content", "contents", "new_string", "old_string", "file_text", "old_str", "new_str", "insert_text", "new_source",
	"description", "prompt", "query", "todos", "instruction", "explanation", "justification", "message",
}

// names returns the words of a call that may be paths: the strings in its arguments, and the words
// of strings that may be command lines.
func (e *event) names() []string {
	if e.named != nil {
		return e.named
	}
	var args any
	if json.Unmarshal(e.call.Args, &args) != nil {
		return nil // the call is denied
	}
	out := []string{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			if len(v) < 4096 {
				out = append(out, v)
			}
			if strings.ContainsAny(v, " \t\n'\"\\*?[") {
				out = append(out, shellfacts.FileWords(v)...)
			}
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for key, item := range v {
				if !slices.Contains(contents, key) {
					walk(item)
				}
			}
		}
	}
	walk(args)
	slices.Sort(out)
	e.named, e.commands = slices.Compact(out), linesOf(args)

	return e.named
}

// lines returns the strings of a call that may be command lines. They are read with the names.
func (e *event) lines() []string {
	e.names()
	return e.commands
}

// linesOf returns the command lines in arguments: texts, and the words of a list, alone and joined.
func linesOf(args any) (out []string) {
	given, _ := args.(map[string]any)
	for _, name := range []string{"command", "cmd", "script", "input"} {
		switch v := given[name].(type) {
		case string:
			out = append(out, v)
		case []any:
			var words []string
			for _, one := range v {
				if text, ok := one.(string); ok {
					words = append(words, text)
				}
			}
			out = append(append(out, words...), strings.Join(words, " "))
		}
	}
	return out
}

// mostBases limits the directories from which names are looked up.
const mostBases = 40

// follow returns the names that a symbolic link leads out of the workspace, and those that one leads to
// a file of the workspace with secrets or settings: from any directory in which the call may run, those
// of the call and of the workspace, and those that the call names, one after the other, because cd may
// go there. A command that moves or copies a directory may give a file below it another path, so then
// the ends of names are looked up too. If there is too much to look up, all names are outside.
func follow(names []string, w *resolve.Workspace, real string) (outside, sensitive []string) {
	if len(names) > mostNames {
		return names, nil
	}
	bases, ok := startsOf(names, w)
	if !ok {
		return names, nil
	}
	moves := slices.ContainsFunc(names, func(n string) bool { return slices.Contains(movers, filepath.Base(n)) })
	for _, n := range names {
		isSecret := func(to string) bool {
			below, err := filepath.Rel(real, to)
			return err == nil && (shellfacts.Sensitive(below, false) ||
				shellfacts.Sensitive(filepath.Dir(below), true) && !shellfacts.Sensitive(n, true))
		}
		all := ends(n, moves)
		if slices.ContainsFunc(all, func(end string) bool { return leaves(end, bases, w, real) }) {
			outside = append(outside, n)
		}
		if slices.ContainsFunc(bases, func(base string) bool {
			return slices.ContainsFunc(all, func(end string) bool {
				return slices.ContainsFunc(targets(base, end), isSecret)
			})
		}) {
			sensitive = append(sensitive, n)
		}
	}

	return outside, sensitive
}

// startsOf returns the directories from which the names of a call may start. It returns false if there
// are too many.
func startsOf(names []string, w *resolve.Workspace) (bases []string, ok bool) {
	bases = []string{w.Directory, w.Root}
	for i := 0; i < len(bases); i++ {
		for _, n := range names {
			at := filepath.Join(bases[i], n)
			if filepath.IsAbs(n) {
				at = filepath.Clean(n)
			}
			if info, err := os.Stat(at); err == nil && info.IsDir() && w.Contains(at) && !slices.Contains(bases, at) {
				bases = append(bases, at)
			}
		}
		if len(bases) > mostBases {
			return nil, false
		}
	}

	return bases, true
}

// targets returns the paths to which symbolic links lead a name, or the names that a pattern matches.
func targets(base, name string) []string {
	at := name
	if !filepath.IsAbs(name) {
		at = filepath.Join(base, name)
	}
	found := []string{at}
	if isGlob(at) {
		found, _ = filepath.Glob(at)
	}
	var out []string
	for _, f := range found {
		// The last part may not be there yet.
		up, rest := f, ""
		for ; up != filepath.Dir(up); up, rest = filepath.Dir(up), filepath.Join(filepath.Base(up), rest) {
			if resolved, err := filepath.EvalSymlinks(up); err == nil {
				if to := filepath.Join(resolved, rest); to != f {
					out = append(out, to)
				}
				break
			}
		}
	}

	return out
}

// movers are programs after which a file has another path.
var movers = []string{"mv", "cp", "rsync", "install"}

// ends returns a name and, if a command moves directories, what it has below each of its directories.
func ends(name string, moves bool) []string {
	out := []string{name}
	for rest := name; moves && !filepath.IsAbs(name); {
		_, below, found := strings.Cut(rest, "/")
		if !found {
			break
		}
		if below != "" {
			out = append(out, below)
		}
		rest = below
	}

	return out
}

// leaves reports whether a name leads out of the workspace from one of the directories.
func leaves(name string, bases []string, w *resolve.Workspace, real string) bool {
	return slices.ContainsFunc(bases, func(base string) bool {
		at := name
		if !filepath.IsAbs(name) {
			at = base + string(filepath.Separator) + name // not cleaned: .. after a link leaves it
		}
		return w.Contains(at) && leads(at, real)
	})
}

// leads reports whether a path, or a path that the pattern matches, is outside of the directory
// real once links are resolved. If the path doesn't exist, its existing parent is checked.
func leads(at, real string) bool {
	if strings.ContainsAny(at, "*?[") {
		if found, err := filepath.Glob(at); err == nil {
			if len(found) > mostNames {
				return true
			}
			if slices.ContainsFunc(found, func(f string) bool { return !isGlob(f) && leads(f, real) }) {
				return true
			}
		}
		at = at[:strings.LastIndexByte(at[:strings.IndexAny(at, "*?[")], filepath.Separator)+1]
	}
	for {
		resolved, err := filepath.EvalSymlinks(at)
		if err == nil {
			return resolved != real && !strings.HasPrefix(resolved,
				strings.TrimSuffix(real, "/")+string(filepath.Separator))
		}
		if target, failed := os.Readlink(at); failed == nil && target != "" {
			return true // a link to what is not there, or a loop of links
		}
		up := filepath.Dir(at)
		if up == at {
			return true
		}
		at = up
	}
}

func isGlob(name string) bool { return strings.ContainsAny(name, "*?[") }

// foreign returns the reason why git may use a repository other than that of the workspace, whose
// configuration can run programs, or an empty string. A clone can contain a bare repository in one
// of its directories.
func foreign(w *resolve.Workspace) string {
	for at := w.Directory; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			if !(&resolve.Workspace{Root: at}).Contains(w.Root) {
				return "a repository of its own is in " + at
			}
			return ""
		}
		if exists(filepath.Join(at, "HEAD")) && exists(filepath.Join(at, "objects")) &&
			exists(filepath.Join(at, "refs")) {
			return "a bare repository is in " + at
		}
		if filepath.Dir(at) == at {
			return ""
		}
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// projectOf returns the project directory: from the product's document, or else from the
// environment of the hook.
func projectOf(in jsonmsg.Fields, variable string) string {
	for _, name := range []string{"workspace_roots", "workspaceRoots"} {
		if in.Has(name) {
			var roots []string
			if json.Unmarshal(in.Raw(name), &roots) == nil && len(roots) == 1 {
				return roots[0]
			}
		}
	}
	if variable == "" {
		return ""
	}

	return os.Getenv(variable)
}
