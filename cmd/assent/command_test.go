package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
)

// TestAssentContract: the page lists every command with all of its flags.
func TestAssentContract(t *testing.T) {
	text := testfiles.Contract(t, "assent.md")
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, child := range cmd.Commands() {
			walk(child)
		}
		if !cmd.Runnable() || cmd.HasSubCommands() || cmd.Name() == "decide" {
			return
		}
		usage := regexp.MustCompile("(?m)^" + cmd.CommandPath() + "( .*)?$").FindString(text)
		if slices.Contains([]string{"serve", "runtime", "check"}, cmd.Name()) {
			usage += strings.Join(testfiles.FirstCells(text), "\n")
		}
		flags := regexp.MustCompile(`--([a-z0-9-]+)`)
		for _, m := range flags.FindAllStringSubmatch(cmd.LocalFlags().FlagUsages(), -1) {
			common := slices.Contains([]string{"server", "token-file", "json", "help"}, m[1])
			if usage == "" || !common && !regexp.MustCompile(`--`+m[1]+`\b`).MatchString(usage) {
				t.Errorf("%s --%s is not in docs/contracts/assent.md", cmd.CommandPath(), m[1])
			}
		}
	}
	walk(program{}.command())
}

// TestAMisspeltCommandOfAssentNamesTheNearest, below groups
// of commands too.
func TestAMisspeltCommandOfAssentNamesTheNearest(t *testing.T) {
	for args, want := range map[string]string{
		"srve":        "did you mean serve",
		"token creat": "did you mean create",
		"audit verfy": "did you mean verify",
		"rap gatewy":  "did you mean gateway",
		"xyzzy":       "--help` lists them",
	} {
		if _, errOut, code := ran("", strings.Fields(args)...); code != term.ExitFailure ||
			!strings.Contains(errOut, want) {
			t.Errorf("%s: exit %d %s", args, code, errOut)
		}
	}
}
