package diag

import "fmt"

// String returns "info", "warning" or "error".
func (s Severity) String() string {
	switch s {
	case Info:
		return "info"
	case Warning:
		return "warning"
	}

	return "error"
}

// ParseSeverity parses the result of String.
func ParseSeverity(s string) (Severity, error) {
	switch s {
	case "info":
		return Info, nil
	case "warning":
		return Warning, nil
	case "error":
		return Error, nil
	}

	return Info, fmt.Errorf("unknown severity %q: want error, warning or info", s)
}
