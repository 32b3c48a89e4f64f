package shellfacts

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
)

// listed returns the owner's list in these tests.
func listed() []string { return []string{"git status", "ls", "cat", "echo"} }

// TestLines checks the facts of each line of testdata/lines.txt, which include known ways to hide a
// program from a pattern.
func TestLines(t *testing.T) {
	text, err := os.ReadFile("testdata/lines.txt")
	must.Do(t, err)
	var out strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", "\\\x01")) {
		line = strings.TrimSuffix(strings.ReplaceAll(line, "\\\x01", "\\\n"), "\n")
		fmt.Fprintf(&out, "%s\n", line)
		if line == "" || line[0] == '#' {
			continue
		}
		told(&out, Of(strings.ReplaceAll(line, `\n`, "\n"),
			Options{Listed: listed(), Workspace: &Workspace{Root: "/w"}}))
	}

	golden.Equal(t, "lines.golden", out.String())
}

// told writes the facts that are not empty.
func told(out *strings.Builder, f Facts) {
	var unknown []string
	for _, n := range f.all() {
		switch {
		case !n.fact.Known:
			unknown = append(unknown, n.name)
		case n.fact.Text != "":
			fmt.Fprintf(out, "\t%s: %q\n", n.name, n.fact.Text)
		}
	}

	if len(unknown) > 0 {
		fmt.Fprintf(out, "\tunknown: %s: %s\n", strings.Join(unknown, " "), f.Why)
	}
}

// TestUnknownFactsAreLeftOut checks that unknown facts are no members, so that conditions about
// them ask.
func TestUnknownFactsAreLeftOut(t *testing.T) {
	f := Of("$X", Options{})
	if got := f.Members(); len(got.Members) != 0 || f.Why == "" {
		t.Errorf("%+v", got)
	}
	f = Of("ls -l", Options{Workspace: &Workspace{Root: "/w"}})
	var names []string
	for _, m := range f.Members().Members {
		names = append(names, m.Key)
	}
	if !slices.Equal(names, Names()) || f.Why != "" {
		t.Errorf("%v, want %v; %s", names, Names(), f.Why)
	}
}

// TestReasonsNameTheWord checks that the reason names the word that made the facts unknown, and
// only as much of the line as fits into a sentence.
func TestReasonsNameTheWord(t *testing.T) {
	for line, want := range map[string]string{
		"ls a secret$X": "a word is no plain text: secret$X (at 1:6 of the line)",
		"cat > $secret": "a redirection's file is no plain text: > $secret (at 1:5 of the line)",
		"PATH=x ls":     "it sets a variable, which may change what runs: PATH=x (at 1:1 of the line)",
		"eval secret":   "it has the shell read or run something later: eval secret (at 1:1 of the line)",
		"ls \"" + strings.Repeat("é", 99) + "$X\"": "a word is no plain text: \"" + strings.Repeat("é", 39) +
			"… (at 1:4 of the line)",
		"'secret": "it can't be read as bash reads it",
	} {
		if got := Of(line, Options{Listed: []string{"ls", "cat"}}); got.Why != want || got.WhyFiles != want {
			t.Errorf("%s: %q, %q", line, got.Why, got.WhyFiles)
		}
	}
}

// TestListedEntriesAreChecked checks that an entry that would allow any program is refused.
func TestListedEntriesAreChecked(t *testing.T) {
	for entry, sound := range map[string]bool{
		"ls": true, "git status": true, "./run.sh": true, "find": true, "env": true,
		"": false, " ls": false, "git  status": false, "eval": false, "source x": false, "export": false, "l*": false,
		"git $X": false, "a\nb": false,
	} {
		if err := CheckListed(entry); (err == nil) != sound {
			t.Errorf("%q: %v", entry, err)
		}
	}
}

// TestHardLines neither panic nor take long: each is unknown.
func TestHardLines(t *testing.T) {
	const deep = mostBytes - 16
	for _, line := range []string{
		strings.Repeat("(", deep), strings.Repeat("$(", deep/2), strings.Repeat("{ ", deep/2),
		strings.Repeat("`", deep),
		strings.Repeat("if ", deep/3), strings.Repeat("! ", deep/2), strings.Repeat("\"$(", deep/3),
		strings.Repeat("${a:-", deep/5), strings.Repeat("$((", deep/3), strings.Repeat("x", mostBytes+1),
		"ls\x00", "ls\r",
		strings.Repeat("sh -c '", 100), "\xff\xfe", "<<A <<B",
	} {
		if f := Of(line, Options{}); f.Programs.Known && strings.Contains(f.Programs.Text,
			"ls") || !f.Programs.Known && f.Why == "" {
			t.Errorf("%.20q: %+v", line, f)
		}
	}
}

// FuzzOf checks that known facts contain neither control characters nor programs without a name,
// and that nothing panics.
func FuzzOf(f *testing.F) {
	text, err := os.ReadFile("testdata/lines.txt")
	must.Do(f, err)
	for line := range strings.Lines(string(text)) {
		f.Add(strings.TrimSuffix(line, "\n"))
	}
	f.Fuzz(func(t *testing.T, line string) {
		got := Of(line, Options{Listed: listed()})
		for _, n := range got.all() {
			if strings.ContainsAny(n.fact.Text, "\x00\r\x1b") || n.fact.Text != "" && !n.fact.Known {
				t.Errorf("%q: %s %q", line, n.name, n.fact.Text)
			}
		}
		if got.Commands.Known && !got.Programs.Known {
			t.Errorf("%q: commands are known, and programs are not", line)
		}
	})
}

// BenchmarkOf measures a line of a coding agent, and its growth.
func BenchmarkOf(b *testing.B) {
	const line = "grep -rn 'a b' src | head -5 > out.txt && git status; "
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				Of(strings.Repeat(line, n), Options{Listed: listed()})
			}
		})
	}
}

// TestGoes: the directories of cd are those that a line names as plain words.
func TestGoes(t *testing.T) {
	for line, want := range map[string]string{
		"ls": "[] false", "cd src && cd ../lib; ls": "[src ../lib] false", "(cd a && bash -c 'cd b')": "[a b] false",
		"cd": "[] true", "cd -": "[] true", "cd ~": "[] true", "cd $X": "[] true", "cd 'a b'": "[] true",
		"cd a b":  "[] true",
		"pushd a": "[] true", "env -C x git status": "[] true", "find . -execdir ls ';'": "[] true",
		"cd a; )": "[] true",
	} {
		dirs, anywhere := Goes(line)
		if got := fmt.Sprint(dirs, anywhere); got != want {
			t.Errorf("%s: %s, expected %s", line, got, want)
		}
	}
}
