package cli

import "github.com/spf13/cobra"

func (a Assent) rapCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rap COMMAND",
		Short: "Tools that speak RAP: put them behind approvals, call them, ask people for them",
		Long:  "rap speaks the Reactive Agent Protocol, user choice included (docs/contracts/rap.md).",
		Args:  noCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.rapCallCommand(), a.rapGatewayCommand(), a.rapRuntimeCommand())
	return cmd
}
