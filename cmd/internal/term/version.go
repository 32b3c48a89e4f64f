package term

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// VersionCommand returns the command version of a program. It prints the version, the commit and
// its time, the Go version and the platform, each on a line "NAME: VALUE".
func VersionCommand(program string, s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit and the platform of this binary",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			info, _ := debug.ReadBuildInfo()
			_, err := io.WriteString(s.Out, versionText(program, info))
			return err
		},
	}
}

// versionText describes a binary. info may be nil. The commit is unknown in
// binaries that were built outside of a Git checkout.
func versionText(program string, info *debug.BuildInfo) string {
	settings := map[string]string{}
	if info != nil {
		for _, setting := range info.Settings {
			settings[setting.Key] = setting.Value
		}
	}
	commit := cmp.Or(settings["vcs.revision"], "unknown")
	if settings["vcs.modified"] == "true" {
		commit += " with uncommitted changes"
	}

	return fmt.Sprintf("%s %s\ncommit: %s\ndate: %s\ngo: %s\nplatform: %s/%s\n", program, Version, commit,
		cmp.Or(settings["vcs.time"], "unknown"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
