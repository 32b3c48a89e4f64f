package shellfacts

import (
	"path"
	"slices"
	"strings"
)

// runnerCheck returns the check of the options of a test runner, a build tool or a linter, or nil if
// the program is not known here.
func runnerCheck(name string) func(args []string) bool {
	switch name {
	case "go":
		return harmlessGo
	case "gofmt":
		return onlyOptions(`-[ldwse]+`)
	case "goimports":
		return onlyOptions(`-[ldwe]+`)
	case "staticcheck":
		return onlyOptions(`-(checks|f|tests|explain)(=.*)?`)
	case "golangci-lint":
		return onlyOptions(`--(fix|timeout|fast|new|new-from-rev|enable|disable|verbose)(=.*)?|-[vED]`)
	case "cargo":
		return onlyOptions(cargoOptions)
	case "npm", "yarn", "pnpm", "bun":
		return func(args []string) bool { return harmlessScript(name, args) }
	case "jest", "vitest":
		return onlyOptions(scriptOptions)
	case "pytest":
		return harmlessPytest
	case "mypy":
		return onlyOptions(`--(strict|ignore-missing-imports|pretty|show-error-codes|no-color-output|no-error-summary|` +
			`check-untyped-defs)|-p`)
	case "ruff":
		return onlyOptions(`--(fix|diff|check|select|ignore|quiet|statistics|no-cache|output-format)(=.*)?|-q`)
	case "black":
		return onlyOptions(`--(check|diff|quiet|fast|line-length)(=.*)?|-[ql]`)
	case "isort":
		return onlyOptions(`--(check|check-only|diff|quiet|profile)(=.*)?|-[qc]`)
	case "flake8":
		return onlyOptions(`--(max-line-length|select|ignore|extend-ignore|count|statistics|show-source|exclude)(=.*)?`)
	case "eslint":
		return onlyOptions(`--(fix|ext|max-warnings|quiet|cache|no-error-on-unmatched-pattern)(=.*)?|` +
			`--format=(stylish|json|compact|unix)`)
	case "prettier":
		return onlyOptions(`--(check|write|list-different|log-level)(=.*)?|-[wlc]`)
	case "tsc":
		return onlyOptions(`--(noEmit|pretty|skipLibCheck|build|project|incremental)|-[bp]`)
	case "npx", "bunx":
		return harmlessNpx
	case "uvx", "pnpx", "pipx":
		return func([]string) bool { return false } // they download what they run
	case "python", "python3":
		return harmlessPython
	case "unittest":
		return harmlessUnittest
	case "rustfmt":
		return onlyOptions(`--(check|edition)(=.*)?`)
	case "node":
		return onlyOptions(`-v|--version`)
	}

	return nil
}

// onlyOptions returns a check for programs whose harmless options are alternatives of a pattern.
func onlyOptions(alternatives string) func([]string) bool {
	return only(lazily("^(" + alternatives + ")$"))
}

// These are the options of test runners and build tools that neither run another program nor read
// configuration from elsewhere.
const (
	cargoOptions = `-[vqpDWAFj]|-j[0-9]+|--(package|all|workspace|lib|bins|bin|tests|test|release|quiet|verbose|` +
		`all-features|` +
		`features|no-default-features|all-targets|no-run|nocapture|test-threads|exact|ignored|include-ignored|check|locked|` +
		`offline|doc|examples|example|message-format|no-deps|depth|version|list|exclude|keep-going|no-fail-fast|jobs)(=.*)?`
	// scriptOptions are options of test runners for JavaScript, also behind the name of a script.
	scriptOptions = `-[stiuv]|--(silent|coverage|watch|watchAll|run|verbose|ci|bail|quiet|testNamePattern|` +
		`testPathPattern|runInBand|no-cache|no-coverage|findRelatedTests|noEmit|no-watch|color|no-color|fix|max-warnings|` +
		`check|version|passWithNoTests|updateSnapshot|shard|maxWorkers|project|changed|retry|testTimeout|` +
		`detectOpenHandles|forceExit|listTests|onlyChanged|selectProjects|typecheck)(=.*)?|` +
		`--reporter=(verbose|dot|default|basic|spec)|--json`
	// npmOptions are options of npm itself, before --.
	npmOptions    = `-[sw]|--(silent|if-present|workspace|workspaces|include-workspace-root|depth|all|parseable|long)(=.*)?`
	pytestOptions = `-[qvxslk]+|-m|-n[0-9]*|-r[a-zA-Z]+|--(lf|ff|nf|sw|last-failed|failed-first|stepwise|tb|maxfail|cov|` +
		`durations|co|collect-only|disable-warnings|no-header|no-cov|exitfirst|quiet|verbose|color|version|markers|` +
		`fixtures|showlocals|capture|cov-branch|numprocesses|ignore|deselect)(=.*)?|` +
		`--cov-report=(term|term-missing|html|xml)(:skip-covered)?|` +
		`--version|-V|--showlocals`
)

// harmlessPython checks the arguments of the modules that it knows. The owner of the list is
// responsible for others.
func harmlessPython(args []string) bool {
	if len(args) < 2 || args[0] != "-m" || checkOf(args[1]) == nil {
		return true
	}

	return checkOf(args[1])(args[2:])
}

// nodePrograms are programs of a project whose options are known.
var nodePrograms = []string{"eslint", "prettier", "tsc", "jest", "vitest"}

// harmlessNpx is for programs of a project, by their names alone.
func harmlessNpx(args []string) bool {
	if args = withoutNo(args); len(args) == 0 || !slices.Contains(nodePrograms, args[0]) {
		return false
	}

	return runnerCheck(args[0])(args[1:])
}

// withoutNo returns the arguments of npx after the option by which it downloads nothing.
func withoutNo(args []string) []string {
	if len(args) > 0 && (args[0] == "--no-install" || args[0] == "--no") {
		return args[1:]
	}

	return args
}

// downloads returns the program that npx or bunx would download, because neither an option forbids
// it nor the runtime found the program in the project. It returns an empty string if there is none.
func (r *reader) downloads(words []word) string {
	name := base(words[0].text)
	if name != "npx" && name != "bunx" || len(words) < 2 {
		return ""
	}
	program := words[1].text
	if name == "npx" && (program == "--no-install" || program == "--no") ||
		r.workspace != nil && slices.Contains(r.workspace.Installed, program) {
		return ""
	}

	return program
}

// harmlessScript checks the arguments of a program that runs scripts of package.json. Only npm keeps
// options for itself; the others pass all of them to the script.
func harmlessScript(name string, args []string) bool {
	passed := onlyOptions(scriptOptions)
	switch {
	case len(args) == 0:
		return true
	case slices.Contains([]string{"x", "dlx", "create", "init"}, args[0]):
		return false // it downloads a program and runs it
	case name != "npm" && slices.Contains(nodePrograms, args[0]):
		return runnerCheck(args[0])(args[1:])
	case args[0] == "exec":
		return name != "npm" && harmlessNpx(args[1:])
	case name != "npm":
		return passed(args)
	}
	own := args
	if i := slices.Index(args, "--"); i >= 0 {
		own, args = args[:i], args[i:]
	} else {
		args = nil
	}

	return onlyOptions(npmOptions+"|"+scriptOptions)(own) && passed(args)
}

// harmlessPytest accepts no file by name that is no test: pytest runs each file that it is given.
func harmlessPytest(args []string) bool {
	return onlyOptions(pytestOptions)(args) &&
		!slices.ContainsFunc(args, func(a string) bool {
			name, _, _ := strings.Cut(a, "::")
			return strings.HasSuffix(name, ".py") && !isTest(name)
		})
}

// harmlessUnittest accepts modules, files and patterns of tests: unittest runs whatever it is given.
func harmlessUnittest(args []string) bool {
	if !onlyOptions(`-[vfbq]+|-[kstp]|--(verbose|failfast|quiet)`)(args) {
		return false
	}
	for i, arg := range args {
		before := ""
		if i > 0 {
			before = args[i-1]
		}
		switch {
		case strings.HasPrefix(arg, "-"), i == 0 && arg == "discover", before == "-k", before == "-s", before == "-t":
		case !isTest(arg):
			return false
		}
	}

	return true
}

// isTest reports whether a part of a path or of a module's name is that of a test.
func isTest(name string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(strings.ToLower(name), func(c rune) bool {
		return c == '/' ||
			c == '.'
	}),
		func(part string) bool {
			return strings.HasPrefix(part, "test") || strings.HasSuffix(part, "test") || strings.HasSuffix(part,
				"tests")
		})
}

// harmlessGo accepts the flags of the subcommands that read, build and test.
func harmlessGo(args []string) bool {
	if len(args) == 0 {
		return false
	}
	if slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "@") }) {
		return false // a version to fetch
	}
	if args[0] == "tool" { // the name of a tool may be that of a program of the module
		return len(args) > 1 && args[1] == "cover" && only(lazily(`^--?func(=.*)?$`))(args[2:])
	}
	known, ok := goFlags[args[0]]
	return !ok || !slices.ContainsFunc(options(args[1:]), func(option string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(option, "-"), "-"), "=")
		return !slices.Contains(strings.Split(known, "|"), name)
	})
}

// goFlags has the flags of subcommands, by their names without hyphens.
var goFlags = map[string]string{
	"test": `v|run|bench|benchmem|benchtime|count|race|short|timeout|cover|covermode|coverpkg|coverprofile|` +
		`parallel|failfast|json|tags|shuffle|skip|cpu|p|x|n|a|trimpath|vet|list|fuzz|fuzztime|buildvcs|cpuprofile|` +
		`memprofile|blockprofile|mutexprofile`,
	"build":   `v|race|tags|p|x|n|a|trimpath|o|buildvcs`,
	"vet":     `v|tags|json|n|x`,
	"list":    `m|json|f|deps|test|e|tags|find|export|compiled`,
	"env":     `json|changed`,
	"version": `m|v`,
	"doc":     `all|short|src|u|c|cmd`,
	"fmt":     `n|x`,
	"mod":     `json|m|vendor|compact`,
}

// runsProject reports whether a program tests, checks or builds the code of its directory, so that in a
// directory of the project it runs nothing but the project's own code.
func runsProject(name string) bool {
	return slices.Contains([]string{
		"go", "cargo", "npm", "npx", "yarn", "pnpm", "bun", "pytest", "python", "python3", "ruff", "mypy", "black",
		"flake8", "isort", "eslint", "tsc", "jest", "vitest", "prettier", "golangci-lint", "staticcheck", "make",
	}, base(name))
}

// runsOthersCode returns the word by which a test runner, or a program that reads its configuration as
// code, would run code of others: of a directory that is hidden or holds dependencies, or of another
// Go module. It returns an empty string if there is none.
func (r *reader) runsOthersCode(words []word) string {
	name, args := base(words[0].text), words[1:]
	switch name {
	case "python", "python3":
		if len(args) < 2 || args[0].text != "-m" {
			return ""
		}
		name, args = args[1].text, args[2:]
	case "npx", "bunx", "pytest", "jest", "vitest", "eslint", "prettier":
	case "go", "cargo", "npm", "yarn", "pnpm", "bun":
		args = args[min(1, len(args)):] // the subcommand
	default:
		return ""
	}
	if name == "go" && !(len(words) > 1 && words[1].text == "test") ||
		!slices.Contains([]string{"go", "pytest", "unittest"}, name) && !slices.Contains(scriptRunners, name) {
		return ""
	}
	readsPaths := !slices.Contains([]string{"npm", "yarn", "pnpm", "bun", "cargo"}, name) // also a single name
	for i, w := range args {
		text := w.text
		option := "" // whose value is this word
		if i > 0 && !strings.Contains(args[i-1].text, "=") {
			option = args[i-1].text
		}
		if skipsFiles.MatchString(option) || skipsFiles.MatchString(text) ||
			name == "go" && writesFile.MatchString(option) {
			continue
		}
		if isOption(w) {
			_, text, _ = strings.Cut(text, "=")
			if name == "go" && writesFile.MatchString(w.text) {
				continue
			}
		}
		if name == "unittest" {
			text = strings.ReplaceAll(text, ".", "/")
		}
		first, _, isPath := strings.Cut(text, "/")
		if strings.HasPrefix(text, "@") || name == "go" && (text == "all" || isPath && strings.Contains(first, ".") &&
			strings.Trim(first, ".") != "") || (isPath || readsPaths) && r.isOthers(text) {
			return w.text
		}
	}

	return ""
}

var (
	scriptRunners = []string{
		"npx", "bunx", "jest", "vitest", "eslint", "prettier", "cargo", "npm", "yarn", "pnpm", "bun",
	}
	// skipsFiles matches options whose value names files that the program leaves out, or is no file.
	skipsFiles = lazily(`^(--(exclude|ignore|deselect|ignore-pattern|ignore-path)(=.*)?|-(run|bench|skip|k|m|t))$`)
	writesFile = lazily(`^--?(o|[a-z]*profile|coverpkg|timeout|benchtime|fuzztime)(=.*)?$`)
)

// isOthers reports whether a path goes through a hidden directory, or through one with code of others.
func (r *reader) isOthers(name string) bool {
	name, _, _ = strings.Cut(name, "::")
	if r.workspace != nil && r.workspace.Root != "" {
		if below, is := strings.CutPrefix(name, path.Clean(r.workspace.Root)+"/"); is {
			name = below
		}
	}
	parts := strings.Split(name, "/")
	if len(parts) == 1 && !slices.Contains(othersCode, strings.ToLower(parts[0])) {
		return false
	}

	return slices.ContainsFunc(parts, func(part string) bool {
		return strings.Trim(part, ".") != "" && strings.HasPrefix(part, ".") && part != "..." ||
			slices.Contains(othersCode, strings.ToLower(part))
	})
}
