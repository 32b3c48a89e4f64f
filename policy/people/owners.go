package people

import "strings"

// Owners parses the label owner of an agent: names separated by commas.
func Owners(label string) []string {
	var out []string
	for _, name := range strings.Split(label, ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}

	return out
}
