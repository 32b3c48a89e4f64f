package lint

import (
	"slices"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// Content is the kind of a file, determined by its content.
type Content uint8

// These are the kinds of content. A file that is not recognised is treated as an agent.
const (
	AgentContent Content = iota
	PolicyContent
	PeopleContent
)

// ContentOf determines the kind of a file by its top-level keys, for files whose name doesn't tell.
func ContentOf(src []byte) Content {
	content, _ := Recognise(src)
	return content
}

// Recognise determines the kind of a file by its top-level keys. known is false if they don't tell.
// If there are several documents, the first recognised one counts. For text that is not YAML, it
// uses the lines that begin with a key.
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

// contentBy determines the kind by the top-level keys.
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

// keysOf returns the keys at the beginning of lines.
func keysOf(src []byte) func(key string) bool {
	bounds := pattern.Bounds{Bytes: 100, Size: 100}
	return func(key string) bool {
		return bounds.MustCompile(`(?m)^["']?` + key + `["']?[ \t]*:`).Match(src)
	}
}

// nextDocument splits a file at its second document, whose position is in a finding. rest is empty
// if there is only one document.
func nextDocument(src []byte, found []diag.Finding) (first, rest []byte) {
	i := slices.IndexFunc(found, func(f diag.Finding) bool { return f.Rule == ruleDocuments })
	if i < 0 {
		return src, nil
	}
	return cutLines(src, found[i].Range.Start.Line)
}

// NamedContent determines the kind of a file by its name, as the standard does. It returns false if
// the name doesn't tell. Names that are almost right count too: if agent.agf.yml were skipped, it
// would appear clean without having been checked.
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
