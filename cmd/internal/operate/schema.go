package operate

import (
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/term"
	mcp "github.com/assent-dev/assent/mcp/config"
	"github.com/assent-dev/assent/resolve"
)

func (a Commands) schemaCommand() *cobra.Command {
	kinds := []string{"serve", "gateway", "mcp", "decisions"}

	return &cobra.Command{
		Use:       "schema serve|gateway|mcp|decisions",
		Short:     "Print the JSON Schema of a configuration, for editors",
		Args:      term.OneOf("serve, gateway, mcp or decisions", kinds...),
		ValidArgs: kinds,
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := schemaOf(args[0])
			if err != nil {
				return err
			}
			_, err = a.Out.Write(text)

			return err
		},
	}
}

func schemaOf(kind string) ([]byte, error) {
	switch kind {
	case "decisions":
		return resolve.ConfigJSON(), nil
	case "mcp":
		return mcp.JSON()
	}

	return config.JSON(kind)
}
