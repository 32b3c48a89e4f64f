// Package safetexttest lists pieces of hostile texts for tests.
package safetexttest

// Pieces returns control characters, invisible characters, escapes, and template placeholders.
func Pieces() []string {
	return []string{
		"\n", "\r\n", "\t", " ", "          ", "\x1b[2K", "\u202e", "\u2066", "\u2069", "\u200b",
		"\u200b\u200b\u200b", "\U000e0041", "\ufe0f", "\u0301", "\u0338", "\u05d0", "\u0661", "é", "e", "1",
		"\\", "\\u{a}", "\\x{", "u{202e}", "…(", "\"", "{{", "}}", "{{agent_id}}", "{", "}", "{{{v0}}}",
		"{{{t0}}}", "<b>", "\xff", "\xe2\x80", "\u00a0", "\u3164", "$", "東",
	}
}
