package shellfacts

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// changesShell reports whether a builtin of bash, or of another shell that may be used instead,
// changes the meaning of later words or runs text. The owner's list can't make it harmless.
func changesShell(name string) bool {
	switch name {
	case ".", "source", "eval", "trap", "alias", "unalias", "set", "unset", "setopt", "unsetopt", "shopt",
		"export", "declare", "typeset", "local", "readonly", "integer", "float", "read", "mapfile",
		"readarray", "getopts", "let", "hash", "rehash", "enable", "disable", "bind", "complete", "compgen",
		"compopt", "fc", "history", "builtin", "autoload", "zmodload", "emulate", "functions", "noglob",
		"nocorrect", "sched", "vared", "zle", "zcompile", "zstyle", "zparseopts", "zformat", "bindkey",
		"compctl", "compadd", "print", "-", "r", "where", "whence", "which-command", "pushd", "popd", "dirs",
		"caller", "suspend", "logout", "disown", "fg", "bg", "jobs", "coproc", "abbr", "status", "string",
		"math", "set_color":
		return true
	}

	return false
}

// changes reports whether an otherwise harmless builtin sets a variable or evaluates arithmetic
// with these arguments.
func changes(name string, args []word) bool {
	switch name {
	case "test", "[":
		if len(args) >= 3 && isNumber(args[0]) && isNumber(args[2]) && (len(args) == 3 || args[3].text == "]") {
			return len(args) > 4
		}
		return slices.ContainsFunc(args, func(w word) bool {
			return !w.known || computes(w.text)
		})
	case "printf":
		return len(args) > 0 && (!args[0].known || !printsOnly(args[0].text))
	case "exit", "return", "shift", "break", "continue":
		return slices.ContainsFunc(args, func(w word) bool {
			return !isNumber(w) // zsh computes, and $(…) in an index runs
		})
	case "wait":
		return len(args) > 0
	}

	return false
}

// isNumber reports whether a word is digits, or the status of the last
// command.
func isNumber(w word) bool {
	return w.known && (w.text == exitStatus || strings.Trim(w.text, "0123456789") == "")
}

// printsOnly reports whether a format of printf takes its arguments as
// text: others set variables, or have zsh compute.
func printsOnly(format string) bool {
	if strings.HasPrefix(format, "-") {
		return false
	}
	rest := strings.NewReplacer("%%", "", "%s", "", "%b", "").Replace(format)
	return !strings.Contains(rest, "%")
}

// computes reports whether a shell evaluates a word of a test as a number or a variable's name, and
// so runs code in it.
func computes(test string) bool {
	switch test {
	case "-v", "-R", "-t", "-eq", "-ne", "-lt", "-le", "-gt", "-ge":
		return true
	}

	return false
}

// harmlessVariables change the output of programs or the target of a build, and not which programs
// run.
var harmlessVariables = []string{
	"CI", "CGO_ENABLED", "GOOS", "GOARCH", "NODE_ENV", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "TZ", "LANG", "LC_ALL",
	"RUST_BACKTRACE", "RUST_LOG", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "LOG_LEVEL", "GOMAXPROCS",
	"DEBUG", "VERBOSE", "GOTRACEBACK", "RAILS_ENV", "RACK_ENV", "APP_ENV", "FLASK_ENV", "MIX_ENV", "GIN_MODE",
	"GO111MODULE", "PYTHONWARNINGS", "CARGO_TERM_COLOR", "TERM",
}

// isHarmless reports whether a variable with this value does not change which programs run.
func isHarmless(name, value string) bool {
	if name == "PYTHONPATH" {
		return value == "." || value == "src" // where a runner looks for the project's own code
	}
	return slices.Contains(harmlessVariables, name) && !strings.Contains(value, "/")
}

// harmlessAssignment reports whether an assignment does not change which programs run.
func (r *reader) harmlessAssignment(a *syntax.Assign) bool {
	if a.Name == nil || a.Append || a.Naked || a.Index != nil || a.Array != nil {
		return false
	}
	value := word{known: true}
	if a.Value != nil {
		value = r.read(a.Value)
	}

	return value.known && isHarmless(a.Name.Value, value.text)
}

// startsNone reports whether a program starts no other, whatever these
// arguments say.
func startsNone(name string, args []word) bool {
	if name == "sort" {
		return !slices.ContainsFunc(args, func(w word) bool { return !w.known || strings.HasPrefix(w.text, "--co") })
	}

	switch name {
	case ":", "true", "false", "echo", "printf", "test", "[", "cd", "pwd", "exit", "return", "break",
		"continue", "shift", "wait", "umask", "type", "ls", "cat", "head", "tail", "wc", "cut", "tr", "uniq",
		"comm", "join", "paste", "fold", "fmt", "nl", "od", "expand", "unexpand", "seq", "tac", "rev",
		"column", "basename", "dirname", "realpath", "readlink", "stat", "du", "df", "touch", "mkdir", "rmdir",
		"rm", "unlink", "cp", "mv", "ln", "chmod", "chown", "chgrp", "mktemp", "truncate", "tee", "dd",
		"sleep", "date", "id", "whoami", "groups", "hostname", "uname", "nproc", "uptime", "tty",
		"cmp", "md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "cksum", "sum",
		"base32", "base64", "xxd", "hexdump", "strings", "grep", "jq", "kill", "ps", "free",
		"tree":
		return true
	}

	return false
}
