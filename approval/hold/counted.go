package hold

import (
	"slices"
	"time"

	"github.com/assent-dev/assent/resolve"
)

// Decide decides a call for a runtime that presents calls to an approval service. Only the service
// knows the past calls. So if the rules test them or may count this call, the outcome is Ask, and the
// service allows, asks about or denies the call when it is opened. A call that the rules deny for another
// reason is denied at once.
func Decide(plan *resolve.Plan, call *resolve.Call, now time.Time) resolve.Decision {
	one := *call
	one.At, one.History, one.HistoryKnown = now, nil, false
	d := plan.Decide(&one)
	past := plan.Past(&one)
	switch {
	case d.Outcome == resolve.Ask, len(plan.Histories(&one)) == 0 && !plan.Recorded(&past):
		return d
	case slices.ContainsFunc(d.Reasons, deniesAnyway):
		return d
	}
	binding, err := plan.Bind(call)
	if err != nil {
		return resolve.Unreadable(err)
	}

	return resolve.Decision{Outcome: resolve.Ask, Binding: binding, Configuration: d.Configuration}
}

// deniesAnyway reports whether a rule denies a call without a test of past calls.
func deniesAnyway(r resolve.Reason) bool {
	switch r.Code {
	case resolve.Denied, resolve.NotDeclared, resolve.NotAllowed, resolve.UnreadableArguments, resolve.UnreadableCall,
		resolve.PolicyUnresolved:
		return !slices.ContainsFunc(r.Matchers, func(m resolve.Matcher) bool { return m.Key == "history" })
	}

	return false
}
