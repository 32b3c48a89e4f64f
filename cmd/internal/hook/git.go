package hook

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/resolve/shellfacts"
)

// settingsPaths are the files with which the hook of a product could be removed, as git names them.
var settingsPaths = []string{
	".claude", ".codex", ".gemini", ".copilot", ".cursor", ".github/hooks", ".mcp.json", ".assent",
}

// bringsSettings reports whether a command of git in the call may change settings of a product: because
// it writes files of another commit or of a stash that has other settings, or puts the settings of the
// workspace into a stash.
func (e *event) bringsSettings() bool {
	return slices.ContainsFunc(e.lines(), func(line string) bool {
		return slices.ContainsFunc(shellfacts.GitStarts(line), func(s shellfacts.GitStart) bool {
			return !e.keepsSettings(s)
		})
	})
}

// keepsSettings reports whether the settings are the same before and after a command of git.
func (e *event) keepsSettings(s shellfacts.GitStart) bool {
	switch {
	case s.Unknown:
		return false
	case s.Stashes:
		untracked := "--untracked-files=no"
		if s.Untracked {
			untracked = "--untracked-files=all"
		}
		status, ok := e.git("status", "--porcelain", untracked)
		return ok && status == ""
	case s.Stash:
		before, _ := e.git("ls-tree", "-r", s.Commit+"^1")
		after, ok := e.git("ls-tree", "-r", s.Commit)
		untracked, has := e.git("ls-tree", "-r", s.Commit+"^3")
		return ok && before == after && (!has || untracked == "")
	}
	before, first := e.git("ls-tree", "-r", "HEAD")
	after, second := e.git("ls-tree", "-r", s.Commit)
	if !second { // a branch of a remote repository, from which git makes a local one
		return false
	}

	return first && before == after
}

// git returns the output of a command of git about the settings. It runs where git finds the repository
// of the call, from its top.
func (e *event) git(args ...string) (string, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), toAskGit)
	defer cancel()
	full := append([]string{"-c", "core.fsmonitor=false", "--no-optional-locks", "--literal-pathspecs"}, args[0])
	if full = append(full, args[1:]...); args[0] == "ls-tree" {
		full = append(full, "--full-tree")
	} else {
		full = append(full, "--")
	}
	full = append(full, settingsPaths...)
	cmd := exec.CommandContext(ctx, "git", full...)
	cmd.Dir = e.cwd
	cmd.Env = append(os.Environ(), "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0")
	var out bytes.Buffer
	cmd.Stdout = &out
	err := cmd.Run()

	return strings.TrimSpace(out.String()), err == nil
}

// toAskGit is the time that a command of git has.
const toAskGit = 10 * time.Second
