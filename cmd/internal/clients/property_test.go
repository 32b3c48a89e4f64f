package clients

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// drawFile generates a client's file with servers and random formatting.
func drawFile(t *rapid.T, c client) string {
	space := rapid.SampledFrom([]string{"", " ", "\n", "\n    ", "\t", " /* x */ ", " // y\n"})
	var entries []string
	for i := range rapid.IntRange(1, 4).Draw(t, "servers") {
		arg := rapid.StringMatching(`[a-z"\\#{}\[\]' :äé-]{0,8}`).Draw(t, "arg")
		entries = append(entries, drawEntry(c, fmt.Sprintf("s%d", i), arg))
	}
	text := ""
	switch c.name {
	case "codex":
		between := rapid.SampledFrom([]string{"", "\n", "# c\n"}).Draw(t, "between")
		text = "# top\nmodel = 'x'\n\n" + strings.Join(entries, between)
	case "goose":
		between := rapid.SampledFrom([]string{"", "\n", "  # c\n"}).Draw(t, "between")
		text = "# top\nx: 1\nextensions:\n" + strings.Join(entries, between)
	default:
		text = space.Draw(t, "before") + `{"x":` + space.Draw(t, "x") + `[1, 2],`
		text += space.Draw(t, "key") + `"` + c.table[0] + `": {`
		for i, e := range entries {
			text += space.Draw(t, "entry") + e + space.Draw(t, "behind")
			if i < len(entries)-1 || rapid.Bool().Draw(t, "trailing") {
				text += ","
			}
		}

		text += space.Draw(t, "end") + "}}" + space.Draw(t, "after")
	}

	end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line end")

	return strings.ReplaceAll(text, "\n", end)
}

func drawEntry(c client, name, arg string) string {
	switch c.name {
	case "codex":
		return "[mcp_servers." + name + "]\ncommand = \"x\" # c\nargs = [\n  " + quoted(arg) + ",\n]\n"
	case "goose":
		return "  " + name + ":\n    cmd: x # c\n    args:\n    - " + quoted(arg) + "\n"
	}

	return `"` + name + `": {"command": "x", "args": [` + quoted(arg) + `]}`
}

// TestRoundTripProperty: uninstall restores any file byte for byte, and leaves no other files.
func TestRoundTripProperty(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := rapid.SampledFrom(all()).Draw(r, "client")
		text := drawFile(r, c)
		w := newWorld(t)
		w.write(w.file(c.name), text)
		for _, command := range []string{"install", "uninstall"} {
			if code, says := w.run(command, "--client", c.name, "--yes"); code != 0 {
				r.Fatalf("%s: code %d: %s\n%s", command, code, says, text)
			}
		}
		if got := w.read(w.file(c.name)); got != text || len(w.tree()) != 1 {
			r.Fatalf("it is now %q and was %q, and there are %v", got, text, w.tree())
		}
	})
}

// TestTwoAtOnce: of several concurrent installs one succeeds, and the others change nothing.
func TestTwoAtOnce(t *testing.T) {
	w := newWorld(t)
	text := samples()["cursor"]
	w.write(w.file("cursor"), text)
	var all sync.WaitGroup
	codes := make(chan int, 8)
	for range cap(codes) {
		one := &world{t: t, home: w.home}
		all.Go(func() {
			code, _ := one.run("install", "--client", "cursor", "--yes")
			codes <- code
		})
	}

	all.Wait()
	close(codes)
	done := 0
	for code := range codes {
		if code == 0 {
			done++
		}
	}
	if done != 1 {
		t.Errorf("%d installs succeeded", done)
	}
	w.tracker("cursor")
	w.wants(0, "byte for byte", "uninstall", "--client", "cursor", "--yes")
	if got := w.read(w.file("cursor")); got != text || len(w.tree()) != 1 {
		t.Errorf("it is now %q, and there are %v", got, w.tree())
	}
}
