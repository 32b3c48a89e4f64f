package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/lint"
)

// approvalMisplaced reports approvals that are misspelt or
// stand where nobody reads them.
func approvalMisplaced(p *lint.Pass) {
	for _, f := range p.UnknownFields() {
		if slices.Contains(f.Path, "approval") || slices.Contains(f.Path, "metadata") ||
			f.Key.Text != "approval" && f.In.Get("approval") != nil {
			continue // in an approval, which asks; about the file; or beside an approval, which is read
		}
		// The space lets Nearest find a name itself as well: it doesn't
		// count.
		if inner := diag.Nearest(
			f.Key.Text+" ",
			[]string{"condition", "args_match", "message_template"},
		); inner != "" &&
			isEntry(f.Path) {
			p.Report(f.Key.Range, fmt.Sprintf("%q stands outside of approval, where it is not read", f.Key.Text),
				lint.Expected("approval: {"+home(inner)+"}"))
			continue
		}

		if value := f.In.Get(f.Key.Text); isGate(f.Key.Text) && (value.Kind != yamldoc.Bool || value.Bool) {
			reportGate(p, f)
		}
	}
}

func reportGate(p *lint.Pass, f lint.UnknownField) {
	if isEntry(f.Path) {
		p.Report(f.Key.Range, fmt.Sprintf("%q is no field of this entry, so it gates nothing", f.Key.Text),
			lint.Expected("approval: true, or an object with a condition"), lint.Meant("approval"))
		return
	}
	p.Report(f.Key.Range, fmt.Sprintf("%q is not read here, so it gates nothing", f.Key.Text),
		lint.Expected("approval in the entry of a tool, server, skill or agent"))
}

// isEntry reports whether a mapping at this path may carry an approval.
func isEntry(path []string) bool {
	if len(path) == 0 {
		return false
	}
	switch path[len(path)-1] {
	case "local_tools", "mcp_servers", "allowed_tools", "local_agents", "remote_agents", "allowed_skills":
		return true
	}
	return false
}

func home(field string) string {
	if field == "args_match" {
		return "condition: {args_match: …}"
	}
	return field + ": …"
}

// isGate reports whether a name says that somebody is to be asked: a
// misspelt approval, or one of its words.
func isGate(name string) bool {
	words := strings.FieldsFunc(
		strings.ToLower(name),
		func(r rune) bool { return r == '_' || r == '-' || r == ' ' },
	)
	if slices.Contains(words, "approved") {
		return false // tells what happened
	}
	if name == "approval" || diag.Nearest(name, []string{"approval"}) != "" {
		return true
	}
	return slices.ContainsFunc(words, func(w string) bool {
		switch w {
		case "approval", "approvals", "approve", "confirm", "confirmation", "hitl", "consent":
			return true
		}
		return false
	})
}
