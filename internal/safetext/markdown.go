package safetext

import (
	"strconv"
	"strings"
)

// Markdown replaces every character that Markdown, HTML or a host could interpret by a
// character reference. It does not escape hidden characters: see Escape.
func Markdown(s string) string {
	var out strings.Builder
	for _, c := range s {
		if strings.ContainsRune("`*[]()<>#|~&@\\!_:$", c) {
			out.WriteString("&#" + strconv.Itoa(int(c)) + ";")
		} else {
			out.WriteRune(c)
		}
	}

	return out.String()
}
