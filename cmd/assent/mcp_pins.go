package main

import (
	"github.com/spf13/cobra"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/mcpcmd"
)

func (p program) mcpPins() *cobra.Command { return mcpcmd.Pins(config.Reader{Streams: p.Streams}) }

func (p program) mcpSignIn() *cobra.Command {
	return mcpcmd.SignIn(config.Reader{Streams: p.Streams}, forSignIns())
}

func (p program) mcpSignOut() *cobra.Command {
	return mcpcmd.SignOut(config.Reader{Streams: p.Streams}, forSignIns())
}

func forSignIns() mcpcmd.Given { return mcpcmd.Given{Headers: headersOf, Secret: readSecret} }

func (p program) mcpPin() *cobra.Command { return mcpcmd.Pin(p.Streams) }

func (p program) mcpDiff() *cobra.Command { return mcpcmd.Diff(p.Streams) }
