package shellfacts

import (
	"slices"
	"strings"
)

// GitStart describes a command of git that replaces files of the workspace: by those of a commit or of a
// stash, or because it moves changes into a stash.
type GitStart struct {
	Commit string // a revision
	Stash  bool   // Commit is a stash
	// Stashes is set if the command removes changes from the workspace, and Untracked if these include
	// new files.
	Stashes, Untracked bool
	// Unknown is set if the line doesn't say which files these are.
	Unknown bool
}

// Goes returns the directories to which a command line changes with cd, and whether it may change to one
// that it does not name.
func Goes(line string) (dirs []string, anywhere bool) {
	r := &reader{}
	r.line(line, 0)

	return r.goes, r.goesAnywhere || r.lost
}

// GitStarts returns the commands of git in a line that replace files which the line does not name.
func GitStarts(line string) []GitStart {
	if !strings.Contains(strings.NewReplacer("'", "", `"`, "", `\`, "").Replace(line), "git") {
		return nil // also a line that is lost has no command of git then
	}
	r := &reader{}
	r.line(line, 0)
	if r.lost {
		return []GitStart{{Unknown: true}}
	}

	return r.gitStarts
}

// gitStart returns the start of a command of git, and false if it writes no files of another commit.
func gitStart(args []word) (GitStart, bool) {
	unknown := GitStart{Unknown: true}
	if len(args) == 0 {
		return unknown, false
	}
	if isOption(args[0]) { // it may take the next word as its value, so any word may be the subcommand
		return unknown, slices.ContainsFunc(args, func(w word) bool {
			return !w.known || w.text == "stash" || gitGetsFiles("git", []word{w})
		})
	}
	var operands []string
	for _, w := range args[1:] {
		if !w.known {
			return unknown, gitGetsFiles("git", args) || args[0].text == "stash"
		}
		if !isOption(w) {
			operands = append(operands, w.text)
		}
	}
	switch args[0].text {
	case "stash":
		switch {
		case len(operands) == 0 || operands[0] == "push" || operands[0] == "save":
			return GitStart{Stashes: true, Untracked: hasOption(args[1:], "ua", "--i", "--a")}, true
		case operands[0] == "pop" || operands[0] == "apply":
			if len(operands) == 1 {
				return GitStart{Commit: "stash@{0}", Stash: true}, true
			}
			return GitStart{Commit: operands[1], Stash: true}, len(operands) == 2
		}
	case "switch", "checkout":
		first := 0
		if hasOption(args[1:], "bcBC", "--create", "--force-create", "--orphan") {
			first = 1 // the name of the new branch
		}
		if len(operands) == first+1 && !slices.ContainsFunc(args, func(w word) bool { return w.text == "--" }) {
			if operands[first] == "-" {
				operands[first] = "@{-1}"
			}
			return GitStart{Commit: operands[first]}, gitGetsFiles("git", args)
		}
	case "worktree":
		return unknown, false // a directory of its own: the product reads other settings there
	case "restore":
		if hasOption(args[1:], "S", "--staged") && !hasOption(args[1:], "Ws", "--worktree", "--source") {
			return unknown, false
		}
	}

	return unknown, gitGetsFiles("git", args)
}
