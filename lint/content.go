package lint

import (
	"slices"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// Content is what a file is by its content.
type Content uint8

// The contents of files. What is not recognised is taken for an agent.
const (
	AgentContent Content = iota
	PolicyContent
	PeopleContent
)

// ContentOf tells what a file is by its top-level keys, for files whose
// name does not say.
func ContentOf(src []byte) Content {
	content, _ := Recognise(src)
	return content
}

// Recognise tells what a file is by its top-level keys, and whether they
// say so at all. Of several documents the first that is recognised
// counts. Text that is no YAML goes by the lines that begin with a key.
func Recognise(src []byte) (content Content, known bool) {
	for range mostDocuments {
		doc, found := yamldoc.Parse("", src, yamldoc.Limits{})
		if doc != nil {
			return contentBy(func(key string) bool { return doc.Root.Get(key) != nil })
		}
		first, rest := nextDocument(src, found)
		if len(rest) == 0 {
			return contentBy(keysOf(src))
		}
		if content, known = Recognise(first); known {
			return content, true
		}
		src = rest
	}

	return AgentContent, false
}

// contentBy judges by the top-level keys.
func contentBy(has func(key string) bool) (content Content, known bool) {
	switch {
	case has("execution_policy"):
		return AgentContent, true
	case has("policy_ref"):
		return PolicyContent, true
	case !has("metadata") && (has("people") || has("groups")):
		return PeopleContent, true
	}

	return AgentContent, false
}

// keysOf tells which keys begin a line.
func keysOf(src []byte) func(key string) bool {
	bounds := pattern.Bounds{Bytes: 100, Size: 100}
	return func(key string) bool {
		return bounds.MustCompile(`(?m)^["']?` + key + `["']?[ \t]*:`).Match(src)
	}
}

// nextDocument parts a file at its second document, whose place is among
// what was found; rest is empty when it has only one.
func nextDocument(src []byte, found []diag.Finding) (first, rest []byte) {
	i := slices.IndexFunc(found, func(f diag.Finding) bool { return f.Rule == ruleDocuments })
	if i < 0 {
		return src, nil
	}
	return cutLines(src, found[i].Range.Start.Line)
}

// NamedContent tells what a file is by its name, as the standard does;
// false when the name does not say. Names that are nearly right count
// too: who passed over agent.agf.yml would call an agent clean that
// nobody has looked at.
func NamedContent(name string) (Content, bool) {
	name = strings.ToLower(name)
	for _, ending := range []string{".yaml", ".yml", ".json"} {
		switch base := strings.TrimSuffix(name, ending); {
		case base == name:
		case base == "people":
			return PeopleContent, true
		case strings.HasSuffix(base, ".agf"):
			return AgentContent, true
		case strings.HasSuffix(base, ".policy"):
			return PolicyContent, true
		}
	}

	return AgentContent, false
}
