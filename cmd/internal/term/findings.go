package term

import (
	"io"

	"github.com/assent-dev/assent/diag"
)

// PrintFindings prints findings that stop a command to its error stream.
func PrintFindings(w io.Writer, findings []diag.Finding, texts map[string][]byte) {
	out := diag.NewText(w, diag.Options{Source: func(file string) []byte { return texts[file] }})
	diag.Sort(findings)
	for start := 0; start < len(findings); {
		end := start + 1
		for end < len(findings) && findings[end].File == findings[start].File {
			end++
		}
		// Write errors are ignored, because there is no other stream to report them on.
		_ = out.File(diag.Report{File: findings[start].File, Findings: findings[start:end]})
		start = end
	}
}
