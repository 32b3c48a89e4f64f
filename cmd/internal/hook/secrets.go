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
// moves says that the call may change its directory first.
func (e *event) searched() (dirs []string, moves bool) {
	var args struct {
		Command string `json:"command"`
		Pattern string `json:"pattern"`
		Path    any    `json:"path"`
		Paths   any    `json:"paths"`
		DirPath any    `json:"dir_path"`
	}
	if json.Unmarshal(e.call.Args, &args) != nil {
		return []string{"."}, true
	}
	switch {
	case args.Command != "":
		if !strings.Contains(args.Command, "grep") && !strings.Contains(args.Command, "rg") {
			return nil, false
		}
		return shellfacts.Searches(args.Command), true
	case args.Pattern == "" || strings.EqualFold(e.call.Tool, "glob"):
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

// secrets returns the files below the directories of a search that may hold secrets, as paths below
// the workspace. It returns nil if the call is no search.
func (e *event) secrets(w *resolve.Workspace) []string {
	dirs, moves := e.searched()
	if dirs == nil {
		return nil
	}
	bases := []string{w.Directory}
	if moves && w.Directory != w.Root {
		bases = append(bases, w.Root)
	}
	look := &secretsWalk{root: w.Root, most: mostLooked, found: []string{}}
	for _, dir := range dirs {
		if i := strings.IndexAny(dir, "*?["); i >= 0 {
			dir = filepath.Dir(dir[:i] + "x")
		}
		for _, base := range bases {
			at := dir
			if !filepath.IsAbs(at) {
				at = filepath.Join(base, at)
			}
			if w.Contains(at) {
				_ = filepath.WalkDir(at, look.visit)
			}
		}
	}
	slices.Sort(look.found)

	return slices.Compact(look.found)
}

// secretsWalk collects files that may hold secrets.
type secretsWalk struct {
	root   string
	most   int // files to look at
	looked int
	found  []string
}

// others are directories of code of others, and of settings, in which no secrets of the project are.
var others = []string{
	"node_modules", "site-packages", "__pycache__", ".hg", ".svn", ".claude", ".codex", ".gemini", ".cursor",
	".copilot",
}

func (s *secretsWalk) visit(at string, d fs.DirEntry, err error) error {
	below, relErr := filepath.Rel(s.root, at)
	s.looked++
	switch {
	case err != nil && d == nil, relErr != nil:
		return nil // there is no such directory
	case err != nil:
		s.found = append(s.found, below) // it can't be read
		return nil
	case s.looked > s.most || len(s.found) >= mostSecrets:
		s.found = append(s.found, filepath.Join(filepath.Dir(below), "too many files"))
		return fs.SkipAll
	case d.IsDir() && d.Name() == ".git":
		if config := filepath.Join(at, "config"); holdsCredentials(config) {
			s.found = append(s.found, filepath.Join(below, "config"))
		}
		return fs.SkipDir
	case d.IsDir() && slices.Contains(others, d.Name()):
		return fs.SkipDir
	case d.IsDir():
		return nil
	}
	name := d.Name()
	if dir := filepath.Base(filepath.Dir(below)); strings.HasPrefix(dir, ".") || strings.Contains(dir, "secret") {
		name = dir + "/" + name
	}
	if shellfacts.Sensitive(name, false) {
		s.found = append(s.found, below)
	}

	return nil
}

// holdsCredentials reports whether the configuration of a repository has a password or a token.
func holdsCredentials(config string) bool {
	text, err := os.ReadFile(config)

	return err == nil && credentials.Match(text) || err != nil && !os.IsNotExist(err)
}

var credentials = regexp.MustCompile(`(?i)://[^/\s]*@|extraheader|password|token`)

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
