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
	// A file is read if its name matches one of included, or that is empty, and none of excluded, and no
	// directory above it matches one of excludedDirs.
	included, excluded, excludedDirs []string
}

// searchOf returns the search of a command, or nil if it is none. text has the words that are no
// files.
func searchOf(name string, args []word, text map[int]bool) *search {
	s := &search{visible: name == "rg"}
	switch {
	case name == "diff": // it compares all files of two directories
		for _, w := range args {
			if !strings.HasPrefix(w.text, "-") {
				s.dirs = append(s.dirs, w.text)
			}
		}
		return s
	case name != "rg" && (name != "grep" || !slices.ContainsFunc(args, isRecursive)):
		return nil
	}
	hasPattern, takesValue := false, false // takesValue: a word that looks like an operand may be a value
	filtered := true                       // the filters are those that the program sees
	for i := 0; i < len(args); i++ {
		option, value, joined := strings.Cut(args[i].text, "=")
		takesValue = takesValue || option == "-d" || strings.HasPrefix(option, "--d")
		if !joined && i+1 < len(args) {
			value = args[i+1].text
		}
		var to *[]string
		switch {
		case option == "--":
			for ; i < len(args); i++ {
				filtered = filtered && !isFilter(args[i].text)
				if hasPattern = hasPattern || text[i]; !text[i] && args[i].text != "--" {
					s.dirs = append(s.dirs, args[i].text)
				}
			}
			continue
		case option == "--include" && name == "grep", (option == "-g" || option == "--glob") && name == "rg":
			filtered = filtered && len(s.excluded) == 0 && len(s.excludedDirs) == 0 // else the order decides
			to = &s.included
		case option == "--exclude" && name == "grep":
			to = &s.excluded
		case option == "--exclude-dir" && name == "grep":
			to, value = &s.excludedDirs, strings.TrimSuffix(value, "/")
		case len(option) > 1 && option[0] == '-':
			continue
		case text[i]:
			hasPattern = true
			continue
		default:
			s.dirs = append(s.dirs, args[i].text)
			continue
		}
		*to = append(*to, value)
		filtered = filtered && (i == 0 || !mayTakeNext(args[i-1].text))
		if !joined {
			i++
		}
	}
	if len(s.dirs) == 0 || !hasPattern || takesValue {
		s.dirs = append(s.dirs, ".")
	}
	s.included = slices.DeleteFunc(s.included, func(p string) bool { return strings.HasPrefix(p, "!") })
	if !filtered {
		s.included, s.excluded, s.excludedDirs = nil, nil, nil
	}

	return s
}

// isFilter reports whether a word looks like an option that restricts a search to some files.
func isFilter(text string) bool {
	return strings.HasPrefix(text, "--in") || strings.HasPrefix(text, "--ex") || strings.HasPrefix(text, "--g") ||
		strings.HasPrefix(text, "-g")
}

// mayTakeNext reports whether grep or rg may read the word after an option as its value.
func mayTakeNext(option string) bool {
	return len(option) > 1 && option[0] == '-' && !takesNoNext.MatchString(option)
}

var takesNoNext = lazily(`^(-[bchHilLnoqrRsvwxEFGPUzZaI]+|-g.+|--[a-z-]+=.*|--(recursive|line-number|ignore-case|` +
	`word-regexp|files-with-matches|no-heading|color|hidden|count|null|text|only-matching))$`)

// isRecursive reports whether an option makes grep read the files of directories.
func isRecursive(w word) bool {
	short := len(w.text) > 1 && w.text[0] == '-' && w.text[1] != '-'

	return short && strings.ContainsAny(w.text, "rRd") || strings.HasPrefix(w.text, "--r") ||
		strings.HasPrefix(w.text, "--d")
}

// secrets returns the files with secrets that a search reads. If moved is set, it may start in another
// directory than that of the call; if relocated is set, the line may have moved them before.
func (s *search) secrets(w *Workspace, moved, relocated bool) []string {
	if len(s.included) > 0 && !slices.ContainsFunc(s.included, func(p string) bool { return !isHarmlessGlob(p) }) {
		return nil
	}
	if w.Doubt() != "" || w.Secrets == nil {
		return s.unseen(w)
	}
	var out []string
	for _, secret := range w.Secrets {
		if relocated {
			if s.reads(path.Base(secret)) {
				out = append(out, secret)
			}
			continue
		}
		for _, dir := range s.dirs {
			if below, is := w.below(dir, secret, moved); is && s.reads(below) {
				out = append(out, secret)
				break
			}
		}
	}
	if w.Incomplete != "" {
		out = append(out, Excerpt(w.Incomplete))
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
	if s.visible && len(s.included) == 0 && slices.ContainsFunc(parts, func(p string) bool { return p[0] == '.' }) {
		return false
	}
	excludes := func(patterns []string, name string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			ok, err := path.Match(p, name)
			return ok && err == nil && !strings.ContainsAny(p, `[\`) // grep reads these in another way
		})
	}
	if excludes(s.excluded, base) ||
		slices.ContainsFunc(parts[:len(parts)-1], func(p string) bool { return excludes(s.excludedDirs, p) }) {
		return false
	}

	return len(s.included) == 0 || slices.ContainsFunc(s.included, func(p string) bool {
		return strings.Contains(p, `\`) ||
			slices.ContainsFunc(braces(p), func(one string) bool { return mayMeet(path.Base(one), base) })
	})
}

// Searches returns the directories in which a command line searches all files, and whether the search
// may start in another directory than that of the call, or find files that the line moves before. A
// runtime looks for secrets there.
func Searches(line string) (dirs []string, moved bool) {
	r := &reader{}
	r.line(line, 0)
	for _, s := range r.searches {
		dirs = append(dirs, s.dirs...)
	}

	return dirs, r.changesDir || r.relocates || r.lost
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
