package safetext

import (
	"strconv"
	"strings"
)

// Markdown spells out whatever Markdown, HTML or a host could read as
// more than a letter. It escapes nothing else: see Escape.
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
