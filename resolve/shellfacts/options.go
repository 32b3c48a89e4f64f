package shellfacts

import (
	"regexp"
	"slices"
	"strings"
)

// harmless reports whether the options of a listed command are known to
// write nothing, to run nothing and to read no configuration from
// elsewhere. Programs that have no options of that kind, and those that
// are not known here, are for the owner of the list to judge.
func harmless(words []word) bool {
	name, args := words[0].text, words[1:]
	check := map[string]func([]string) bool{
		"git":  harmlessGit,
		"sort": only(sortOptions),
		"sed":  harmlessSed,
		"awk":  harmlessAwk,
		"gawk": harmlessAwk,
		"mawk": harmlessAwk,
		"rg":   without("--pre", "--hostname-bin", "--search-zip", "-z", "--config-path"),
		"fd":   without("-x", "-X", "--exec", "--exec-batch", "-l", "--list-details"),
		"date": harmlessDate,
		"tree": without("-o", "-R"),
		"jq":   without("-f", "--from-file", "-L", "--library-path"),
		"uniq": oneOperand,
		"xxd":  oneOperand,
		"less": harmlessLess,
	}[name[strings.LastIndexByte(name, '/')+1:]]
	if check == nil {
		return true
	}
	texts := make([]string, len(args))
	for i, w := range args {
		if !w.known {
			return false // it may be an option
		}
		texts[i] = w.text
	}

	return check(texts)
}

// options are the words of a command that may be read as options. A word
// "--" ends nothing here: it may be the value of the one before it.
func options(args []string) []string {
	var out []string
	for _, arg := range args {
		if len(arg) > 1 && arg[0] == '-' && arg != "--" {
			out = append(out, arg)
		}
	}

	return out
}

// without is for programs of which a few options write, run something or
// read what to do from a file. Long ones may be abbreviated, and short
// ones joined.
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

// only is for programs of which a pattern knows the harmless options.
func only(known *regexp.Regexp) func([]string) bool {
	return func(args []string) bool {
		return !slices.ContainsFunc(options(args), func(o string) bool { return !known.MatchString(o) })
	}
}

// oneOperand is for programs that write to their second operand.
func oneOperand(args []string) bool {
	first := slices.IndexFunc(args, func(arg string) bool { return arg == "--" || len(arg) < 2 || arg[0] != '-' })
	if first >= 0 && args[first] == "--" {
		first++
	}
	return first < 0 || len(args)-first < 2
}

var sortOptions = regexp.MustCompile(`^(-[bdfghiMnRrVcCmsuz]+|-[kt].*|-S[0-9]+[bkKMGT%]?|` +
	`--(key|field-separator)=.*|--(reverse|unique|check|merge|stable|numeric-sort|human-numeric-sort|version-sort|` +
	`general-numeric-sort|month-sort|ignore-case|ignore-leading-blanks|dictionary-order|zero-terminated))$`)

// The options of git that show: of status, and of what shows commits and
// differences. Git takes abbreviations of long ones, which are none of
// these, and runs programs for a format with signatures (%G).
var (
	gitStatus = regexp.MustCompile(`^(-[sbvz]+|-u(no|normal|all)?|--(short|branch|show-stash|long|verbose|null|ignored|` +
		`porcelain(=(v1|v2))?|find-renames|ignored=(traditional|no|matching)|` +
		`untracked-files(=(no|normal|all))?|ahead-behind|no-ahead-behind|renames|no-renames|` +
		`column|no-column))$`)
	gitShows = regexp.MustCompile(`^(-[0-9]+p?|-n[0-9]*|-U[0-9]*|-I.+|-[MCB][0-9%/]*|-[SGL].*|-[puszwbaRWDiEFPqcmtg]+|` +
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

// harmlessGit wants a subcommand first: what stands before it changes
// where git works, and what it runs. Of subcommands that are not in the
// tables, the options are refused that write, run or read elsewhere.
func harmlessGit(args []string) bool {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return false
	}
	switch args[0] {
	case "status":
		return only(gitStatus)(args[1:])
	case "diff", "log", "show":
		return only(gitShows)(args[1:])
	}

	return without("--output", "--output-directory", "--ext-diff", "--textconv", "--filters", "--no-index", "--exec",
		"--upload-pack", "--receive-pack", "--open-files-in-pager", "--contents", "--config", "--config-env",
		"--template", "--git-dir", "--work-tree", "--separate-git-dir", "--exec-path", "--file", "-O", "-c", "-o",
		"-x", "-u")(args[1:])
}

// harmlessDate wants to show the time: an operand without a plus sets it.
func harmlessDate(args []string) bool {
	if slices.ContainsFunc(args, func(arg string) bool { return arg != "" && arg[0] != '-' && arg[0] != '+' }) {
		return false
	}
	return without("-s", "--set", "-f", "--file")(args)
}

// harmlessLess knows no commands of less, which run programs.
func harmlessLess(args []string) bool {
	if slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "+") }) {
		return false
	}
	return !slices.ContainsFunc(options(args), func(o string) bool { return strings.Trim(o, "-NSRFXiImMn") != "" })
}

// harmlessSed wants a script that prints, deletes or replaces lines: others
// write files (w) or run programs (e), and so do options.
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

var sedLines = regexp.MustCompile(`^[0-9$]+(,[0-9$]+)?[pdq=]$`)

// replaces reports whether a script of sed is one s command whose flags
// neither write nor run.
func replaces(script string) bool {
	if len(script) < 2 || script[0] != 's' || strings.ContainsAny(script, "\n\\") {
		return false
	}
	parts := strings.Split(script[2:], script[1:2])

	return len(parts) == 3 && strings.Trim(parts[2], "gpiIm0123456789") == ""
}

// harmlessAwk wants a program that neither runs nor writes anything, and
// no options but the separator of fields.
func harmlessAwk(args []string) bool {
	if slices.ContainsFunc(options(args), func(o string) bool { return !strings.HasPrefix(o, "-F") }) {
		return false
	}
	return !slices.ContainsFunc(args, func(arg string) bool {
		return strings.ContainsAny(arg, "|>@") || strings.Contains(arg, "system") || strings.Contains(arg, "getline")
	})
}

// readsDirectory reports whether a program does what files in its
// directory say: in another directory the same words may run anything.
func readsDirectory(name string) bool {
	return slices.Contains([]string{
		"git", "hg", "svn", "make", "just", "task", "cmake", "ninja", "npm", "npx", "yarn", "pnpm", "bun", "deno",
		"node", "cargo", "go", "python", "python3", "pytest", "tox", "nox", "uv", "poetry", "pip", "ruff", "mypy",
		"black", "flake8", "gradle", "gradlew", "mvn", "mvnw", "bundle", "rake", "ruby", "rspec", "composer", "php",
		"phpunit", "eslint", "tsc", "jest", "vitest", "prettier", "terraform", "docker", "kubectl", "helm", "direnv",
		"dotnet", "swift", "bazel", "golangci-lint", "pre-commit", "mix", "sbt",
	}, name[strings.LastIndexByte(name, '/')+1:])
}
