package shellfacts

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// command looks at a command with its words, and at those that it runs.
func (r *reader) command(at syntax.Node, words []word) {
	if len(words) == 0 {
		return
	}
	name := words[0]
	if !name.known || name.text == "" {
		if name.node != nil {
			at = name.node
		}
		r.lose(at, "a program's name is no plain text")
		return
	}
	if name.text == "command" && len(words) == 3 && words[1].known &&
		(words[1].text == "-v" || words[1].text == "-V") &&
		words[2].known {
		words = []word{{text: "type", known: true}, words[2]} // it only looks for a program
	}
	if name = words[0]; changesShell(name.text) || changes(name.text, words[1:]) {
		r.lose(at, "it has the shell read or run something later")
		return
	}
	r.words(at, words)
	if inner := wrapperOf(words); inner != nil {
		r.wrapped(at, name.text, inner, words)
		return
	}

	r.program(at, words)
}

// words notes the words of a command.
func (r *reader) words(at syntax.Node, words []word) {
	var texts []string
	for i, w := range words {
		if !w.known {
			r.unworded = true
			if w.node != nil {
				at = w.node
			}
			r.doubt(at, "a word is no plain text")
			return
		}
		texts = append(texts, shown(w.text))
		switch {
		case i == 0:
		case len(w.text) > 1 && w.text[0] == '-':
			r.flags = append(r.flags, shown(w.text))
			r.paths = append(r.paths, inFlag(w.text)...)
		default:
			r.paths = append(r.paths, oneLine(w.text))
		}
	}

	r.commands = append(r.commands, strings.Join(texts, " "))
}

// inFlag returns the parts of a flag that may name a file.
func inFlag(flag string) []string {
	var out []string
	if _, after, ok := strings.Cut(flag, "="); ok {
		out = append(out, oneLine(after))
	}
	if i := strings.IndexByte(flag, '/'); i > 0 {
		out = append(out, oneLine(flag[i:]))
	}

	return out
}

// program records a program that runs, and makes the facts unknown if it may run others.
func (r *reader) program(at syntax.Node, words []word) {
	name := words[0].text
	r.named(&r.programs, name)
	words = r.usual(words)
	r.place(at, words)
	listed := r.isListed(words)
	if listed && base(name) == "git" && r.workspace != nil && r.workspace.Foreign != "" {
		listed = false
		r.because = append(r.because, "git ("+Excerpt(r.workspace.Foreign)+")")
	}
	switch {
	case !listed:
		r.named(&r.unlisted, name)
	case strings.Contains(name, "/") && name[0] != '/', readsDirectory(name) && !runsProject(name):
		r.here = append(r.here, name)
	case readsDirectory(name):
		r.runs = append(r.runs, name)
	}
	if slices.Contains([]string{"pushd", "popd", "chdir"}, name) {
		r.goesAnywhere = true
	}
	if name == "cd" {
		if len(words) == 2 && words[1].known && plain(words[1].text) && words[1].text[0] != '-' {
			r.goes = append(r.goes, words[1].text)
		} else {
			r.goesAnywhere = true
		}
		stays, starts := r.workspace.isStart(words[1:])
		r.changesDir, r.leavesStart = r.changesDir || !stays, r.leavesStart || !starts
		r.entersOthersCode = r.entersOthersCode || !starts && !r.workspace.isOwnPart(words[1:])
		r.home(words[1:])
	}
	if !listed && !startsNone(name, words[1:]) {
		r.unnamed = true
		r.doubt(at, "a program may start others: it is neither known nor listed")
	}
}

// usual returns the words of a command without options before the subcommand that change nothing of
// what it does here.
func (r *reader) usual(words []word) []word {
	without := func(n int) []word { return append([]word{words[0]}, words[1+n:]...) }
	for len(words) > 2 && words[1].known {
		switch name, option := base(words[0].text), words[1].text; {
		case name == "git" && (option == "--no-pager" || option == "-P"):
			words = without(1) // it only starts one program less
		case name == "git" && option == "-C":
			stays, starts := r.workspace.isStart(words[2:3])
			if !starts {
				return words
			}
			r.changesDir = r.changesDir || !stays
			words = without(2)
		case name == "make" && makeOption.MatchString(option):
			words = without(1)
		default:
			return words
		}
	}

	return words
}

// home records the home directory as a named file if cd goes there, or to a directory that the line
// does not name, such as -.
func (r *reader) home(args []word) {
	to := ""
	for _, w := range args {
		if !w.known || !strings.HasPrefix(w.text, "-") {
			if to != "" {
				to = "" // zsh replaces the first word in the name of the directory
				break
			}
			if to = w.text; !w.known {
				return // the paths are unknown
			}
		} else if w.text == "-" {
			to = ""
			break
		}
	}
	if to == "" {
		r.paths = append(r.paths, "~")
		r.files = append(r.files, file{path: "~"})
	}
}

// named adds a program by its name in the line, and by the last part of a path.
func (r *reader) named(to *[]string, name string) {
	*to = append(*to, shown(name))
	if strings.Contains(name, "/") {
		*to = append(*to, shown(path.Base(name)))
	}
}

// isListed reports whether a command begins like an entry of the owner's list and has only harmless
// options.
func (r *reader) isListed(words []word) bool {
	if !r.begins(words) {
		r.because = append(r.because, Excerpt(firstWords(words)))
		return false
	}
	if ok, word := harmless(words, r.begins); !ok {
		r.because = append(r.because, Excerpt(firstWords(words)+" with "+word))
		return false
	}
	if other := r.runsOthersCode(words); other != "" {
		r.because = append(r.because, Excerpt(words[0].text+" runs code in "+other))
		return false
	}
	if program := r.downloads(words); program != "" {
		r.because = append(r.because, Excerpt(words[0].text+" may download "+program))
		return false
	}

	return true
}

// begins reports whether a command begins as an entry of the owner.
func (r *reader) begins(words []word) bool {
	return slices.ContainsFunc(r.listed, func(entry []string) bool {
		if len(entry) > len(words) {
			return false
		}
		for i, w := range entry {
			if !words[i].known || words[i].text != w {
				return false
			}
		}

		return true
	})
}

// firstWords are a program and, if it has one, its subcommand.
func firstWords(words []word) string {
	if len(words) > 1 && words[1].known && plain(words[1].text) && words[1].text[0] != '-' {
		return words[0].text + " " + words[1].text
	}

	return words[0].text
}

// wrapped looks at a program that runs what its arguments say.
func (r *reader) wrapped(at syntax.Node, name string, inner wrapper, words []word) {
	r.named(&r.programs, name)
	if name == "find" {
		r.place(at, outer(words))
	}
	if !r.isListed(words) || name == "find" && slices.ContainsFunc(words, word.changesFiles) {
		r.named(&r.unlisted, name)
	}
	if name := base(name); name == "uv" || name == "poetry" || name == "pdm" {
		r.runs = append(r.runs, name) // it sets up the project of its directory first
	}
	found, ok := inner(r, words[1:])
	if !ok {
		r.lose(at, "the command that a program runs can't be found in its arguments")
		return
	}
	for _, f := range found {
		r.command(at, f)
	}
}

// wrapper finds the commands in the arguments of a program that runs them. It returns false if they
// can't be determined.
type wrapper func(r *reader, args []word) ([][]word, bool)

// wrapperOf returns the wrapper of a program, or nil if the program is not known to run its
// arguments.
func wrapperOf(words []word) wrapper {
	switch words[0].text {
	case "command", "exec", "nohup", "setsid", "sudo", "doas":
		return after
	case "env":
		return afterVariables
	case "uv", "poetry", "pdm":
		if len(words) > 1 && words[1].known && words[1].text == "run" {
			return afterRun
		}
	case "nice":
		return behindNice
	case "timeout":
		return behindTime
	case "xargs":
		return xargs
	case "find":
		return find
	case "sh", "bash", "dash":
		return shell
	}

	return nil
}

// after returns the arguments of a wrapper as one command.
func after(_ *reader, args []word) ([][]word, bool) { return begins(args) }

// afterVariables returns the command of env, behind variables that don't change what runs.
func afterVariables(_ *reader, args []word) ([][]word, bool) {
	for len(args) > 0 && args[0].known {
		name, value, assigns := strings.Cut(args[0].text, "=")
		if !assigns || !isHarmless(name, value) {
			break
		}
		args = args[1:]
	}

	return begins(args)
}

// afterRun returns the command that runs in the environment of a Python project.
func afterRun(_ *reader, args []word) ([][]word, bool) {
	args = args[1:]
	for len(args) > 0 && args[0].known && slices.Contains([]string{"--frozen", "--locked", "--offline", "--no-sync",
		"-q",
		"--quiet"}, args[0].text) {
		args = args[1:]
	}

	return begins(args)
}

func behindNice(_ *reader, args []word) ([][]word, bool) {
	if len(args) > 1 && args[0].known && args[0].text == "-n" && args[1].known {
		args = args[2:]
	}

	return begins(args)
}

// begins reports whether a command begins with a program's name, and not with a word that the
// wrapper could read as its own.
func begins(args []word) ([][]word, bool) {
	if len(args) == 0 || !args[0].known || args[0].text == "" || strings.HasPrefix(args[0].text, "-") ||
		strings.ContainsAny(args[0].text, "=") {
		return nil, false
	}

	return [][]word{args}, true
}

func behindTime(_ *reader, args []word) ([][]word, bool) {
	for len(args) > 1 && args[0].known && strings.HasPrefix(args[0].text, "-") {
		switch option := args[0].text; {
		case (option == "-k" || option == "-s") && args[1].known && plain(args[1].text):
			args = args[2:]
		case timeOption.MatchString(option):
			args = args[1:]
		default:
			return nil, false
		}
	}
	if len(args) < 2 || !args[0].known || args[0].text == "" || strings.Trim(args[0].text, "0123456789.smhd") != "" {
		return nil, false
	}

	return begins(args[1:])
}

var timeOption = lazily(`^--(preserve-status|foreground|verbose|(kill-after|signal)=[A-Za-z0-9.]+)$`)

// xargs returns the command that xargs runs, with further arguments that are unknown.
func xargs(_ *reader, args []word) ([][]word, bool) {
	for len(args) > 0 && args[0].known && strings.HasPrefix(args[0].text, "-") {
		switch args[0].text {
		case "-0", "-r", "-t":
			args = args[1:]
		case "-n", "-P", "-L":
			if len(args) < 2 || !args[1].known {
				return nil, false
			}
			args = args[2:]
		default:
			return nil, false
		}
	}

	found, ok := begins(args)
	if !ok {
		return nil, false
	}

	return [][]word{append(found[0][:len(found[0]):len(found[0])], word{})}, true
}

// find returns the commands that find runs. The names of the found files are unknown.
func find(r *reader, args []word) ([][]word, bool) {
	var found [][]word
	for i := 0; i < len(args); i++ {
		switch {
		case !args[i].known:
			return nil, false
		case !strings.HasPrefix(args[i].text, "-exec") && !strings.HasPrefix(args[i].text, "-ok"):
			continue
		}

		end := i + 1
		for end < len(args) && !args[end].ends() {
			end++
		}
		inner, ok := begins(args[i+1 : min(end, len(args))])
		if !ok || end == len(args) {
			return nil, false
		}
		if args[end].text == "+" && (args[end-1].text != "{}" || !strings.HasPrefix(args[i].text, "-exec")) {
			return nil, false // the command goes on
		}
		for j, w := range inner[0] {
			if strings.Contains(w.text, "{}") {
				inner[0] = slices.Clone(inner[0])
				inner[0][j] = foundBy(args, w.text)
				if !readsOnly(inner[0][0]) {
					inner[0][j] = word{} // a name such as config is also that of a file in .git
				}
			}
		}

		if strings.HasSuffix(args[i].text, "dir") { // -execdir, -okdir
			r.leavesStart, r.changesDir, r.goesAnywhere = true, true, true
		}
		found = append(found, inner[0])
		i = end
	}

	return found, true
}

// foundBy returns a word for the text that replaces {}: a path below the only directory where find
// starts.
func foundBy(args []word, at string) word {
	if at != "{}" || len(args) < 2 || !args[0].known || args[0].text == "" ||
		strings.ContainsAny(args[0].text[:1], "-(!") || !strings.HasPrefix(args[1].text, "-") {
		return word{}
	}
	name := ""
	for i, w := range args[:len(args)-1] {
		if w.known && w.text == "-name" && hasHarmlessEnd(args[i+1]) {
			name = args[i+1].text
		}
		if w.text == "-o" || w.text == "-or" || w.text == "," || w.text == "!" || w.text == "-not" {
			return word{}
		}
	}
	if name == "" {
		return word{} // any file, also in hidden directories
	}

	return word{text: args[0].text + "/" + name, glob: true}
}

// hasHarmlessEnd reports whether a pattern of find matches names by their ending alone, and no name
// with this ending contains a secret. Unlike a shell, find matches hidden files too.
func hasHarmlessEnd(pattern word) bool {
	end, ok := strings.CutPrefix(pattern.text, "*")
	return ok && pattern.known && len(end) > 1 && end[0] == '.' && !strings.ContainsAny(end, "*?[\\/") &&
		!Sensitive(".env"+end, false) && !Sensitive("a"+end, false)
}

// readsOnly reports whether a program only shows the files that it is given.
func readsOnly(program word) bool {
	return slices.Contains([]string{"cat", "head", "tail", "wc", "grep", "ls", "file", "stat", "du", "md5sum",
		"sha256sum", "echo", "basename", "dirname"}, base(program.text))
}

// outer returns the words of find without the commands that it runs.
func outer(words []word) []word {
	var out []word
	within := false
	for _, w := range words {
		within = within && !w.ends() || !within &&
			(strings.HasPrefix(w.text, "-exec") || strings.HasPrefix(w.text, "-ok"))
		if !within && !w.ends() {
			out = append(out, w)
		}
	}

	return out
}

// changesFiles reports whether a word has find delete or write.
func (w word) changesFiles() bool {
	return w.text == "-delete" || strings.HasPrefix(w.text, "-fprint") || strings.HasPrefix(w.text, "-fls")
}

// ends reports whether a word ends a command of find.
func (w word) ends() bool { return w.known && (w.text == ";" || w.text == "+") }

// shell reads the command line that a shell gets with -c or -lc.
func shell(r *reader, args []word) ([][]word, bool) {
	if len(args) < 2 || !args[0].known || args[0].text != "-c" && args[0].text != "-lc" || !args[1].known {
		return nil, false
	}
	if text := args[1].text; text != "" && strings.ContainsRune("-+", rune(text[0])) {
		return nil, false // a flag: the line is one of the words after it
	}
	r.line(args[1].text, r.depth+1)

	return nil, !r.lost
}
