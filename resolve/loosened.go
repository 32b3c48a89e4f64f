package resolve

import (
	"slices"

	"github.com/assent-dev/assent/condition"
	"github.com/assent-dev/assent/policy"
)

// Loosened returns the paths, in order, of the fields with which this configuration allows more
// than the one before, or allows it for longer. Reviewers should look at these fields first. Every
// reading of Semantics that is not the default counts as looser. The effect of policies is not
// considered.
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
	note(c.leavesOpenMore(before), "grants")
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

// derivesMore reports whether the configuration derives facts that the one before didn't: a test
// that was unknown may now be false.
func (c *Config) derivesMore(before *Config) bool {
	then := before.derivedTexts()
	for target, text := range c.derivedTexts() {
		if then[target] != text {
			return true
		}
	}

	return false
}

// leavesOpenMore reports whether standing approvals may leave something open that the configuration
// before did not name.
func (c *Config) leavesOpenMore(before *Config) bool {
	return slices.ContainsFunc(c.Grants, func(s Standing) bool {
		i := slices.IndexFunc(before.Grants, func(b Standing) bool { return b.Target == s.Target })
		if i < 0 {
			return len(s.Ignored)+len(s.Bounds) > 0
		}
		then := before.Grants[i]
		return more(s.Ignored, then.Ignored) || slices.ContainsFunc(s.Bounds, func(b policy.Bound) bool {
			return !slices.Contains(then.Bounds, b)
		})
	})
}

// looser reports whether a point was switched to its other reading.
func looser(now, before, other string) bool { return now == other && before != other }

// more reports whether a list has a word that the one before lacks.
func more(now, before []string) bool {
	return slices.ContainsFunc(now, func(word string) bool { return !slices.Contains(before, word) })
}
