package catalog

import (
	"slices"
	"strings"
)

// imperatives returns phrases that address a model instead of describing a tool. Attacks contain
// them, but clumsy descriptions do, too.
func imperatives() []string {
	return []string{
		"ignore previous", "ignore all", "ignore any", "ignore the above", "disregard",
		"do not tell", "don't tell", "do not mention", "don't mention", "without telling",
		"do not inform", "never tell", "never mention", "hide this",
		"before using", "before calling", "before any other tool", "instead of using",
		"you must", "you should always", "always call", "always use this",
		"<important>", "<system>", "system prompt", "do not ask", "without asking",
	}
}

// warnAlone adds warnings about the tool's own texts.
func (t *Tool) warnAlone() {
	words, address := imperatives(), false
	for _, text := range t.texts {
		low := strings.ToLower(text)
		for i, word := range words {
			if word != "" && strings.Contains(low, word) {
				t.find(RuleImperative, "", "a text says “"+word+"”, which speaks to the model")
				words[i] = ""
			}
		}

		if !address && (strings.Contains(low, "http://") || strings.Contains(low, "https://")) {
			t.find(RuleAddress, "", "a text holds an address of the web")
			address = true
		}
	}
}

// shadows finds the tools of other servers that a tool's texts name. owners maps a tool's name to
// the servers that have it.
func (t *Tool) shadows(alias string, owners map[string][]string) []Finding {
	var out []Finding
	seen := map[string]bool{}
	for _, text := range t.texts {
		for word, marked := range words(text) {
			of := owners[word]
			if len(of) == 0 || slices.Contains(of, alias) || seen[word] || !marked && ordinary(word) {
				continue
			}
			seen[word] = true
			out = append(out, Finding{
				Rule:    RuleShadow,
				Server:  alias,
				Tool:    t.Name,
				Message: "a text names “" + word + "”, a tool of " + strings.Join(of, " and "),
			})
		}
	}

	return out
}

// ordinary reports whether a name is an ordinary word that any text may contain.
func ordinary(word string) bool {
	return !strings.ContainsAny(word, "_-.0123456789") && strings.ToLower(word[1:]) == word[1:]
}

// words iterates over the words of a text that could be names of tools. Words in quotation marks,
// and words followed by "tool", are marked.
func words(text string) func(yield func(word string, marked bool) bool) {
	return func(yield func(string, bool) bool) {
		for i := 0; i < len(text); {
			if !wordByte(text[i]) {
				i++
				continue
			}
			start := i
			for i < len(text) && wordByte(text[i]) {
				i++
			}
			word := strings.Trim(text[start:i], ".-")
			quote := start > 0 && strings.IndexByte("`'\"", text[start-1]) >= 0
			if word != "" && !yield(word, quote || strings.HasPrefix(text[i:], " tool")) {
				return
			}
		}
	}
}

func wordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '-' || c == '.'
}
