package term

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Parent makes a command that is only there for those below it.
func Parent(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Long:  long,
		Args:  NoCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)

	return cmd
}

// NoCommand refuses a word that is no command, and names the nearest.
func NoCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return fmt.Errorf("there is no command %q, did you mean %s", args[0], strings.Join(near, " or "))
	}
	return fmt.Errorf("there is no command %q, `%s --help` lists them", args[0], cmd.CommandPath())
}

// Offer completes the value of a flag words.
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

// OneOf wants exactly one argument, of the valid ones if there are any.
func OneOf(want string, valid ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 || len(valid) > 0 && !slices.Contains(valid, args[0]) {
			return fmt.Errorf("want %s", want)
		}
		return nil
	}
}
