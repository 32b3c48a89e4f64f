package resolve

import (
	"slices"

	"github.com/assent-dev/assent/condition"
)

// Loosened lists the fields, by their paths and in order, by which a
// configuration lets more through, or lets it through longer, than the
// one before: whoever reads what changed looks at them first. Every
// reading of Semantics that is not the default counts as looser. What
// policies say is not looked at.
func (c *Config) Loosened(before *Config) []string {
	out := []string{}
	note := func(looser bool, field string) {
		if looser {
			out = append(out, field)
		}
	}
	note(c.ApproveOnTimeout && !before.ApproveOnTimeout, "approve_on_timeout")
	note(c.ReplacePermissions && !before.ReplacePermissions, "replace_permissions")
	note(c.Undeclared == wordAsk && before.Undeclared != wordAsk, "undeclared")
	note(c.PermitAge > before.PermitAge, "permit_age")
	note(more(c.TrustedServers, before.TrustedServers), "trusted_servers")
	note(more(c.CaseSensitive, before.CaseSensitive), "case_sensitive_arguments")
	note(c.derivesMore(before), "derived")
	note(c.Registry != nil && before.Registry != nil && c.Registry.Keep > before.Registry.Keep, "registry.keep")
	now, then := c.Semantics, before.Semantics
	for field, looser := range map[string]bool{
		"on_missing":       looser(now.OnMissing, then.OnMissing, condition.NoMatch.String()),
		"on_mismatch":      looser(now.OnMismatch, then.OnMismatch, condition.NoMatch.String()),
		"anchor":           looser(now.Anchor, then.Anchor, condition.Full.String()),
		"trim":             looser(now.Trim, then.Trim, condition.RawOnly.String()),
		"empty_allow_list": looser(now.EmptyAllowList, then.EmptyAllowList, wordAsAbsent),
		"remote_approval":  looser(now.RemoteApproval, then.RemoteApproval, wordSkillReplaces),
	} {
		note(looser, "semantics."+field)
	}

	slices.Sort(out)

	return out
}

// derivesMore reports whether conditions find facts that they did not
// find before, or others: what was not known may now be false.
func (c *Config) derivesMore(before *Config) bool {
	then := before.derivedTexts()
	for target, text := range c.derivedTexts() {
		if then[target] != text {
			return true
		}
	}

	return false
}

// looser reports whether a point was switched to its other reading.
func looser(now, before, other string) bool { return now == other && before != other }

// more reports whether a list has a word that the one before lacks.
func more(now, before []string) bool {
	return slices.ContainsFunc(now, func(word string) bool { return !slices.Contains(before, word) })
}
