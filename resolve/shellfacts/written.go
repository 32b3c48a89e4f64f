package shellfacts

import (
	"slices"
	"strings"
)

// writtenWords returns the words that name files which the program writes, creates, moves or
// removes.
func writtenWords(name string, args []word) map[int]bool {
	out := map[int]bool{}
	var operands []int
	for i, w := range args {
		if !isOption(w) {
			operands = append(operands, i)
		}
	}
	switch name {
	case "touch", "mkdir", "rmdir", "rm", "unlink", "truncate", "tee", "chmod", "chown", "chgrp", "mv", "ln", "install",
		"mktemp", "split", "csplit", "patch", "shred", "rsync":
		markFrom(out, args, 0)
	case "cp":
		if hasOption(args, "t", "--t") {
			markFrom(out, args, 0)
		} else {
			mark(out, operands[max(0, len(operands)-1):])
		}
	case "uniq", "xxd":
		mark(out, operands[min(1, len(operands)):])
	case "sed", "perl":
		if hasOption(args, "i", "--i") {
			mark(out, operands)
		}
	case "go", "sort", "cc", "gcc":
		for i, w := range args {
			given, _, joined := strings.Cut(w.text, "=")
			if outputOption.MatchString(given) || name == "sort" && strings.HasPrefix(given, "--o") {
				out[i] = joined
				out[i+1] = !joined
			}
		}
		if name == "go" && len(args) > 0 && args[0].text == "fmt" {
			markFrom(out, args, 1)
		}
	case "dd":
		for i, w := range args {
			out[i] = strings.HasPrefix(w.text, "of=")
		}
	default:
		markFormatted(out, name, args)
	}

	return out
}

// outputOption matches options of go, sort and compilers whose value is a file that they write.
var outputOption = lazily(`^--?(test\.)?(o|[a-z]*profile|trace|outputdir|fuzzcachedir|testlogfile)$|^--output$`)

// formatters lists programs that may rewrite the files that they check.
var formatters = []string{
	"gofmt", "goimports", "golangci-lint", "prettier", "eslint", "ruff", "black", "isort", "rustfmt", "cargo", "npm",
	"yarn", "pnpm", "bun",
}

// markFormatted marks the operands of a program that formats or fixes files, also if another program
// starts it: npx, pnpm exec, python -m.
func markFormatted(out map[int]bool, name string, args []word) {
	first := 0
	if slices.Contains([]string{"npx", "bunx", "pnpm", "yarn", "bun", "python", "python3"}, name) {
		i := slices.IndexFunc(args, func(w word) bool { return slices.Contains(formatters, base(w.text)) })
		if i >= 0 {
			name, first = base(args[i].text), i+1
		}
	}
	rest, writes := args[first:], false
	second := ""
	if len(rest) > 0 {
		second = rest[0].text
	}
	checks := hasOption(rest, "", "--check", "--diff")
	switch name {
	case "gofmt", "goimports":
		writes = slices.ContainsFunc(rest, func(w word) bool { return goWrite.MatchString(w.text) })
	case "prettier":
		writes = hasOption(rest, "w", "--w")
	case "eslint", "golangci-lint", "npm", "yarn", "pnpm", "bun":
		writes = hasOption(rest, "", "--fix", "--write")
	case "ruff":
		writes = second == "format" && !checks || hasOption(rest, "", "--fix", "--unsafe-fixes", "--add-noqa")
	case "black":
		writes = !checks
	case "isort":
		writes = !checks && !hasOption(rest, "c", "--check-only")
	case "rustfmt":
		writes = !checks
	case "cargo":
		writes = second == "fmt" && !checks || hasOption(rest, "", "--fix")
	}
	if writes {
		if slices.Contains([]string{"ruff", "cargo", "golangci-lint"}, name) {
			first = min(first+1, len(args)) // behind the subcommand
		}
		markFrom(out, args, first)
	}
}

var goWrite = lazily(`^--?w(=.*)?$`)

func isOption(w word) bool { return len(w.text) > 1 && w.text[0] == '-' }

// hasOption reports whether the words have a short option with one of the letters, alone or joined to
// others, or a long option that begins with one of the texts.
func hasOption(args []word, letters string, long ...string) bool {
	return slices.ContainsFunc(args, func(w word) bool {
		if !isOption(w) {
			return false
		}
		if strings.HasPrefix(w.text, "--") {
			return slices.ContainsFunc(long, func(l string) bool { return strings.HasPrefix(w.text, l) })
		}
		return strings.ContainsAny(w.text[1:], letters)
	})
}

// markFrom marks all words from the one at first, also options, whose value may be a file.
func markFrom(out map[int]bool, args []word, first int) {
	for i := first; i < len(args); i++ {
		out[i] = true
	}
}

func mark(out map[int]bool, at []int) {
	for _, i := range at {
		out[i] = true
	}
}
