package approval

import (
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/resolve/shellfacts"
	"github.com/assent-dev/assent/value"
)

// Bound lets one argument differ from the approved one, in a way that every rule that asks allows
// (policy.Bound). Several bounds of one argument cover what any of them covers.
type Bound struct {
	Path string    `json:"path"` // whole key, or dotted path
	Kind BoundKind `json:"kind"`
	// Value is chosen by the approver. It contains the other text, the prefix, the directory, the host,
	// or the words. Numbers and AnyText have none.
	Value string `json:"value,omitempty"`
}

// BoundKind is a kind of bound.
type BoundKind = policy.BoundKind

// The kinds of bounds, see policy.
const (
	AtMost  = policy.AtMost
	AtLeast = policy.AtLeast
	Equals  = policy.Equals
	Prefix  = policy.Prefix
	Below   = policy.Below
	Host    = policy.Host
	Words   = policy.Words
	AnyText = policy.AnyText
)

// mostBoundValue limits the value of a bound, in bytes: people read it whole.
const mostBoundValue = 1024

// number reports whether the bound is for numbers.
func (b Bound) number() bool { return b.Kind == AtMost || b.Kind == AtLeast }

// check returns what a bound for an argument must be, or an empty string if it is right.
func (b Bound) check(approved *value.Value) (expected string) {
	switch {
	case !policy.IsBoundKind(b.Kind):
		return "a kind of bound: " + policy.BoundKinds()
	case b.number() || b.Kind == AnyText:
		if b.Value != "" {
			return "no value: " + string(b.Kind) + " has none"
		}
	case b.Value == "" || len(b.Value) > mostBoundValue || strings.ContainsFunc(b.Value, isHiddenRune):
		return "a value of 1 to " + strconv.Itoa(mostBoundValue) + " bytes that can be read in one line"
	}
	switch {
	case b.number():
		return b.checkNumber(approved)
	case approved.Kind != value.String:
		return "the path of a text in the arguments, not " + strconv.Quote(b.Path)
	}

	switch b.Kind {
	case Prefix:
		if scheme, rest, address := strings.Cut(b.Value, "://"); address && !strings.Contains(rest, "/") {
			return "a prefix with a slash behind the host, or the kind host: another host may begin like " +
				strconv.Quote(scheme+"://"+rest)
		}
	case Below:
		if !isPlainPath(b.Value) || b.Value == "/" {
			return "a directory such as docs: no .., no slash at the end, nothing that a tool may expand"
		}
	case Words:
		if expected := checkPattern(b.Value); expected != "" {
			return expected
		}
	}
	if b.Kind != Equals && !b.covers(approved, approved, nil) {
		return "a bound that covers the approved " + b.Path
	}

	return ""
}

func (b Bound) checkNumber(approved *value.Value) string {
	if approved.Kind != value.Number {
		return "the path of a number in the arguments, not " + strconv.Quote(b.Path)
	}
	sign := approved.Num.Cmp(value.IntNum(0))
	if b.Kind == AtMost && sign < 0 || b.Kind == AtLeast && sign > 0 {
		return "at_most for a number that is not negative, at_least for one that is not positive"
	}

	return ""
}

// covers reports whether a value may take the place of the approved one. w is the workspace of the
// call; it may be nil.
func (b Bound) covers(approved, got *value.Value, w *resolve.Workspace) bool {
	if b.number() {
		return approved.Kind == value.Number && got.Kind == value.Number && inBound(b.Kind, approved.Num, got.Num)
	}
	if approved.Kind != value.String || got.Kind != value.String || leadsOut(got.Text, w) {
		return false
	}
	switch b.Kind {
	case Equals:
		return got.Text == b.Value
	case Prefix:
		return hasPlainPrefix(got.Text, b.Value) && !strangelySensitive(approved.Text, got.Text)
	case Below:
		return isBelow(got.Text, b.Value) && !strangelySensitive(approved.Text, got.Text)
	case Host:
		scheme, host, ok := splitAddress(got.Text)
		approvedScheme, _, _ := splitAddress(approved.Text)
		return ok && host == b.Value && scheme == approvedScheme
	case Words:
		return coversLine(b.Value, approved.Text, got.Text)
	case AnyText:
		return true
	}

	return false
}

// tighter reports whether b covers everything that a covers, for an approved value. It may return
// false although b does.
func (a Bound) tighter(b Bound, approved *value.Value) bool {
	switch {
	case a.Path != b.Path:
		return false
	case a == b:
		return true
	case a.number() || b.number() || approved.Kind != value.String:
		return false
	}
	switch {
	case b.Kind == AnyText:
		return true
	case a.Kind == Equals:
		return b.covers(approved, &value.Value{Kind: value.String, Text: a.Value}, nil)
	case a.Kind == Prefix && b.Kind == Prefix:
		return hasPlainPrefix(a.Value, b.Value)
	case a.Kind == Below && b.Kind == Below:
		return isBelow(a.Value, b.Value)
	}

	return false
}

// leadsOut reports whether a text has a path that a symbolic link leads out of the workspace.
func leadsOut(text string, w *resolve.Workspace) bool {
	if w == nil || len(w.Outside) == 0 {
		return false
	}
	words, _ := shellfacts.Literal(text)

	return slices.ContainsFunc(append(words, text), func(word string) bool { return slices.Contains(w.Outside, word) })
}

// isHiddenRune reports whether people can't see a character, so that it could hide the rest of a
// text.
func isHiddenRune(c rune) bool { return c != ' ' && !unicode.IsPrint(c) }

// climbs reports whether a text has a path component that leads to the parent directory.
func climbs(text string) bool {
	return slices.ContainsFunc(
		strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(`/\ =:,@`, c) }),
		func(part string) bool { return part == ".." },
	)
}

// strangelySensitive reports whether a text names a file with secrets or settings that the approved
// text did not name.
func strangelySensitive(approved, got string) bool {
	return approved != got && shellfacts.Sensitive(got, true)
}

// hasPlainPrefix reports whether a text begins with the prefix, and continues with nothing that
// leads elsewhere: a parent directory, a character that a shell reads, or one that people can't see.
func hasPlainPrefix(text, prefix string) bool {
	rest, ok := strings.CutPrefix(text, prefix)
	return ok && !climbs(text) && !strings.ContainsAny(rest, "$`;&|<>(){}\\") &&
		!strings.ContainsFunc(rest, isHiddenRune)
}

// isPlainPath reports whether a path is written in the shortest form, without .. and without
// characters that a tool may expand or that separate words.
func isPlainPath(name string) bool {
	return name != "" && path.Clean(name) == name && !strings.HasPrefix(name, "-") && !climbs(name) &&
		!strings.ContainsAny(name, " $~`*?[]{}\\'\"<>|:;&") && !strings.ContainsFunc(name, isHiddenRune)
}

// isBelow reports whether a path is below a directory, by its text alone: links are not followed.
func isBelow(name, directory string) bool {
	switch {
	case !isPlainPath(name):
		return false
	case directory == ".":
		return !path.IsAbs(name) && name != "."
	}

	return strings.HasPrefix(name, directory+"/")
}

// splitAddress returns the scheme and the host, with its port, of an address of the web. It refuses
// every address that programs might read differently.
func splitAddress(text string) (scheme, host string, ok bool) {
	scheme, rest, _ := strings.Cut(text, "://")
	host, _, _ = strings.Cut(rest, "/")
	parsed, err := url.Parse(text)
	ok = err == nil && (scheme == "https" || scheme == "http") && host != "" && parsed.Host == host &&
		parsed.Scheme == scheme && strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789.-:[]") == "" &&
		!strings.HasSuffix(host, ".") && !strings.Contains(text, `\`) && !strings.Contains(text, " ") &&
		!strings.ContainsFunc(text, isHiddenRune)

	return scheme, host, ok
}

// checkPattern returns what the words of a command line must be, or an empty string if they are right.
func checkPattern(pattern string) string {
	words := strings.Split(pattern, " ")
	fixed := slices.IndexFunc(append(slices.Clone(words), "*"), func(w string) bool { return w == "*" })
	plain := strings.Join(slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "*" }), " ")
	switch {
	case fixed == 0 || shellfacts.CheckListed(plain) != nil:
		return "a program and plain words with one space between two, and * for words that may differ, such as go test *"
	case fixed < len(words) && (fixed == 1 && !startsNone(words[0]) || runsText(words[fixed-1])):
		return "at least one more word before the first *: what " + words[0] + " runs may depend on it"
	}

	return ""
}

// startsNone reports whether a program is known to start no other program.
func startsNone(program string) bool {
	facts := shellfacts.Of(program+" x", shellfacts.Options{})
	return facts.Programs.Known
}

// runsText reports whether the word is an option after which interpreters run the next word.
func runsText(word string) bool {
	return slices.Contains(
		[]string{"-c", "-e", "-E", "-m", "-p", "-r", "-x", "--eval", "--exec", "--command", "-exec"}, word)
}

// coversLine reports whether a command line matches a pattern. A * in the pattern matches one word, and
// at the end any number of words. All words must be plain text. Unless the approved line has it too, a
// word that * matches must not be an option that may do more, and must not name a file with secrets or
// one outside of the directory of the call.
func coversLine(pattern, approved, line string) bool {
	words, literal := shellfacts.Literal(line)
	want := strings.Split(pattern, " ")
	if !literal {
		return false
	}
	open := want[len(want)-1] == "*"
	if open {
		want = want[:len(want)-1]
	}
	if len(words) < len(want) || len(words) > len(want) && !open {
		return false
	}
	var free []string
	for i, word := range words {
		switch {
		case i >= len(want):
			free = append(free, word)
		case want[i] == "*" && !strings.HasPrefix(word, "-"):
			free = append(free, word)
		case want[i] != word:
			return false
		}
	}

	first := slices.Index(append(slices.Clone(want), "*"), "*")
	opt := shellfacts.Options{Listed: []string{strings.Join(want[:first], " ")}}
	facts, before := shellfacts.Of(line, opt), shellfacts.Of(approved, opt)
	known := facts.Unlisted.Known && facts.Unlisted.Text == "" && facts.Paths.Known && facts.Sensitive.Known &&
		facts.Writes.Known
	named := func(fact shellfacts.Fact, name string) bool {
		return fact.Known && slices.Contains(strings.Split(fact.Text, "\n"), name)
	}
	approvedWords, _ := shellfacts.Literal(approved)

	return known &&
		!slices.ContainsFunc(free, func(w string) bool {
			return strings.HasPrefix(w, "-") && !slices.Contains(approvedWords, w) && !shellfacts.KnowsOptions(words)
		}) &&
		!slices.ContainsFunc(free, func(w string) bool {
			return !slices.Contains(approvedWords, w) && reachesOut(w)
		}) &&
		!slices.ContainsFunc(lines(facts.Paths), func(p string) bool {
			return !named(before.Paths, p) && reachesOut(p)
		}) &&
		!slices.ContainsFunc(lines(facts.Sensitive), func(p string) bool { return !named(before.Sensitive, p) }) &&
		!slices.ContainsFunc(lines(facts.Writes), func(p string) bool {
			return !named(before.Writes, p) && shellfacts.Sensitive(p, true)
		})
}

func lines(f shellfacts.Fact) []string {
	if f.Text == "" {
		return nil
	}
	return strings.Split(f.Text, "\n")
}

// reachesOut reports whether a word may name a file outside of the directory of the call.
func reachesOut(word string) bool {
	if climbs(word) || strings.HasPrefix(word, "-") && strings.Contains(word, "..") {
		return true
	}
	if scheme, _, ok := splitAddress(word); ok && scheme != "" {
		return false
	}
	return slices.ContainsFunc(
		strings.FieldsFunc(word, func(c rune) bool { return strings.ContainsRune("=:,@ ", c) }),
		func(part string) bool { return strings.HasPrefix(part, "/") || strings.HasPrefix(part, "~") },
	)
}
