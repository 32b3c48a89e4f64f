package term

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestVersionText(t *testing.T) {
	built := &debug.BuildInfo{Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "c0ffee"},
		{Key: "vcs.time", Value: "2026-11-28T12:00:00Z"},
		{Key: "vcs.modified", Value: "true"},
	}}
	tail := "go: " + runtime.Version() + "\nplatform: " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
	for _, c := range []struct {
		info *debug.BuildInfo
		want string
	}{
		{built, "commit: c0ffee with uncommitted changes\ndate: 2026-11-28T12:00:00Z\n"},
		{&debug.BuildInfo{}, "commit: unknown\ndate: unknown\n"},
		{nil, "commit: unknown\ndate: unknown\n"},
	} {
		if got, want := versionText("assent", c.info), "assent "+Version+"\n"+c.want+tail; got != want {
			t.Errorf("%v:\ngot  %s\nwant %s", c.info, got, want)
		}
	}
}
