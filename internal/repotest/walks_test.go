package repotest

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// walks is the folder of the walks: scripts that make a change as
// CONTRIBUTING.md describes it, in a copy of the repository, and run
// the tests that show that the change works. make long runs them.
const walks = "testdata/walks"

// checkWalks complains about sections of the guide without a script,
// and about scripts without a section.
func checkWalks(guide string, scripts []string) []string {
	var out []string
	_, below, _ := strings.Cut(guide, "\n## Walks\n")
	below, _, _ = strings.Cut(below, "\n## ")
	described := map[string]string{}
	for _, section := range strings.Split(below, "\n### ")[1:] {
		title, text, _ := strings.Cut(section, "\n")
		links := walkLink.FindAllStringSubmatch(text, -1)
		if len(links) != 1 {
			out = append(out, fmt.Sprintf("the walk %q links %d scripts, expected one", title, len(links)))
			continue
		}
		script := links[0][1]
		if other := described[script]; other != "" {
			out = append(out, fmt.Sprintf("the walks %q and %q link the same script", other, title))
		}
		described[script] = title
		if !slices.Contains(scripts, script) {
			out = append(out, fmt.Sprintf("the walk %q links %s, which is not there", title, script))
		}
	}

	for _, script := range scripts {
		if described[script] == "" {
			out = append(out, "no walk links "+script)
		}
	}
	return out
}

var walkLink = regexp.MustCompile(`\]\(internal/repotest/` + walks + `/([a-z]+\.txtar)\)`)

// checkCommands complains about commands `go test …` of a section that its script does not run
// literally. NAME is a placeholder for a name.
func checkCommands(section, script string) []string {
	var out []string
	for _, found := range testCommand.FindAllStringSubmatch(section, -1) {
		words := strings.Join(strings.Fields(found[1]), " ")
		line := strings.ReplaceAll(regexp.QuoteMeta("exec "+words), "NAME", "[a-z]+")
		if !regexp.MustCompile(`(?m)^` + line + `$`).MatchString(script) {
			out = append(out, fmt.Sprintf("the script does not run `%s` as the guide tells", words))
		}
	}
	return out
}

var testCommand = regexp.MustCompile("`(go test [^`]+)`")

// TestWalksRunWhatTheGuideTells: scripts run the whole command, without a filter that hides
// failures.
func TestWalksRunWhatTheGuideTells(t *testing.T) {
	_, below, _ := strings.Cut(readText(t, filepath.Join(top, "CONTRIBUTING.md")), "\n## Walks\n")
	below, _, _ = strings.Cut(below, "\n## ")
	commands := 0
	for _, section := range strings.Split(below, "\n### ")[1:] {
		title, _, _ := strings.Cut(section, "\n")
		script := walkLink.FindStringSubmatch(section)[1]
		commands += len(testCommand.FindAllString(section, -1))
		for _, wrong := range checkCommands(section, readText(t, filepath.Join(walks, script))) {
			t.Errorf("%s: %s: %s", title, script, wrong)
		}
	}
	if commands < 7 {
		t.Errorf("only %d commands were found", commands)
	}

	const told = "Run `go test ./store/NAME`\nand `go test ./a\n   ./b`."
	report(t, checkCommands(told, "exec go test ./store/pool\nexec go test ./a ./b\n"))
	catches(t, checkCommands(told, "exec go test ./store/pool\nexec go test ./a ./b -run X\n"), "go test ./a ./b")
	catches(t, checkCommands(told, "exec go test ./a ./b\n"), "go test ./store/NAME")
}

// TestWalksAreDescribed: each walk has a section in CONTRIBUTING.md.
func TestWalksAreDescribed(t *testing.T) {
	files := must(t, func() ([]string, error) { return filepath.Glob(filepath.Join(walks, "*.txtar")) })
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	report(t, checkWalks(readText(t, filepath.Join(top, "CONTRIBUTING.md")), files))
	for _, change := range []string{"matcher", "rule", "policyfield", "channel", "store", "transport"} {
		if !slices.Contains(files, change+".txtar") {
			t.Errorf("nothing walks a new %s", change)
		}
	}
}

func TestWalkCheckFails(t *testing.T) {
	link := func(name string) string { return "[script](internal/repotest/" + walks + "/" + name + ".txtar)\n" }
	const begin = "# Guide\n\n## Walks\n\nEach.\n"
	good := begin + "\n### A rule\n" + link("rule") + "\n### A channel\n" + link("channel") + "\n## Tests\n" +
		link("rule")
	report(t, checkWalks(good, []string{"channel.txtar", "rule.txtar"}))
	catches(t, checkWalks(good, []string{"channel.txtar", "rule.txtar", "store.txtar"}), "no walk links store.txtar")
	catches(t, checkWalks(good, []string{"rule.txtar"}), `"A channel" links channel.txtar, which is not there`)
	catches(t, checkWalks(begin+"\n### A rule\n\nWrite it.\n", nil), `"A rule" links 0 scripts`)
	twice := begin + "\n### A\n" + link("rule") + "\n### B\n" + link("rule")
	catches(t, checkWalks(twice, []string{"rule.txtar"}), `"A" and "B" link the same script`)
}
