package hook

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/assent-dev/assent/resolve/shellfacts"
)

// bringsSettings reports whether a command of git in the call may change settings of a product: because
// it writes files of another commit or of a stash that has other settings, or puts the settings of the
// workspace into a stash.
func (e *event) bringsSettings(ctx context.Context) bool {
	return slices.ContainsFunc(e.lines(), func(line string) bool {
		return slices.ContainsFunc(shellfacts.GitStarts(line), func(s shellfacts.GitStart) bool {
			return !e.keepsSettings(ctx, s)
		})
	})
}

// keepsSettings reports whether the settings are the same before and after a command of git.
func (e *event) keepsSettings(ctx context.Context, s shellfacts.GitStart) bool {
	finds := func(command ...string) bool { // nothing
		out, err := e.git(ctx, append(append(command, "--"), settingsPaths()...)...)
		return err == nil && out == ""
	}
	switch {
	case s.Unknown:
		return false
	case s.Stashes:
		untracked := "--untracked-files=no"
		if s.Untracked {
			untracked = "--untracked-files=all"
		}
		return finds("status", "--porcelain", untracked)
	case s.Stash:
		// The parents of a stash are the commit that it was made on, the index, and new files if it
		// has any.
		out, err := e.git(ctx, "rev-list", "--parents", "--max-count=1", s.Commit, "--")
		commits := strings.Fields(out)
		if err != nil || len(commits) < 3 || len(commits) > 4 {
			return false
		}
		return finds("diff-tree", "-r", commits[1], commits[0]) &&
			(len(commits) == 3 || finds("diff-tree", "-r", "--root", commits[3]))
	}

	return finds("diff-tree", "-r", "HEAD", s.Commit)
}

// settingsPaths returns patterns for the protected names anywhere in a repository, also in another case,
// since some file systems ignore it.
func settingsPaths() []string {
	var out []string
	for _, name := range protectedNames {
		at := ":(top,icase,glob)**/" + name
		out = append(out, at, at+"/**")
	}
	return out
}

// git returns the output of a command of git, in the directory of the call.
func (e *event) git(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, toAskGit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "core.fsmonitor=false"}, args...)...)
	cmd.Dir = e.cwd
	cmd.Env = append(os.Environ(), "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0")
	out, err := cmd.Output()

	return strings.TrimSpace(string(out)), err
}

// toAskGit is the time that a command of git has.
const toAskGit = 10 * time.Second
