package shellfacts

import (
	"path"
	"slices"
	"strings"
)

// harmless reports whether the options of a listed command are known to write nothing, to run
// nothing and to read no configuration from elsewhere. It returns the first word for which that is
// not known. The owner of the list is responsible for programs that have no options of that kind or
// are unknown here. begins reports whether the owner lists a command.
func harmless(words []word, begins func([]word) bool) (ok bool, because string) {
	name, args := base(words[0].text), words[1:]
	if name == "make" || name == "just" || name == "task" || name == "rake" {
		return harmlessTargets(words, begins)
	}
	check := checkOf(name)
	if check == nil {
		return true, ""
	}
	texts := make([]string, len(args))
	for i, w := range args {
		if !w.known && !(w.glob && isFixed(w.text)) {
			return false, "a word that may be an option" // as a name of a file that begins with a hyphen
		}
		texts[i] = w.text
	}
	if i := slices.IndexFunc(texts, isResponseFile); i >= 0 && name != "git" { // where @ is a revision
		return false, texts[i]
	}
	if check(texts) {
		return true, ""
	}
	for _, o := range options(texts) {
		given, _, _ := strings.Cut(o, "=")
		if alone := slices.DeleteFunc(slices.Clone(texts), func(t string) bool { return t == o }); check(alone) {
			return false, given
		}
	}

	return false, "these words"
}

// isFixed reports whether all names that a shell pattern matches begin in the same way: not as an
// option, or as the same option with a value.
func isFixed(pattern string) bool {
	first := strings.IndexAny(pattern, "*?[")
	return first > 0 && (pattern[0] != '-' || strings.Contains(pattern[:first], "="))
}

// checkOf returns the check of a program's options, or nil if the program is not known here. It
// compiles only what the program needs: a table of all patterns would cost each process 2 ms at its
// start.
func checkOf(name string) func(args []string) bool {
	switch name {
	case "git":
		return harmlessGit
	case "sort":
		return only(sortOptions)
	case "sed":
		return harmlessSed
	case "awk", "gawk", "mawk":
		return harmlessAwk
	case "rg":
		return harmlessRipgrep
	case "grep":
		return without("-R", "--dereference-recursive")
	case "fd":
		return without("-x", "-X", "--exec", "--exec-batch", "-l", "--list-details", "-L", "--follow")
	case "find":
		return without("-delete", "-fprint", "-fls", "-follow", "-L", "-H", "-files0-from")
	case "date":
		return harmlessDate
	case "tree":
		return without("-o", "-R", "--fromfile", "--fromtabfile", "--gitfile", "--infofile", "--info")
	case "md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "cksum", "sum":
		return without("-c", "--check") // they open the files that a file names
	case "tar":
		return harmlessTar
	case "ssh":
		return only(lazily(`^-[46CTnqtvx]+$`))
	case "jq":
		return harmlessJq
	case "uniq", "xxd":
		return oneOperand
	case "less":
		return harmlessLess
	case "wc", "du":
		return without("--files0-from")
	case "file":
		return without("-f", "--files-from", "-m", "--magic-file", "-C", "-z", "-Z", "--uncompress")
	case "diff":
		return without("-N", "-P", "--new-file", "--unidirectional-new-file", "-r", "--recursive", "--paginate", "-l")
	case "hostname":
		return func(args []string) bool { return noOperand(args) && without("-F", "--file", "-b", "--boot")(args) }
	case "cp":
		return harmlessCopy
	case "strings":
		return without()
	}

	return runnerCheck(name)
}

// noOperand accepts commands without operands. It is for programs that change the state named by an
// operand.
func noOperand(args []string) bool { return len(args) == len(options(args)) }

// harmlessTargets requires that the owner lists every target, because the words after a target are
// further targets. Variables and rule files change what runs.
func harmlessTargets(words []word, begins func([]word) bool) (bool, string) {
	for _, w := range words[1:] {
		switch {
		case !w.known:
			return false, "a word that is no plain text"
		case makeOption.MatchString(w.text):
		case strings.HasPrefix(w.text, "-"), strings.Contains(w.text, "="), !begins([]word{words[0], w}):
			return false, w.text
		}
	}

	return true, ""
}

var makeOption = lazily(`^(-[knsBi]+|-j[0-9]*|` +
	`--(silent|keep-going|dry-run|always-make|no-print-directory))$`)

// harmlessTar lists the content of an archive. What one creates, only the archive says.
func harmlessTar(args []string) bool {
	return len(args) > 1 && listsArchive.MatchString(args[0]) && len(options(args[1:])) == 0
}

var listsArchive = lazily(`^-?[zjJv]*t[zjJv]*f$`)

// harmlessRipgrep accepts options that don't run programs, follow links or read hidden files. The
// value of -t, -g and the like may contain any letter.
func harmlessRipgrep(args []string) bool {
	args, ok := withoutGlobs(args)
	if !ok {
		return false
	}
	rest := slices.DeleteFunc(slices.Clone(args), func(a string) bool {
		return len(a) > 2 && a[0] == '-' && strings.IndexByte("tTgABCme", a[1]) >= 0
	})
	return !slices.ContainsFunc(args, shortDot.MatchString) &&
		without("--pre", "--hostname-bin", "--search-zip", "-z", "--config-path", "-L",
			"--follow", "-u", "--unrestricted", "--hidden", "--no-ignore", "--ignore-file", "-g", "--glob",
			"--iglob")(rest)
}

// shortDot matches joined short options of rg with -., which searches hidden files. Behind a letter that
// is not listed a value begins.
var shortDot = lazily(`^-[bchiklnopqsuvwxyzFHILNPSUV0-9]*\.`)

// withoutGlobs returns the arguments of rg without options for patterns of files (-g), and whether no
// such pattern selects hidden files or files with secrets.
func withoutGlobs(args []string) (rest []string, ok bool) {
	for i := 0; i < len(args); i++ {
		pattern, given := strings.CutPrefix(args[i], "-g")
		if long, is := strings.CutPrefix(args[i], "--glob="); is {
			pattern, given = long, true
		}
		if args[i] == "--glob" || args[i] == "-g" {
			if i++; i == len(args) {
				return nil, false
			}
			pattern, given = args[i], true
		}
		switch {
		case !given:
			rest = append(rest, args[i])
		case !strings.HasPrefix(pattern, "!") && !isHarmlessGlob(pattern):
			return nil, false
		}
	}

	return rest, true
}

// isHarmlessGlob reports whether a pattern matches files by their endings, and none that may hold a
// secret. It may begin with names of directories.
func isHarmlessGlob(pattern string) bool {
	for _, p := range braces(pattern) {
		dir, name := path.Split(p)
		if strings.Trim(dir, globRunes) != "" || strings.HasPrefix(p, ".") || strings.Contains(p, "/.") ||
			!hasHarmlessEnd(word{text: name, known: true}) && (strings.Contains(name, "*") || Sensitive(p, false)) {
			return false
		}
	}

	return true
}

const globRunes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./*"

// harmlessJq requires a filter that reads no module and no environment.
func harmlessJq(args []string) bool {
	return without("-f", "--from-file", "-L", "--library-path")(args) &&
		!slices.ContainsFunc(args, func(a string) bool { return jqReads.MatchString(a) })
}

var jqReads = lazily(`(^|[^.\w"])env\b|\$ENV|\b(import|include)\b|\binput_filename\b|\$__prog`)

// options returns the words of a command that may be read as options. A word "--" does not end the
// options here, because it may be the value of the word before it.
func options(args []string) []string {
	var out []string
	for _, arg := range args {
		if len(arg) > 1 && arg[0] == '-' && arg != "--" {
			out = append(out, arg)
		}
	}

	return out
}

// without returns a check for programs with a few options that write, run something or read
// instructions from a file. Long options may be abbreviated, and short ones joined.
func without(harmful ...string) func([]string) bool {
	return func(args []string) bool {
		return !slices.ContainsFunc(options(args), func(option string) bool {
			given, _, _ := strings.Cut(option, "=")
			return slices.ContainsFunc(harmful, func(one string) bool {
				if strings.HasPrefix(one, "--") {
					return strings.HasPrefix(given, "--") && strings.HasPrefix(one, given)
				}
				return !strings.HasPrefix(option, "--") && strings.Contains(option[1:], one[1:])
			})
		})
	}
}

// only returns a check for programs whose harmless options match a pattern.
func only(known *pattern) func([]string) bool {
	return func(args []string) bool {
		return !slices.ContainsFunc(options(args), func(o string) bool { return !known.MatchString(o) })
	}
}

// isResponseFile reports whether programs may read further arguments from the file that a word names.
func isResponseFile(arg string) bool { return strings.HasPrefix(arg, "@") }

// harmlessCopy accepts copies that make no links, and whose names are visible in the command: the
// content of a copied directory may have any name.
func harmlessCopy(args []string) bool {
	recursive := !without("-r", "-R", "-a", "--recursive", "--archive")(args)
	if recursive && slices.ContainsFunc(args, func(a string) bool { return strings.HasSuffix(a, "/.") }) {
		return false
	}

	return without("-s", "-l", "-T", "--symbolic-link", "--link", "--no-target-directory")(args)
}

// oneOperand is for programs that write to their second operand.
func oneOperand(args []string) bool {
	first := slices.IndexFunc(args, func(arg string) bool { return arg == "--" || len(arg) < 2 || arg[0] != '-' })
	if first >= 0 && args[first] == "--" {
		first++
	}
	return first < 0 || len(args)-first < 2
}

var sortOptions = lazily(`^(-[bdfghiMnRrVcCmsuz]+|-[kt].*|-S[0-9]+[bkKMGT%]?|` +
	`--(key|field-separator)=.*|--(reverse|unique|check|merge|stable|numeric-sort|human-numeric-sort|version-sort|` +
	`general-numeric-sort|month-sort|ignore-case|ignore-leading-blanks|dictionary-order|zero-terminated))$`)

// These are the options of git status and of the subcommands that show commits and differences.
// Abbreviated long options, which git accepts, are not included. A format with signatures (%G)
// makes git run programs.
var (
	gitStatus = lazily(`^(-[sbvz]+|-u(no|normal|all)?|--(short|branch|show-stash|long|verbose|null|ignored|` +
		`porcelain(=(v1|v2))?|find-renames|ignored=(traditional|no|matching)|` +
		`untracked-files(=(no|normal|all))?|ahead-behind|no-ahead-behind|renames|no-renames|` +
		`column|no-column))$`)
	gitShows = lazily(`^(-[0-9]+p?|-n[0-9]*|-U[0-9]*|-I.+|-[MCB][0-9%/]*|-[SGL].*|-[puszwbaRWDiEFPqcmtg]+|` +
		`--(stat|dirstat|unified|abbrev|find-renames|find-copies|word-diff|color|submodule|decorate|diff-filter|relative|` +
		`max-count|skip|since|until|after|before|author|committer|grep|date|inter-hunk-context|src-prefix|dst-prefix|` +
		`branches|tags|remotes|color-moved|ignore-submodules|ws-error-highlight|diff-algorithm|word-diff-regex|` +
		`min-parents|max-parents|stat-width)(=.*)?|` +
		`--(format|pretty)(=((format:|tformat:)[^G]*|[^G]*%[^G]*|oneline|short|medium|full|fuller|reference|email|raw))?|` +
		`--diff-merges=(off|none|on|m|first-parent|1|separate|c|combined|cc|dense-combined)|` +
		`--(compact-summary|not|boundary|source|walk-reflogs|reflog|ancestry-path)|` +
		`--(numstat|shortstat|summary|name-only|name-status|patch|no-patch|raw|minimal|patience|histogram|no-color|` +
		`color-words|ignore-space-change|ignore-all-space|ignore-blank-lines|ignore-space-at-eol|ignore-cr-at-eol|` +
		`cached|staged|merge-base|exit-code|quiet|check|full-index|binary|no-abbrev|no-renames|find-copies-harder|` +
		`pickaxe-all|pickaxe-regex|text|no-relative|no-prefix|function-context|no-ext-diff|no-textconv|oneline|graph|` +
		`no-decorate|all|all-match|invert-grep|regexp-ignore-case|extended-regexp|fixed-strings|perl-regexp|merges|` +
		`no-merges|first-parent|reverse|abbrev-commit|no-abbrev-commit|follow|full-history|topo-order|date-order|` +
		`author-date-order|left-right|left-only|right-only|cherry-pick|cherry-mark|cherry|parents|children|` +
		`simplify-by-decoration|root|cc|no-notes|no-patch))$`)
)

// gitOptions lists the harmless options of further subcommands.
var gitOptions = map[string]*pattern{
	"status":   gitStatus,
	"diff":     gitShows,
	"log":      gitShows,
	"show":     gitShows,
	"rev-list": gitShows,
	"shortlog": lazily(`^(-[snec]+|--(summary|numbered|email|no-merges|all|since=.*|until=.*))$`),
	"blame": lazily(`^(-L.*|-[MC][0-9]*|-[wsebplt]+|--(porcelain|line-porcelain|show-email|date=.*|since=.*|` +
		`abbrev=.*|first-parent))$`),
	"grep": lazily(`^(-[nilLcwEFGPvhHIqoaWp]+|-[ABC][0-9]*|-e.*|--(line-number|ignore-case|word-regexp|` +
		`count|name-only|files-with-matches|heading|break|and|or|not|cached|max-depth=.*|color(=.*)?|extended-regexp|` +
		`fixed-strings|perl-regexp|show-function|function-context|context=.*))$`),
	"branch": lazily(`^(-[arvl]+|-vv|--(show-current|list|all|remotes|verbose|merged|no-merged|contains|` +
		`no-contains|points-at|sort=.*|format=[^%]*(%\([a-z:]+\)[^%]*)*|no-color|color(=.*)?|column|no-column))$`),
	"tag":    lazily(`^(-l|-n[0-9]*|--(list|sort=.*|contains|points-at|merged|no-merged))$`),
	"add":    lazily(`^(-[Aunv]+|--(all|update|dry-run|verbose))$`),
	"commit": lazily(`^(-[aqvs]*m.*|-[aqvs]+|--(message=.*|all|quiet|verbose|allow-empty|signoff))$`),
	"switch": lazily(`^(-c|--create|-q|--quiet|--no-track|--track|-t|-d|--detach)$`),
	"rev-parse": lazily(`^(-q|--(short(=.*)?|abbrev-ref|show-toplevel|verify|git-dir|quiet|show-prefix|` +
		`is-inside-work-tree|symbolic-full-name|all|branches))$`),
	"ls-files": lazily(`^(-[comdsutzv]+|--(cached|others|modified|deleted|stage|exclude-standard|` +
		`error-unmatch|full-name|ignored|directory|unmerged|eol))$`),
	"ls-tree": lazily(`^(-[rdtlz]+|--(name-only|full-tree|long|abbrev(=.*)?))$`),
	"describe": lazily(`^--(tags|always|all|long|dirty(=.*)?|abbrev=.*|exact-match|` +
		`contains|first-parent|match=.*)$`),
	"merge-base": lazily(`^(-a|--(all|is-ancestor|fork-point|octopus))$`),
	"cat-file":   lazily(`^-[tpse]$`),
	"name-rev":   lazily(`^--(tags|name-only|always)$`),
}

// harmlessGit requires that the first word is a subcommand, because options before it change where
// git works and what it runs. For subcommands that are not in the tables, it refuses the options
// that write, run programs or read elsewhere.
func harmlessGit(args []string) bool {
	if len(args) == 1 && args[0] == "--version" {
		return true
	}
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return false
	}
	rest := args[1:]
	if i := slices.Index(rest, "-F"); args[0] == "commit" && i >= 0 && i+1 < len(rest) && rest[i+1] == "-" {
		rest = slices.Delete(slices.Clone(rest), i, i+2) // the message is standard input
	}
	operands := len(rest) - len(options(rest))
	if known := gitOptions[args[0]]; known != nil {
		return only(known)(rest) && (args[0] != "tag" || operands == 0 || slices.Contains(rest, "-l"))
	}
	switch args[0] {
	case "remote":
		return len(rest) == 0 || len(rest) == 1 && rest[0] == "-v" || rest[0] == "get-url" && len(rest) == operands
	case "stash":
		return harmlessStash(rest)
	case "restore":
		return len(rest) > 1 && (rest[0] == "--staged" || rest[0] == "-S") && len(options(rest)) == 1
	case "reflog":
		return (operands == 0 || rest[0] == "show") && only(gitShows)(rest)
	case "worktree":
		return len(rest) == 1 && rest[0] == "list"
	case "checkout":
		return len(rest) > 1 && rest[0] == "-b" && len(rest) <= 3 && len(options(rest)) == 1 &&
			!slices.Contains(rest, "--")
	}

	return without("--output", "--output-directory", "--ext-diff", "--textconv", "--filters", "--no-index", "--exec",
		"--upload-pack", "--receive-pack", "--open-files-in-pager", "--contents", "--config", "--config-env",
		"--template", "--pathspec-from-file", "--git-dir", "--work-tree", "--separate-git-dir",
		"--exec-path", "--file", "-O", "-c", "-o", "-x", "-u")(rest)
}

// harmlessStash accepts what shows stashes, and what moves changes to a stash and back.
func harmlessStash(args []string) bool {
	if len(args) == 0 {
		return true
	}
	switch args[0] {
	case "list", "show":
		return only(gitShows)(args[1:])
	case "pop", "apply":
		return only(lazily(`^(-q|--(quiet|index))$`))(args[1:])
	}
	if args[0] != "push" && !strings.HasPrefix(args[0], "-") {
		return false
	}
	return only(lazily(`^(-[ukSq]+|-m.*|--(include-untracked|keep-index|no-keep-index|staged|quiet|` +
		`message|message=.*))$`))(args)
}

// harmlessDate requires that the time is only shown: an operand without a plus sets it.
func harmlessDate(args []string) bool {
	if slices.ContainsFunc(args, func(arg string) bool { return arg != "" && arg[0] != '-' && arg[0] != '+' }) {
		return false
	}
	return without("-s", "--set", "-f", "--file")(args)
}

// harmlessLess accepts no commands of less, because they run programs.
func harmlessLess(args []string) bool {
	if slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "+") }) {
		return false
	}
	return !slices.ContainsFunc(options(args), func(o string) bool { return strings.Trim(o, "-NSRFXiImMn") != "" })
}

// harmlessSed requires a script that prints, deletes or replaces lines. Other scripts, and some
// options, write files (w) or run programs (e).
func harmlessSed(args []string) bool {
	for i, arg := range args {
		if len(arg) > 1 && arg[0] == '-' {
			if strings.Trim(arg[1:], "nErsuz") != "" {
				return false
			}
			continue
		}
		rest := options(args[i+1:])
		return len(rest) == 0 && (sedLines.MatchString(arg) || replaces(arg))
	}

	return false
}

var sedLines = lazily("^(" + sedAddress + "(," + sedAddress + ")?[pdq=](;|$))+$")

// sedAddress is a line's number, or a pattern without anything that
// could end it elsewhere.
const sedAddress = `([0-9]+|\$|/[^/\\\n\[]+/)`

// replaces reports whether a script of sed is one s command whose flags
// neither write nor run.
func replaces(script string) bool {
	if len(script) < 2 || script[0] != 's' || strings.ContainsAny(script, "\n\\") {
		return false
	}
	parts := strings.Split(script[2:], script[1:2])

	return len(parts) == 3 && strings.Trim(parts[2], "gpiIm0123456789") == ""
}

// harmlessAwk requires a program that neither runs nor writes anything, and no option but the field
// separator.
func harmlessAwk(args []string) bool {
	if slices.ContainsFunc(options(args), func(o string) bool { return !strings.HasPrefix(o, "-F") }) {
		return false
	}
	return !slices.ContainsFunc(args, func(arg string) bool {
		return strings.ContainsAny(arg, "|>@") || awkReads.MatchString(arg)
	})
}

// awkReads matches the words by which awk runs programs or reads other files and the environment.
var awkReads = lazily(`system|getline|ENVIRON|ARG[VC]|SYMTAB|PROCINFO|FUNCTAB`)

// readsDirectory reports whether files in the current directory decide what a program does, so that
// the same words may run anything in another directory.
func readsDirectory(name string) bool {
	return slices.Contains([]string{
		"git", "hg", "svn", "make", "just", "task", "cmake", "ninja", "npm", "npx", "yarn", "pnpm", "bun", "deno",
		"node", "cargo", "go", "python", "python3", "pytest", "tox", "nox", "uv", "poetry", "pip", "ruff", "mypy",
		"black", "flake8", "gradle", "gradlew", "mvn", "mvnw", "bundle", "rake", "ruby", "rspec", "composer", "php",
		"phpunit", "eslint", "tsc", "jest", "vitest", "prettier", "terraform", "docker", "kubectl", "helm", "direnv",
		"dotnet", "swift", "bazel", "golangci-lint", "pre-commit", "mix", "sbt",
	}, base(name))
}
