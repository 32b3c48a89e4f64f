// Package shellfacts derives facts about a command line for conditions: the programs that a shell
// starts, their words, and the files that redirections open. It reads the line as bash does.
// Anything that only a running shell could determine makes the facts unknown, so that conditions
// about them ask.
//
// The facts cover what the shell starts. What a program starts in turn is covered only for programs
// that are known to run their arguments (env, xargs, find -exec and the like). Any other program
// must be in the table of programs that start no others, or be listed by the owner; otherwise
// Programs is unknown.
package shellfacts

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/value"
)

// Version is the version of the facts' meaning. It changes if a line has other facts than before.
const Version = 6

// Fact is a text, or unknown.
type Fact struct {
	Known bool
	Text  string
}

// Facts are the facts about a line. Lists are sorted and have no repetitions.
type Facts struct {
	// Programs lists the programs that run, separated by spaces. A program that is called by a path
	// is listed with the path, and with the last part of the path.
	Programs Fact
	// Unlisted lists the programs of commands that don't begin like an entry of the owner's list,
	// in the form of Programs.
	Unlisted Fact
	// Commands lists the commands in the order of the line, one per line: the words separated by
	// spaces, and quoted if they contain special characters.
	Commands Fact
	// Flags lists the words that begin with a hyphen, separated by spaces.
	Flags Fact
	// Paths lists the words that may name a file, one per line: all words after a program that are
	// no flags, the part of a flag after = or from its first slash, and the targets of
	// redirections.
	Paths Fact
	// Reads and Writes are the targets of redirections, one a line.
	// Writes also has the operands that a program is known to write.
	Reads, Writes Fact
	// Outside lists the files outside the workspace, one a line.
	Outside Fact
	// Sensitive lists the files that hold secrets or settings, one a
	// line: see sensitive.
	Sensitive Fact
	// Why is the reason why facts are unknown, with the word and its position in the line. It is
	// empty if all facts are known.
	Why string
	// WhyFiles is Why for Outside and Sensitive.
	WhyFiles string
	// Because explains Unlisted: the programs, with the option or the
	// reason that made a listed one count as unlisted.
	Because []string
}

// Options are the inputs of the facts other than the line.
type Options struct {
	Listed    []string   // the owner's entries, as CheckListed takes them
	Workspace *Workspace // nil: unknown
	// Moved is set if the call chose its own directory, as cd does.
	Moved bool
}

// Names lists the names of the facts, as in Members.
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

// Members returns the known facts as an object of texts.
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

// mostWords limits how many words of a fact a reason shows.
const mostWords = 4

// Words returns the words of a fact, for a reason. It returns an empty string for facts that are
// not lists.
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

// list returns a fact with the words as a list.
func list(words []string, between string) Fact {
	slices.Sort(words)
	return Fact{Known: true, Text: strings.Join(slices.Compact(words), between)}
}
