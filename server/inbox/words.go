package inbox

import (
	"fmt"
	"strings"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/internal/safetext"
)

// tail returns the end of an id, which people compare.
func tail(id string) string { return id[max(0, len(id)-6):] }

// about shortens generated ids, such as apr_…, but not the names of people and agents.
func about(subject string) string {
	if madeID().MatchString(subject) {
		return "…" + tail(subject)
	}
	return subject
}

var madeID = pattern.Of(`^[a-z]{3}_[a-z0-9]{20,}$`)

// short returns the beginning of a digest, which people compare.
func short(digest string) string {
	hex := strings.TrimPrefix(digest, "sha256:")
	return hex[:min(8, len(hex))]
}

func at(t time.Time) string { return t.UTC().Format("2 Jan 2006 15:04:05 UTC") }

// until describes the time from now until t, or since t, in words.
func until(t, now time.Time) string {
	if d := t.Sub(now); d >= 0 {
		return "in " + span(d)
	}
	return span(now.Sub(t)) + " ago"
}

// span formats a duration in its largest one or two units.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%.1f s", max(d, 0).Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 90*time.Minute:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		h, m := int(d.Hours()), int(d.Minutes())%60
		if m == 0 {
			return fmt.Sprintf("%d h", h)
		}
		return fmt.Sprintf("%d h %d min", h, m)
	}

	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

func groupName(group string) string {
	if group == "" {
		return "any approver"
	}
	return group
}

// seatsOf describes a number of people of a group.
func seatsOf(n int, group string) string {
	switch {
	case group != "":
		return safetext.Count(n) + " of " + group
	case n == 1:
		return "1 approver"
	}

	return safetext.Count(n) + " approvers"
}

// stateWords describes the state of a request, and its cause.
func stateWords(r *approval.Request) string {
	by := map[approval.Cause]string{
		approval.ByVotes:      "",
		approval.ByResponse:   "a person answered instead of letting it run",
		approval.ByDeadline:   "nobody decided in time",
		approval.ByTimeout:    "nobody decided in time, and the policy lets it run then",
		approval.ByRequester:  "whoever asked took it back",
		approval.BySupersede:  "a newer request stands in its place",
		approval.ByPermitAge:  "it was approved, but not used in time",
		approval.ByPlanChange: "the rules changed after it was approved",
		approval.ByHistory:    "calls that ran after it was approved used up a limit",
		approval.ByLateDeny:   "it was approved, then denied before it ran",
		approval.ByConsume:    "it ran, once",
		approval.ByChoice:     "a person picked one of its choices",
		approval.BySubmission: "a person gave what it asks for",
		approval.ByDismissal:  "a person dismissed it, which picked its default",
		approval.ByRestore:    "it had not been used when the store was restored",
	}[r.Cause]
	if r.Cause == approval.ByDismissal && r.Chosen == nil {
		by = "a person dismissed it, without an answer"
	}
	word := map[approval.State]string{
		approval.Pending:   "Waiting for people",
		approval.Approved:  "Approved, may run once",
		approval.Denied:    "Denied",
		approval.Expired:   "Expired",
		approval.Cancelled: "Cancelled",
		approval.Consumed:  "Approved and used",
		approval.Answered:  "Answered",
	}[r.State]
	if by == "" {
		return word
	}
	return word + ": " + by
}

// outcomeWords describes the result of an answer.
func outcomeWords(v *approval.Voted) said {
	r := v.Request
	switch v.Outcome {
	case approval.VoteCounted:
		return saying("done", "Your approval is counted. It takes more people before this may run.", sentence(v.Detail))
	case approval.VoteApproved:
		m := saying("good", "Approved. It may now run once, exactly as shown.")
		if v.Grant != nil {
			m.Lines = append(m.Lines, "A standing approval came out of it: see Grants.")
		}
		return m
	case approval.VoteDenied:
		if r.Cause == approval.ByResponse {
			return saying("done", "It will not run. The agent is told your answer instead.")
		}
		return saying("done", "Denied. It will not run. The agent is told why.")
	case approval.VoteAnswered:
		return outcomeOfAnswer(r)
	case approval.VoteDuplicate:
		return saying("note", "Nothing changed: you gave this answer before.")
	case approval.VoteLate:
		return saying(
			"note",
			"Too late, nothing changed: "+lower(stateWords(r))+".",
			"Your answer is kept in the ledger.",
		)
	case approval.VoteConflicting:
		return saying(
			"bad",
			"Too late, and it ended the other way: "+lower(stateWords(r))+".",
			"Your answer is kept in the ledger.",
		)
	case approval.VoteRevoked:
		return saying("done", "Stopped: it had been approved, and your answer voided that before it ran.")
	case approval.VoteNotEligible:
		return saying("bad", "Not counted. The attempt is kept in the ledger.", sentence(v.Detail))
	}

	return saying("note", sentence(v.Detail))
}

func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }
