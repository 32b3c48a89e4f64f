package operate

import (
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/resolve"
)

func (a Commands) schemaCommand() *cobra.Command {
	kinds := []string{"serve", "gateway", "decisions"}

	return &cobra.Command{
		Use:       "schema serve|gateway|decisions",
		Short:     "Print the JSON Schema of a configuration, for editors",
		Args:      term.OneOf("serve, gateway or decisions", kinds...),
		ValidArgs: kinds,
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := resolve.ConfigJSON(), error(nil)
			if args[0] != "decisions" {
				text, err = config.JSON(args[0])
			}
			if err != nil {
				return err
			}
			_, err = a.Out.Write(text)

			return err
		},
	}
}
