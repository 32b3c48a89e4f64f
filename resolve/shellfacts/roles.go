package shellfacts

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// place records the files that the words of a command may name. It skips words that are text to the
// program, such as a pattern of grep or a message.
func (r *reader) place(at syntax.Node, words []word) {
	name, args := base(words[0].text), words[1:]
	text, written := textWords(name, args), writtenWords(name, args)
	named := slices.Contains(showNames, name)
	if s := searchOf(name, args, text); s != nil {
		r.searches = append(r.searches, s)
		if seeksSecrets(args) && len(s.included) == 0 && len(s.unseen(r.workspace)) > 0 {
			r.files = append(r.files, file{path: "secrets"})
		}
	}
	if name == "git" {
		if start, writes := gitStart(args); writes {
			r.gitStarts = append(r.gitStarts, start)
		}
	}
	before := len(r.files)
	defer func() {
		switch more := len(r.files) - before; {
		case name == "ln" || name == "tar" || name == "unzip":
			r.makesLinks = true
		case gitGetsFiles(name, args):
			r.getsFiles = true
		case name == "git" || runsProject(name):
			r.followed += more
		default:
			r.shown += more
		}
	}()
	r.relocates = r.relocates || relocates(name, args)
	for i, w := range args {
		if !w.known && !w.glob {
			node := at
			if w.node != nil {
				node = w.node
			}
			r.misplace(node, "a word is no plain text")
			r.unwrote = r.unwrote || len(written) > 0
			return
		}
		if text[i] {
			continue
		}
		paths := []string{w.text}
		if len(w.text) > 1 && w.text[0] == '-' {
			paths = fileInFlag(w.text)
		} else if name == "dd" {
			_, after, _ := strings.Cut(w.text, "=")
			paths = []string{after}
		}
		for _, p := range paths {
			r.files = append(r.files, file{p, written[i], named})
			if written[i] && w.text != "" && (!isOption(w) || strings.ContainsAny(w.text, "=/.")) {
				r.writes = append(r.writes, oneLine(p))
			}
		}
	}
}

func base(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// showNames lists programs that show names, sizes or types of files, and not their content.
var showNames = []string{
	"ls", "test", "[", "stat", "du", "find", "fd", "tree", "wc", "file", "realpath", "readlink", "cd", "mkdir", "rmdir",
	"which", "type", "pwd", "df",
}

// fileInFlag returns the part of a flag that may name a file.
func fileInFlag(flag string) []string {
	if _, after, ok := strings.Cut(flag, "="); ok {
		return []string{after}
	}
	if len(flag) < 3 || strings.HasPrefix(flag, "--") {
		return nil
	}
	// The value of a short option may begin after any letter of the word: -vt.git.
	var files []string
	for i := 2; i < len(flag); i++ {
		if i == 2 || strings.IndexByte("./~*?[", flag[i]) >= 0 {
			files = append(files, flag[i:])
		}
		if flag[i] == '/' {
			break
		}
	}

	return files
}

// textWords returns the words of a program that are text and not files.
func textWords(name string, args []word) map[int]bool {
	out := map[int]bool{}
	switch name {
	case "echo", "printf", "true", "false", ":", "exit", "sleep", "seq", "basename", "dirname", "type", "which", "tr",
		"date", "expr":
		for i := range args {
			out[i] = true
		}
	case "grep":
		textOperand(args, out, grepWords)
	case "rg":
		textOperand(args, out, rgWords)
	case "sed":
		textOperand(args, out, sedWords)
	case "awk", "gawk", "mawk":
		textOperand(args, out, awkWords)
	case "jq":
		textOperand(args, out, jqWords)
	case "chmod":
		textOperand(args, out, chmodWords)
	case "find":
		for i, w := range args {
			if i > 0 && findText[args[i-1].text] || strings.HasPrefix(w.text, "-") {
				out[i] = true
			}
		}
	case "git":
		for i := range args {
			if i > 0 && (args[0].text == "commit" || args[0].text == "stash") &&
				takesMessage.MatchString(args[i-1].text) {
				out[i] = true
			}
		}
		gitText(args, out)
	case "go":
		for i := range args {
			if i > 0 && slices.Contains([]string{"-run", "-bench", "-skip", "-tags"}, args[i-1].text) {
				out[i] = true
			}
		}
	}

	return out
}

// takesMessage matches options of git whose value, the next word, is a message.
var takesMessage = lazily(`^(-[aqvsuk]*m|--message)$`)

// gitText marks the pattern of git grep, and values of formats.
func gitText(args []word, out map[int]bool) {
	if len(args) > 0 && args[0].text == "grep" {
		rest := map[int]bool{}
		textOperand(args[1:], rest, grepWords)
		for i := range rest {
			out[i+1] = true
		}
	}
	for i, w := range args {
		for _, start := range []string{"--format=", "--pretty=", "--grep=", "--author=", "--since=", "--until=",
			"--date=",
			"-S", "-G", "-m"} {
			if strings.HasPrefix(w.text, start) && len(w.text) > len(start) {
				out[i] = true
			}
		}
	}
}

// operandWords are patterns of the options before a first operand that is text.
type operandWords struct {
	value   *pattern // their value is the next word
	number  *pattern // their value is the next word, if that is a number
	instead *pattern // they take the place of the operand
	flag    *pattern // they have no value, or have it in the same word
}

var (
	none       = lazily(`^$`)
	grepNumber = lazily(`^-[A-Za-z]*[ABCm]$`)
	grepFlag   = lazily(`^(-[A-Za-z0-9.]+|--[a-z-]+=.*|--(color|line-number|ignore-case|word-regexp|count|` +
		`no-filename|with-filename|only-matching|invert-match|extended-regexp|perl-regexp|quiet|null|hidden|no-heading|` +
		`json|stats|multiline|smart-case))$`)
	grepWords = operandWords{none, grepNumber, lazily(`^(-[A-Za-z0-9]*[ef]|--[rf])`), grepFlag}
	rgWords   = operandWords{lazily(`^(-[tTg]|--(glob|type|type-not))$`), grepNumber,
		lazily(`^(-[A-Za-z0-9]*[ef]|--[rf]|--files)`), grepFlag}
	sedWords = operandWords{none, none, lazily(`^-[nErsz]*[ef]|^--[ef]`),
		lazily(`^-[nErsuz]+$`)}
	awkWords = operandWords{lazily(`^-[Fv]$`), none, lazily(`^-[feEil]|^--`),
		lazily(`^-(F.*|v.+)$`)}
	jqWords = operandWords{none, none, lazily(`^-[A-Za-z]*[fL]|^--`),
		lazily(`^-[rcesSMCjan]+$`)}
	chmodWords = operandWords{none, none, lazily(`^--`), lazily(`^-[Rcvf]+$`)}

	findText = map[string]bool{
		"-name": true, "-iname": true, "-path": true, "-ipath": true, "-wholename": true, "-regex": true,
		"-iregex": true,
		"-type":   true, "-size": true, "-mtime": true, "-mmin": true, "-maxdepth": true, "-mindepth": true,
		"-perm": true,
		"-user": true, "-group": true, "-printf": true, "-newermt": true, "-atime": true, "-ctime": true, "-cmin": true,
	}
)

// textOperand marks the first operand, and what -e has in its place. With
// an option that is not known nothing is marked.
func textOperand(args []word, out map[int]bool, w operandWords) {
	if slices.ContainsFunc(args, func(a word) bool { return w.instead.MatchString(a.text) || !a.known && !a.glob }) {
		for i := range args[1:] {
			out[i+1] = args[i].text == "-e" && w.instead.MatchString("-e")
		}
		return
	}
	for i := 0; i < len(args); i++ {
		switch text := args[i].text; {
		case text == "--":
			i++
			fallthrough
		case len(text) < 2 || text[0] != '-':
			out[i] = true
			return
		case w.number.MatchString(text) && i+1 < len(args) && isNumber(args[i+1]), w.value.MatchString(text):
			i++
		case w.number.MatchString(text), !w.flag.MatchString(text):
			return
		}
	}
}

// secretWords matches the words of a search for secrets.
var secretWords = lazily(`(?i)secret|passw|token|api.?key|credential|private.?key|aws_|bearer`)

// seeksSecrets reports whether the words of a search are those of secrets. They may be in any file.
func seeksSecrets(args []word) bool {
	return slices.ContainsFunc(args, func(w word) bool { return secretWords.MatchString(w.text) })
}

// relocates reports whether a program may move or copy directories, so that files have other paths
// afterwards.
func relocates(name string, args []word) bool {
	switch name {
	case "mv", "rsync", "install":
		return true
	case "cp":
		return slices.ContainsFunc(args, func(w word) bool {
			short := len(w.text) > 1 && w.text[0] == '-' && w.text[1] != '-'
			return short && strings.ContainsAny(w.text, "rRa") || strings.HasPrefix(w.text, "--r") ||
				strings.HasPrefix(w.text, "--a") || !w.known && !w.glob
		})
	}

	return name == "git" && len(args) > 0 && args[0].text == "mv"
}

// gitGetsFiles reports whether a command of git writes files of another commit or of a stash. They may
// be symbolic links, so paths behind them can't be looked up before it has run.
func gitGetsFiles(name string, args []word) bool {
	if name != "git" || len(args) == 0 {
		return false
	}
	second := ""
	if len(args) > 1 {
		second = args[1].text
	}
	switch args[0].text {
	case "checkout", "switch":
		operands := 0
		creates := false
		for _, w := range args[1:] {
			if len(w.text) > 1 && w.text[0] == '-' && w.known {
				creates = creates || slices.Contains([]string{"-b", "-c", "--create", "-qc", "-qb"}, w.text)
			} else {
				operands++
			}
		}
		return !creates || operands > 1 // a new branch from another start
	case "stash":
		return second == "pop" || second == "apply" || second == "branch"
	case "worktree":
		return second == "add"
	}

	return slices.Contains([]string{
		"restore", "merge", "pull", "rebase", "reset", "cherry-pick", "revert", "apply", "am", "clone", "submodule",
		"read-tree", "checkout-index", "subtree", "sparse-checkout", "bisect",
	}, args[0].text)
}
