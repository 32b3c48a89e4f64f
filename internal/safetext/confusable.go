package safetext

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// judge returns a note for readers if a word could be mistaken for another one: it looks like
// an ASCII word, mixes alphabets, or has foreign digits.
func judge(word string) (note string, flags Flags) {
	flags = Flags{}
	if ascii(word) {
		return "", flags
	}
	var notes []string
	if as := skeleton(word); as != "" {
		flags["alike"] = true
		notes = append(notes, "not “"+as+"”: "+strangers(word))
	}
	if names := Alphabets(word); len(names) > 1 {
		flags["mixed"] = true
		notes = append(notes, "mixes "+strings.Join(names, " and "))
	}
	if strings.ContainsFunc(word, foreignDigit) && len(notes) == 0 {
		flags["digits"] = true
		notes = append(notes, "digits other than 0 to 9: "+strangers(word))
	}
	if strings.ContainsFunc(word, RightToLeft) {
		flags["rtl"] = true
	}
	return strings.Join(notes, "; "), flags
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// skeleton returns the ASCII text that a word looks like, or an empty string if it does not
// look like ASCII.
func skeleton(word string) string {
	var b strings.Builder
	for _, r := range norm.NFKC.String(word) {
		switch as, ok := alikeLetter(r); {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case ok:
			b.WriteRune(as)
		default:
			return ""
		}
	}

	return b.String()
}

// strangers lists the first few non-ASCII characters of a word.
func strangers(word string) string {
	var found []rune
	var out []string
	for _, r := range word {
		if r < utf8.RuneSelf || slices.Contains(found, r) {
			continue
		}
		if len(found) == 4 {
			return strings.Join(out, " ") + " …"
		}
		found, out = append(found, r), append(out, codePoint(r))
	}

	return strings.Join(out, " ")
}

// Alphabets lists the alphabets of a word's letters, limited to those whose letters look alike.
func Alphabets(word string) []string {
	var out []string
	for _, name := range []string{
		"Latin",
		"Cyrillic",
		"Greek",
		"Armenian",
		"Cherokee",
		"Coptic",
		"Georgian",
		"Lisu",
		"Deseret",
		"Osage",
	} {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(unicode.Scripts[name], r) }) {
			out = append(out, name)
		}
	}

	return out
}

func foreignDigit(r rune) bool { return r >= utf8.RuneSelf && unicode.IsDigit(r) }

// alikeLetter returns the ASCII letter or digit that a letter looks like. NFKC handles
// fullwidth, mathematical, circled and similar letters. This table has letters of other
// alphabets, and Latin letters that lack a dot or a bowl.
func alikeLetter(r rune) (rune, bool) {
	const from = "аАВсСԁеЕһНіІјЈкКӏӀМоОрРԛԚѕЅТхХуУүҮԝԜѵѴпгɡɑıȷʏԌЗзбЬ" +
		"αΑΒεΕΖηΗιΙκΚΜνΝοΟρΡτΤυΥχΧγωϲϹϳ" +
		"հոսօցյՏՕԼՍ" + "ᎪᏴᏟᎠᎬᎻᎫᏦᏞᎷᏢᎡᏚᎢᏙᎳᏃ" + "ǀƖⅠоƽᴏᴄᴠᴡᴢꜱꓐꓚꓓꓰꓖꓧꓮꓗꓡꓟꓠꓳꓑꓢꓔꓦꓪꓫꓬꓜ"
	const to = "aABcCdeEhHiIjJkKlIMoOpPqQsSTxXyYyYwWvVnrgaijyG33bb" +
		"aABeEZnHiIkKMvNoOpPtTuYxXywcCj" +
		"hnuogjSOLU" + "ABCDEHJKLMPRSTVWZ" + "lIIo5ocvwzsBCDEGHAKLMNOPSTVWXYZ"
	i := strings.IndexRune(from, r)
	if i < 0 || r < utf8.RuneSelf {
		return 0, false
	}
	return rune(to[utf8.RuneCountInString(from[:i])]), true
}

// alikeSign returns the ASCII sign that a sign looks like, or an empty string.
func alikeSign(r rune) string {
	if r < utf8.RuneSelf || quoteOfProse(r) {
		return ""
	}
	for _, family := range []struct{ as, signs string }{
		{"-", "‐‑‒−⁃﹘"},
		{"/", "⁄∕⧸"},
		{":", "։꞉׃∶"},
		{".", "․。｡"},
		{",", "‚٫、"},
		{"'", "ʹʼ‛´ˈ"},
		{`"`, "‟″〃"},
		{"*", "∗⁎٭"},
		{"<", "‹˂❮⟨"},
		{">", "›˃❯⟩"},
		{"!", "ǃ"},
		{`\`, "⧵∖⑊"},
		{"|", "∣❘‖ǁ"},
		{"~", "⁓˜∼"},
		{";", ";"},
		{"_", "ˍ"},
	} {
		if strings.ContainsRune(family.signs, r) {
			return family.as
		}
	}

	if as := norm.NFKC.String(string(r)); len(as) == 1 {
		return as
	}
	return ""
}

// quoteOfProse excludes the quotation marks that word processors write. A note at each of them
// would train people to ignore notes.
func quoteOfProse(r rune) bool { return strings.ContainsRune("‘’“”", r) }

// Letter returns the ASCII letter or digit that a letter of another alphabet looks like.
func Letter(r rune) (rune, bool) { return alikeLetter(r) }
