package term

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Parent creates a command that only groups its subcommands.
func Parent(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Long:  long,
		Args:  noCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)

	return cmd
}

// noCommand returns an error for a word that is no command, and suggests the most similar one.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return fmt.Errorf("there is no command %q, did you mean %s", args[0], strings.Join(near, " or "))
	}
	return fmt.Errorf("there is no command %q, `%s --help` lists them", args[0], cmd.CommandPath())
}

// Offer sets the completions of a flag's value.
func Offer(cmd *cobra.Command, flag string, words ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag was defined by the caller
	}
}

// Required marks flags that must be given.
func Required(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flags were defined by the caller
		}
	}
}

// OneOf requires exactly one argument. If valid is given, it must be one of those.
func OneOf(want string, valid ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 || len(valid) > 0 && !slices.Contains(valid, args[0]) {
			return fmt.Errorf("want %s", want)
		}
		return nil
	}
}
