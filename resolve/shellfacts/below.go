package shellfacts

import (
	"path"
	"slices"
	"strings"
)

// search is a search in all files below directories.
type search struct {
	dirs []string
	// visible is set if the program skips hidden files.
	visible bool
	// A file is read if its name matches one of included, or that is empty, and none of excluded.
	included, excluded []string
}

// searchOf returns the search of a command, or nil if it is none. text has the words that are no
// files.
func searchOf(name string, args []word, text map[int]bool) *search {
	s := &search{visible: name == "rg"}
	if name != "rg" && (name != "grep" || !slices.ContainsFunc(args, isRecursive)) {
		return nil
	}
	known, apart := false, false // which operand is the pattern; a value that may be taken for it
	for i := 0; i < len(args); i++ {
		option, value, joined := strings.Cut(args[i].text, "=")
		apart = apart || option == "-d" || strings.HasPrefix(option, "--d")
		if !joined && i+1 < len(args) {
			value = args[i+1].text
		}
		switch {
		case option == "--include", option == "-g", option == "--glob":
			s.included = append(s.included, value)
		case option == "--exclude", option == "--exclude-dir":
			s.excluded = append(s.excluded, strings.TrimSuffix(value, "/"))
		case len(option) > 1 && option[0] == '-':
			continue
		case text[i]:
			known = true
			continue
		default:
			s.dirs = append(s.dirs, args[i].text)
			continue
		}
		if !joined {
			i++
		}
	}
	if len(s.dirs) == 0 || !known || apart {
		s.dirs = append(s.dirs, ".")
	}
	s.included = slices.DeleteFunc(s.included, func(p string) bool { return strings.HasPrefix(p, "!") })

	return s
}

// isRecursive reports whether an option makes grep read the files of directories.
func isRecursive(w word) bool {
	short := len(w.text) > 1 && w.text[0] == '-' && w.text[1] != '-'

	return short && strings.ContainsAny(w.text, "rRd") || strings.HasPrefix(w.text, "--r") ||
		strings.HasPrefix(w.text, "--d")
}

// secrets returns the files with secrets that a search reads. moved says that it may start in another
// directory than that of the call.
func (s *search) secrets(w *Workspace, moved bool) []string {
	if len(s.included) > 0 && !slices.ContainsFunc(s.included, func(p string) bool { return !isHarmlessGlob(p) }) {
		return nil
	}
	if w.Doubt() != "" || w.Secrets == nil {
		return s.unseen(w)
	}
	var out []string
	for _, secret := range w.Secrets {
		for _, dir := range s.dirs {
			if below, is := w.below(dir, secret, moved); is && s.reads(below) {
				out = append(out, secret)
				break
			}
		}
	}

	return out
}

// unseen returns the whole workspace if a search reads that, and the runtime did not look for secrets:
// they are most often at its top.
func (s *search) unseen(w *Workspace) []string {
	if s.visible {
		return nil
	}
	for _, dir := range s.dirs {
		if clean := path.Clean(dir); clean == "." || clean == "*" || w.Doubt() == "" && clean == path.Clean(w.Root) {
			return []string{dir}
		}
	}

	return nil
}

// below returns the path of a file of the workspace below a directory that a call names, and whether
// the file may be below it.
func (w *Workspace) below(dir, file string, moved bool) (string, bool) {
	if !path.IsAbs(dir) {
		dir = path.Join(w.directory(), dir)
	}
	if i := strings.IndexAny(dir, "*?["); i >= 0 {
		dir = path.Dir(dir[:i] + "x")
	}
	at, root := path.Join(w.Root, file), path.Clean(dir)
	if moved && w.Contains(root) {
		root = path.Clean(w.Root)
	}
	if at == root {
		return path.Base(at), true
	}

	return strings.CutPrefix(at, strings.TrimSuffix(root, "/")+"/")
}

// reads reports whether a search reads a file, by its path below the directory of the search.
func (s *search) reads(below string) bool {
	parts := strings.Split(below, "/")
	base := parts[len(parts)-1]
	if s.visible && slices.ContainsFunc(parts, func(p string) bool { return p[0] == '.' }) {
		return false
	}
	if slices.ContainsFunc(s.excluded, func(p string) bool {
		return slices.ContainsFunc(parts, func(part string) bool {
			ok, err := path.Match(p, part)
			return ok &&
				err == nil
		})
	}) {
		return false
	}

	return len(s.included) == 0 || slices.ContainsFunc(s.included, func(p string) bool {
		return slices.ContainsFunc(braces(p), func(one string) bool { return matches(path.Base(one), base) })
	})
}

// Searches returns the directories in which a command line searches all files. A runtime looks for
// secrets there.
func Searches(line string) []string {
	r := &reader{}
	r.line(line, 0)
	var out []string
	for _, s := range r.searches {
		out = append(out, s.dirs...)
	}

	return out
}

// filters are the patterns of a tool that searches, which restrict it to files: several may be in one
// text.
func filters(text string) []string {
	var out []string
	for _, field := range strings.Fields(text) {
		depth, start := 0, 0
		for i, c := range field {
			switch {
			case c == '{':
				depth++
			case c == '}':
				depth--
			case c == ',' && depth == 0:
				out = append(out, braces(field[start:i])...)
				start = i + 1
			}
		}
		out = append(out, braces(field[start:])...)
	}

	return slices.DeleteFunc(out, func(p string) bool { return p == "" })
}
