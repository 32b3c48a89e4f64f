package shellfacts

import (
	"path"
	"slices"
	"strings"
)

// Workspace is the directory tree in which a call works, as declared by the runtime that makes the
// call. A file is outside if its path leaves Root.
type Workspace struct {
	// Root is the absolute path of the workspace.
	Root string `json:"root,omitempty"`
	// Directory is the directory of the call, from which relative paths start. If it is empty, they
	// start from Root.
	Directory string `json:"directory,omitempty"`
	// Outside lists paths, as written in the call, that a symbolic link leads out of the workspace.
	Outside []string `json:"outside,omitempty"`
	// Sensitive lists paths, as written in the call, that a symbolic link leads to a file with secrets
	// or settings.
	Sensitive []string `json:"sensitive,omitempty"`
	// Foreign is the reason why git would not use the repository of the workspace in Directory. It
	// is empty if git would.
	Foreign string `json:"foreign,omitempty"`
	// Secrets lists files of the workspace that may hold secrets, as paths below Root, as far as the
	// call may search them. It is nil if the runtime did not look.
	Secrets []string `json:"secrets,omitzero"`
	// Incomplete is the reason why Secrets may lack files that a search reads. It is empty if it lacks
	// none.
	Incomplete string `json:"incomplete,omitempty"`
	// Installed lists programs that are installed in the project, so that npx downloads nothing to run
	// them.
	Installed []string `json:"installed,omitempty"`
	// Unknown is the reason why the runtime can't name the workspace. If it is set, Root is not
	// used.
	Unknown string `json:"unknown,omitempty"`
}

// Doubt returns the reason why the location of files is unknown, or an empty string if it is known.
func (w *Workspace) Doubt() string {
	switch {
	case w == nil:
		return "the runtime named no workspace"
	case w.Unknown != "":
		return Excerpt(w.Unknown)
	case !path.IsAbs(w.Root), path.Clean(w.Root) == "/":
		return "the workspace is no directory below the root of the file system"
	case w.Directory != "" && !path.IsAbs(w.Directory):
		return "the directory of the call is no absolute path"
	}

	return ""
}

func (w *Workspace) directory() string {
	if w.Directory == "" {
		return w.Root
	}

	return w.Directory
}

// Contains reports whether an absolute path is in the workspace. It does not resolve links.
func (w *Workspace) Contains(name string) bool {
	root, name := path.Clean(w.Root), path.Clean(name)
	return name == root || strings.HasPrefix(name, root+"/")
}

// leaves reports whether a path may be outside. If the path starts from a directory other than that
// of the call (moved), it is resolved from the root, from where it leaves soonest.
func (w *Workspace) leaves(name string, moved bool) bool {
	switch name {
	case "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr":
		return false
	}
	if strings.HasPrefix(name, "~") || slices.Contains(w.Outside, name) ||
		slices.ContainsFunc(strings.Split(name, "/"), mayBeParent) {
		return true
	}
	if path.IsAbs(name) {
		return !w.Contains(name)
	}

	return !w.Contains(path.Join(w.directory(), name)) || moved && !w.Contains(path.Join(w.Root, name))
}

// isStart reports whether cd with these words stays in the directory of
// the call, and whether it goes there or to the root of the workspace.
func (w *Workspace) isStart(args []word) (stays, starts bool) {
	if len(args) != 1 || !args[0].known || w.Doubt() != "" || slices.Contains(w.Outside, args[0].text) {
		return false, false
	}
	name := args[0].text
	if !path.IsAbs(name) {
		name = path.Join(w.directory(), name)
	}
	stays = name != "" && path.Clean(name) == path.Clean(w.directory())

	return stays, stays || path.Clean(name) == path.Clean(w.Root)
}

// isOwnPart reports whether cd with these words goes to a directory that belongs to the project.
func (w *Workspace) isOwnPart(args []word) bool {
	if len(args) != 1 || !args[0].known || w.Doubt() != "" || slices.Contains(w.Outside, args[0].text) ||
		!plain(args[0].text) || args[0].text[0] == '-' {
		return false
	}
	name := args[0].text
	if !path.IsAbs(name) {
		name = w.Root + "/" + name // below which of its directories makes no difference
	}

	return w.isOwn(name)
}

// isOwn reports whether a directory of the workspace holds the project's own code, and not that of
// others, as its name says.
func (w *Workspace) isOwn(directory string) bool {
	below := strings.TrimPrefix(directory, path.Clean(w.Root))
	return strings.HasPrefix(directory+"/", path.Clean(w.Root)+"/") &&
		!slices.ContainsFunc(strings.Split(strings.Trim(below, "/"), "/"), func(part string) bool {
			return part != "." && strings.HasPrefix(part, ".") || slices.Contains(othersCode, strings.ToLower(part))
		})
}

// othersCode has names of directories whose code is that of others, or data.
var othersCode = []string{
	"node_modules", "vendor", "third_party", "third-party", "thirdparty", "testdata", "fixture", "fixtures", "external",
	"deps", "dist", "build", "target", "tmp", "temp", "downloads", "site-packages", "venv", "env", "submodules",
	"__fixtures__", "bower_components",
}

// In returns the workspace of a call that chooses its own directory, and whether that is another
// directory.
func (w *Workspace) In(directory string) (in *Workspace, moved bool) {
	if stays, _ := w.isStart([]word{{text: directory, known: true}}); stays || directory == "" {
		return w, false
	}
	if w.Doubt() != "" {
		return w, true
	}
	changed := *w
	switch {
	case w.leaves(directory, false):
		changed.Directory = "/"
	case path.IsAbs(directory):
		changed.Directory = directory
	default:
		changed.Directory = path.Join(w.directory(), directory)
	}

	return &changed, true
}

// mayBeParent reports whether a pattern may match the name of the parent
// directory.
func mayBeParent(component string) bool {
	if !strings.ContainsAny(component, "*?[") {
		return false // a plain one is taken as what it is
	}

	return (component[0] == '.' || component[0] == '[') && mayMeet(component, "..")
}

// file is a path that a call names.
type file struct {
	path    string
	written bool
	// named is set if only the file's name or size is shown, not its content.
	named bool
}

// placed determines which files are outside and which are sensitive.
func (r *reader) placed(f *Facts) {
	if r.unplaced == "" && ((r.makesLinks || r.getsFiles) && (r.shown > 0 || len(r.searches) > 0) ||
		r.makesLinks && r.followed > 0) {
		r.unplaced = "the line may make a link, and names files that may be behind it"
	}
	if r.unplaced != "" {
		f.WhyFiles = r.unplaced
		return
	}
	outside, sensitive := place(r.files, r.workspace, r.changesDir)
	for _, s := range r.searches {
		sensitive = append(sensitive, s.secrets(r.workspace, r.changesDir, r.relocates)...)
	}
	f.Sensitive = list(sensitive, "\n")
	if f.WhyFiles = r.workspace.Doubt(); f.WhyFiles == "" {
		f.Outside = list(outside, "\n")
	}
}

func place(files []file, w *Workspace, moved bool) (outside, sensitive []string) {
	known := w.Doubt() == ""
	for _, f := range append(files, file{path: ".", named: true}) {
		if known && w.leaves(f.path, moved) {
			outside = append(outside, oneLine(f.path))
		}
		if (!f.named || f.written) && (Sensitive(f.path, f.written) || known && slices.Contains(w.Sensitive, f.path)) {
			sensitive = append(sensitive, oneLine(f.path))
		}
	}

	return outside, sensitive
}

// Use is what a tool does with the paths that it is given.
type Use struct {
	Writes   bool // it changes the files
	Searches bool // it reads all files below directories, also hidden ones
}

// Paths returns the facts of paths that a call names outside a command line: Paths, Outside and
// Sensitive.
func Paths(paths []string, use Use, w *Workspace) Facts {
	var files []file
	s := search{}
	shownPaths := make([]string, len(paths))
	for i, p := range paths {
		shownPaths[i] = oneLine(p)
		names := append([]string{p, strings.TrimSpace(p)}, braces(p)...)
		switch {
		case !use.Searches:
		case strings.ContainsAny(p, "*?[{!, \t\n"):
			names = append(names, filters(p)...)
			s.included = append(s.included, filters(p)...)
		default:
			s.dirs = append(s.dirs, p)
		}
		for _, name := range names {
			if expanded.MatchString(name) || strings.Contains(name, "..") && strings.ContainsAny(name, "{},!*?[") {
				name = "~" // the tool may read it as another path
			}
			if !use.Searches || !strings.HasPrefix(name, "!") {
				files = append(files, file{path: name, written: use.Writes})
			}
		}
	}
	outside, sensitive := place(files, w, len(paths) > 1)
	if use.Searches {
		s.included = slices.DeleteFunc(s.included, func(p string) bool { return strings.HasPrefix(p, "!") })
		if len(s.dirs) == 0 {
			s.dirs = []string{"."}
		}
		sensitive = append(sensitive, s.secrets(w, false, false)...)
	}
	f := Facts{Paths: list(shownPaths, "\n"), Sensitive: list(sensitive, "\n"), WhyFiles: w.Doubt()}
	f.Why = f.WhyFiles
	if f.WhyFiles == "" {
		f.Outside = list(outside, "\n")
	}

	return f
}

// mostBraces limits the paths to which braces are expanded.
const mostBraces = 64

// braces returns the paths for which a pattern with braces stands. If there are too many, or a brace
// is not closed, it returns a path that is outside.
func braces(pattern string) []string {
	out := []string{pattern}
	for i := 0; i < len(out); {
		open := strings.LastIndexByte(out[i], '{') // the innermost of nested ones
		if open < 0 {
			i++
			continue
		}
		within, after, closed := strings.Cut(out[i][open+1:], "}")
		parts := strings.Split(within, ",")
		if !closed || len(out)+len(parts) > mostBraces {
			return []string{"~"}
		}
		before := out[i][:open]
		out = slices.Delete(out, i, i+1)
		for _, part := range parts {
			out = append(out, before+part+after)
		}
	}

	return out
}

// expanded matches text in a path that a tool may expand: variables, addresses, and absolute paths
// in braces.
var expanded = lazily(`\$[A-Z{(]|://|[{,]/`)

// FileWords returns the words of a command line that may name files, regardless of what the line
// does with them. A runtime looks them up on its machine.
func FileWords(line string) []string {
	r := &reader{}
	r.line(line, 0)
	var out []string
	for _, f := range r.files {
		out = append(out, f.path)
	}
	out = append(out, r.paths...)

	return append(out, strings.FieldsFunc(line, func(c rune) bool {
		return strings.ContainsRune(" \t\n;&|<>()=\"'`", c)
	})...)
}
