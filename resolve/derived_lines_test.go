package resolve

import (
	"testing"

	"github.com/assent-dev/assent/resolve/shellfacts"
	"github.com/assent-dev/assent/value"
)

// TestLinesHaveTheFacts checks that one of the generated lines has the facts, however a condition
// names them. A value that is no text is no fact.
func TestLinesHaveTheFacts(t *testing.T) {
	d := &Derived{Target: "tool sh", From: "command", As: "shell", Listed: []string{"git status", "ls"}}
	for text, want := range map[string]bool{
		`{"shell":{"writes":"out"}}`:                                    true,
		`{"shell.writes":"out","cwd":"/"}`:                              true,
		`{"Shell":{"reads":"in","programs":"ls"}}`:                      true,
		`{"shell":{"unlisted":"rm"}}`:                                   true,
		`{"shell":{"unlisted":"","writes":"","paths":""}}`:              true,
		`{"shell":{"paths":"/etc/passwd","commands":"ls /etc/passwd"}}`: true,
		`{"shell":{"flags":"-rf"}}`:                                     true,
		`{"shell":{"programs":"ls","writes":"\n\n"}}`:                   false,
		`{"shell":{"writes":5}}`:                                        false,
		`{"shell":null}`:                                                false,
	} {
		doc, err := value.Parse([]byte(text), value.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		facts, rest, has := d.Split(doc)
		if _, cwd := doc.Get("cwd"); !has || len(rest.Members) > 0 != cwd {
			t.Errorf("%s: facts %v, rest %s", text, has, rest.AppendJSON(nil))
		}
		found := false
		for _, line := range d.Lines(facts) {
			found = found || d.Holds(line, facts)
		}
		if found != want {
			t.Errorf("%s: a line was found: %v", text, found)
		}
	}
	if _, _, has := d.Split(value.Value{Kind: value.Object}); has {
		t.Error("no arguments have facts")
	}
	if lines := (&Derived{From: "c", As: "s"}).Lines(value.Value{}); len(lines) == 0 || lines[0] != "true" {
		t.Errorf("without a list: %q", lines)
	}
}

// TestLinesOfFiles checks that facts of file tools are tried with paths.
func TestLinesOfFiles(t *testing.T) {
	d := &Derived{Paths: []string{"path"}, As: "file"}
	for _, line := range d.Lines(value.Value{}) {
		facts := shellfacts.Paths([]string{line}, shellfacts.Use{}, nil)
		if !d.Holds(line, facts.Members()) {
			t.Errorf("%q has not its own facts", line)
		}
	}
	facts := shellfacts.Paths([]string{"a"}, shellfacts.Use{}, nil)
	if d.Holds(".env", facts.Members()) {
		t.Error("a secret has the facts of any file")
	}
}
