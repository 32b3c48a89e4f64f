// Package shellfacts tells what a command line runs, for conditions:
// the programs that a shell starts, their words, and the files that
// redirections open. It reads the line as bash does, and believes no
// part of it that only a running shell could know: such facts are
// unknown, so that conditions about them ask.
//
// It tells what the shell starts. What a program starts in turn is told
// of those alone that are known to run their arguments (env, xargs,
// find -exec and the like); any other program is either in a table of
// programs that start none, or named by the owner, or makes Programs
// unknown.
package shellfacts

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/value"
)

// Version is that of what the facts mean: it changes when a line has
// other facts than before.
const Version = 4

// Fact is a text, or unknown.
type Fact struct {
	Known bool
	Text  string
}

// Facts are what is known of a line. Lists are sorted and have no
// repetitions.
type Facts struct {
	// Programs that run, a space between two. One that is called by a
	// path is there as it is called, and by the last part of the path.
	Programs Fact
	// Unlisted are the programs of commands that begin as no entry of
	// the owner's list does, in the form of Programs.
	Unlisted Fact
	// Commands in the order of the line, one a line: the words with a
	// space between two, quoted where they hold other than plain
	// characters.
	Commands Fact
	// Flags are words that begin with a hyphen, a space between two.
	Flags Fact
	// Paths is what may name a file, one a line: all other words behind
	// a program, what stands in a flag behind = or from its first slash
	// on, and the targets of redirections.
	Paths Fact
	// Reads and Writes are the targets of redirections, one a line.
	// Writes also has the operands that a program is known to write.
	Reads, Writes Fact
	// Outside lists the files outside the workspace, one a line.
	Outside Fact
	// Sensitive lists the files that hold secrets or settings, one a
	// line: see sensitive.
	Sensitive Fact
	// Why says why facts are unknown, with the word and its place in the
	// line; "" when all are known.
	Why string
	// WhyFiles is Why for Outside and Sensitive.
	WhyFiles string
	// Because explains Unlisted: the programs, with the option or the
	// reason that made a listed one count as unlisted.
	Because []string
}

// Options are what facts depend on beside the line.
type Options struct {
	Listed    []string   // the owner's entries, as CheckListed takes them
	Workspace *Workspace // nil: unknown
	// Moved says that the directory of the call is one that the call
	// chose, as cd does.
	Moved bool
}

// Names lists the facts as Members names them.
func Names() []string {
	var names []string
	for _, m := range new(Facts).all() {
		names = append(names, m.name)
	}

	return names
}

type named struct {
	name string
	fact *Fact
}

func (f *Facts) all() []named {
	return []named{
		{"commands", &f.Commands},
		{"flags", &f.Flags},
		{"outside", &f.Outside},
		{"paths", &f.Paths},
		{"programs", &f.Programs},
		{"reads", &f.Reads},
		{"sensitive", &f.Sensitive},
		{"unlisted", &f.Unlisted},
		{"writes", &f.Writes},
	}
}

// Members are the facts as an object of texts, which leaves out what is
// unknown.
func (f *Facts) Members() value.Value {
	out := value.Value{Kind: value.Object}
	for _, n := range f.all() {
		if n.fact.Known {
			text := value.Value{Kind: value.String, Text: n.fact.Text}
			out.Members = append(out.Members, value.Member{Key: n.name, Value: text})
		}
	}

	return out
}

// mostWords bounds how many words of a fact a reason has.
const mostWords = 4

// Words are the words of a fact, for a reason; "" for facts that are not
// lists.
func (f *Facts) Words(fact string) string {
	words, says := []string(nil), ""
	switch fact {
	case "unlisted":
		words, says = f.Because, "not listed: "
	case "outside":
		words, says = strings.Split(f.Outside.Text, "\n"), "outside the workspace: "
	case "sensitive":
		words, says = strings.Split(f.Sensitive.Text, "\n"), "may hold secrets or settings: "
	case "writes":
		words, says = strings.Split(f.Writes.Text, "\n"), "written: "
	}
	for i, w := range words {
		if i == mostWords {
			return says + strings.Join(words[:i], ", ") + ", …"
		}
		words[i] = Excerpt(w)
	}
	if len(words) == 0 || words[0] == "" {
		return ""
	}

	return says + strings.Join(words, ", ")
}

// CheckListed reports what is wrong with an entry of the owner's list:
// a program and, if it has more words, those that follow it.
func CheckListed(entry string) error {
	words := strings.Fields(entry)
	switch {
	case len(words) == 0 || strings.Join(words, " ") != entry:
		return errors.New("expected a program and words that follow it, with one space between two")
	case changesShell(words[0]):
		return fmt.Errorf("%s changes what the shell does next, so what follows it is not known", words[0])
	}

	for _, w := range words {
		if !plain(w) && entry != "[" {
			return fmt.Errorf("%q is no plain word", w)
		}
	}

	return nil
}

// list makes a fact of words.
func list(words []string, between string) Fact {
	slices.Sort(words)
	return Fact{Known: true, Text: strings.Join(slices.Compact(words), between)}
}
