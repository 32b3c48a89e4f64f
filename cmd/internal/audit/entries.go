package audit

import (
	"encoding/json"

	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/cmd/internal/term"
)

// PrintEntry prints one ledger entry on a line.
func PrintEntry(p *term.Printer, index int64, text json.RawMessage) {
	leaf, err := ledger.ParseLeaf(text)
	if err != nil {
		p.Printf("%d  %s\n", index, string(text))
		return
	}
	PrintLeaf(p, index, leaf)
}

func PrintLeaf(p *term.Printer, index int64, leaf ledger.Leaf) {
	p.Printf("%d  %s  %s", index, term.Stamp(leaf.Time), term.Bold.Of(leaf.Type))
	for _, part := range []string{leaf.Subject, leaf.Actor} {
		if part != "" {
			p.Printf("  %s", part)
		}
	}
	for _, m := range leaf.Facts.Members {
		switch m.Key {
		case "agent", "target", "state", "outcome", "verdict", "cause", "digest":
			p.Printf("  %s=%s", m.Key, m.Value.Text)
		case "chosen", "count", "broken_count":
			p.Printf("  %s=%s", m.Key, string(m.Value.AppendJSON(nil)))
		}
	}

	p.Printf("\n")
}
