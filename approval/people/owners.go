package people

import "strings"

// Owners reads an agent's label owner: names, separated by commas.
func Owners(label string) []string {
	var out []string
	for _, name := range strings.Split(label, ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}

	return out
}
