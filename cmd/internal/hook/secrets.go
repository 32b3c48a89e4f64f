package hook

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/resolve/shellfacts"
)

// mostLooked limits how many files are looked at for secrets below the directories of a search, and
// mostSecrets how many of them are named.
const (
	mostLooked  = 50_000
	mostSecrets = 100
)

// searched returns the directories in which the call searches all files, or nil if it is no search.
// everywhere is set if the search may start in another directory than that of the call, or find files
// that the call moves before, or if the arguments can't be read.
func (e *event) searched() (dirs []string, everywhere bool) {
	var args struct {
		Command *string         `json:"command"`
		Pattern json.RawMessage `json:"pattern"`
		Path    any             `json:"path"`
		Paths   any             `json:"paths"`
		DirPath any             `json:"dir_path"`
		// Directories that tools for command lines choose.
		Workdir          any `json:"workdir"`
		WorkingDirectory any `json:"working_directory"`
		Cwd              any `json:"cwd"`
	}
	tool := strings.ToLower(e.call.Tool)
	switch {
	case json.Unmarshal(e.call.Args, &args) != nil:
		return nil, true
	case args.Command != nil && tool != "grep":
		dirs, moved := shellfacts.Searches(*args.Command)
		chosen := []any{args.DirPath, args.Workdir, args.WorkingDirectory, args.Cwd}
		return dirs, moved || slices.ContainsFunc(chosen, func(v any) bool { return v != nil })
	case tool == "glob", args.Pattern == nil && tool != "rg" && !strings.Contains(tool, "grep") &&
		!strings.Contains(tool, "search"):
		return nil, false
	}
	for _, v := range []any{args.Path, args.Paths, args.DirPath} {
		switch v := v.(type) {
		case string:
			dirs = append(dirs, v)
		case []any:
			for _, one := range v {
				if text, ok := one.(string); ok {
					dirs = append(dirs, text)
				}
			}
		}
	}
	if len(dirs) == 0 {
		dirs = append(dirs, ".")
	}

	return dirs, false
}

// findSecrets sets Secrets of a workspace to the files below the directories of a search that may hold
// secrets, and Incomplete if there may be more. It sets neither if the call is no search.
func (e *event) findSecrets(w *resolve.Workspace, real string) {
	dirs, everywhere := e.searched()
	if dirs == nil {
		if everywhere {
			w.Incomplete = "the arguments can't be read as those of a search"
		}
		return
	}
	look := &secretsWalk{root: w.Root, most: mostLooked, found: []string{}}
	if everywhere {
		look.below(w.Root, real)
	}
	for _, dir := range dirs {
		at := dir
		if !filepath.IsAbs(at) {
			at = filepath.Join(w.Directory, at)
		}
		starts := []string{at}
		if i := strings.IndexAny(at, "*?["); i >= 0 {
			linked, _ := filepath.Glob(at) // a link that a pattern matches is followed
			starts = append(linked, filepath.Dir(at[:i]+"x"))
		}
		for _, start := range starts {
			if w.Contains(start) {
				look.below(start, real)
			}
		}
	}
	slices.Sort(look.found)
	w.Secrets, w.Incomplete = slices.Compact(look.found), look.incomplete
}

// secretsWalk collects files that may hold secrets.
type secretsWalk struct {
	root       string
	from, at   string // a directory, and the path under which the call reaches it
	most       int    // files to look at
	looked     int
	found      []string
	incomplete string // why there may be more; empty if there are none
}

// below walks a directory. If it is a link, the files have paths below the link, as the search sees
// them.
func (s *secretsWalk) below(start, real string) {
	s.from, s.at = start, start
	if resolved, err := filepath.EvalSymlinks(start); err == nil && resolved != start {
		if below, err := filepath.Rel(real, resolved); err == nil {
			s.from = filepath.Join(s.root, below)
		}
	}
	for up := filepath.Dir(s.from); up != s.root && strings.HasPrefix(up, s.root); up = filepath.Dir(up) {
		s.seesHidden(up)
	}
	s.seesHidden(s.root)
	_ = filepath.WalkDir(s.from, s.visit)
	s.from, s.at = "", ""
}

// others are directories of code of others, in which no secrets of the project are.
var others = []string{"node_modules", "site-packages", "__pycache__", ".hg", ".svn"}

// settingsDirs are directories with settings of coding agents. Most of them hold no secrets.
var settingsDirs = []string{".claude", ".codex", ".gemini", ".cursor", ".copilot"}

func (s *secretsWalk) visit(at string, d fs.DirEntry, err error) error {
	shown := at
	if s.from != s.at {
		shown = filepath.Join(s.at, strings.TrimPrefix(at, s.from))
	}
	below, relErr := filepath.Rel(s.root, shown)
	s.looked++
	switch {
	case err != nil && d == nil, relErr != nil:
		return nil // there is no such directory
	case err != nil:
		s.found = append(s.found, below) // it can't be read
		return nil
	case s.looked > s.most || len(s.found) >= mostSecrets:
		s.incomplete = "the workspace has too many files to look for secrets"
		return fs.SkipAll
	case d.IsDir() && (slices.Contains(others, d.Name()) || d.Name() == "objects" && inside(at, ".git")):
		return fs.SkipDir
	case d.IsDir():
		return nil
	}
	if s.isSecret(at, below, d) {
		s.found = append(s.found, below)
	}

	return nil
}

// seesHidden notes whether a directory above the search has a file by which rg searches hidden files.
func (s *secretsWalk) seesHidden(dir string) {
	for _, name := range []string{".gitignore", ".ignore", ".rgignore"} {
		if at := filepath.Join(dir, name); exists(at) && includesHidden(at) {
			s.incomplete = name + " includes hidden files in searches"
		}
	}
}

// inside reports whether a path has a directory of that name.
func inside(at, name string) bool {
	return slices.Contains(strings.Split(filepath.Dir(at), string(filepath.Separator)), name)
}

// isSecret reports whether a file may hold secrets: by its name, by those of directories that often hold
// secrets, or by its content if it has settings of git or of a coding agent.
func (s *secretsWalk) isSecret(at, below string, d fs.DirEntry) bool {
	name := d.Name()
	if d.Type()&fs.ModeSymlink != 0 { // diff follows links
		if to, err := filepath.EvalSymlinks(at); err == nil {
			if rel, err := filepath.Rel(s.root, to); err == nil && shellfacts.Sensitive(rel, false) {
				return true
			}
		}
	}
	switch {
	case inside(at, ".git"):
		return repositoryFile.MatchString(filepath.ToSlash(below)) && holds(at, credentials)
	case name == ".git":
		return false // it names the directory of a worktree or of a submodule
	case slices.ContainsFunc(settingsDirs, func(p string) bool { return inside(at, p) }):
		return shellfacts.Sensitive(name, false) || name == "mcp.json" && holds(at, credentials) ||
			settingsFile.MatchString(name) && holds(at, settingsSecrets)
	case ignoreFile.MatchString(name) && includesHidden(at):
		s.incomplete = below + " includes hidden files in searches"
	}
	kept := []string{}
	for _, dir := range strings.Split(filepath.ToSlash(filepath.Dir(below)), "/") {
		if strings.HasPrefix(dir, ".") || strings.Contains(dir, "secret") {
			kept = append(kept, dir)
		}
	}

	return shellfacts.Sensitive(strings.Join(append(kept, name), "/"), false)
}

// mostContent limits the files whose content is looked at.
const mostContent = 1 << 20

// holds reports whether the content of a file matches, or can't be read.
func holds(at string, pattern *regexp.Regexp) bool {
	if info, err := os.Stat(at); err == nil && info.Size() > mostContent {
		return true
	}
	text, err := os.ReadFile(at)

	return err == nil && pattern.Match(text) || err != nil && !os.IsNotExist(err)
}

var (
	// repositoryFile matches files of git that may have addresses with passwords.
	repositoryFile = regexp.MustCompile(`(^|/)(config[^/]*|FETCH_HEAD|credentials|ORIG_HEAD|logs/.*)$`)
	credentials    = regexp.MustCompile(`(?i)://[^/\s]*@|extraheader|password|token`)
	settingsFile   = regexp.MustCompile(`\.(json|toml|ya?ml)$`)
	// settingsSecrets matches a setting with the name of a secret and a text as its value.
	settingsSecrets = regexp.MustCompile(`(?i)(api_?key|token|secret|passw|authorization|bearer)[\w-]*"?\s*[:=]\s*"[^"$]{6}`)
	ignoreFile      = regexp.MustCompile(`^\.(git|rg)?ignore$`)
)

// includesHidden reports whether a file of ignored paths has an exception by which rg searches hidden
// files that may hold secrets.
func includesHidden(at string) bool {
	text, err := os.ReadFile(at)
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(text)) {
		pattern, exception := strings.CutPrefix(strings.TrimSpace(line), "!")
		last := filepath.Base(pattern)
		if exception && strings.IndexByte(".*?[", last[0]) >= 0 && shellfacts.Sensitive(last, false) {
			return true
		}
	}

	return false
}

// installed returns those programs that the call may start with npx and that are installed in
// node_modules, in the directory of the call or one above it in the workspace.
func (e *event) installed(w *resolve.Workspace) []string {
	names := e.names()
	if !slices.Contains(names, "npx") && !slices.Contains(names, "bunx") {
		return nil
	}
	var out []string
	for _, name := range names {
		if strings.ContainsAny(name, "/\\ ") || name == "" {
			continue
		}
		for at := w.Directory; w.Contains(at); at = filepath.Dir(at) {
			if exists(filepath.Join(at, "node_modules", ".bin", name)) {
				out = append(out, name)
				break
			}
		}
	}

	return out
}
