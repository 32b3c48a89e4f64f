package fix

import (
	"bytes"
	"slices"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// mostRounds limits the rounds of checking and fixing a file.
const mostRounds = 1_000

// Refusal is a fix that was not applied.
type Refusal struct {
	Remedy
	Why string
}

// Result is a file after its findings were fixed.
type Result struct {
	Text    []byte
	Made    []Remedy  // in the order in which they were applied
	Refused []Refusal // places are those of Text
}

// Mend applies the fixes of a file: in each round all that don't overlap, and in the next round
// those for the findings that are left. check lints a text. keep returns why a text must not
// replace another, or an empty string. A fix is also refused if its finding remains, or if the new
// text can't be loaded. Applying Mend to the result again changes nothing.
func Mend(src []byte, check func([]byte) []diag.Finding, keep func(before, after []byte) string) Result {
	m := mender{check: check, keep: keep}
	m.Text = bytes.Clone(src)
	findings := check(src)
	for range mostRounds {
		batch := m.round(findings)
		if len(batch) == 0 {
			break
		}
		findings = m.try(findings, batch)
	}

	m.place(findings)
	return m.Result
}

type mender struct {
	Result
	check func([]byte) []diag.Finding
	keep  func(before, after []byte) string
}

// round selects fixes that can be applied together, in the order of the text: no two edits touch,
// and no list loses all its parts.
func (m *mender) round(findings []diag.Finding) (batch []Remedy) {
	all := Of(m.Text, findings)
	slices.SortStableFunc(all, func(a, b Remedy) int { return a.Edit.Start - b.Edit.Start })
	end, lost := -1, map[*yamldoc.Node]int{}
	for _, r := range all {
		from := r.Edit.from
		full := from != nil && lost[from]+1 >= len(from.Items)+len(from.Fields)
		if r.Edit.Start <= end || full || m.refusal(r) >= 0 {
			continue
		}
		batch = append(batch, r)
		end = r.Edit.End
		lost[from]++
	}

	return batch
}

// try applies fixes and returns the findings of the new text. If they are not acceptable together,
// it tries each half separately, the later half first, so that the positions of the other half
// don't change.
func (m *mender) try(findings []diag.Finding, batch []Remedy) []diag.Finding {
	after := apply(m.Text, batch)
	left := slices.Clone(m.check(after))
	why := spoils(findings, left, batch)
	if why == "" {
		why = m.keep(m.Text, after)
	}
	switch {
	case why == "":
		m.accept(batch, after)
		return left
	case len(batch) == 1:
		m.Refused = append(m.Refused, Refusal{Remedy: batch[0], Why: why})
		return findings
	}

	half := len(batch) / 2
	return m.try(m.try(findings, batch[half:]), batch[:half])
}

// apply makes edits that don't touch each other, given in the order of
// the text.
func apply(src []byte, batch []Remedy) (after []byte) {
	done := 0
	for _, r := range batch {
		after = append(after, src[done:r.Edit.Start]...)
		after = append(after, r.Edit.Text...)
		done = r.Edit.End
	}
	return append(after, src[done:]...)
}

// accept takes over a text. It adjusts the positions of refused fixes after an edit.
func (m *mender) accept(batch []Remedy, after []byte) {
	for i := range m.Refused {
		e, moved := &m.Refused[i].Edit, 0
		for _, r := range batch {
			if r.Edit.End <= e.Start {
				moved += len(r.Edit.Text) - (r.Edit.End - r.Edit.Start)
			}
		}
		e.Start += moved
		e.End += moved
	}

	m.Text = after
	m.Made = append(m.Made, batch...)
}

// refusal returns the index of the refusal of a fix, or -1 if it was not refused.
func (m *mender) refusal(r Remedy) int {
	return slices.IndexFunc(m.Refused, func(no Refusal) bool {
		same := no.Finding.Rule == r.Finding.Rule && no.Title == r.Title
		return same && no.Edit.Start == r.Edit.Start
	})
}

// place sets the positions of refused fixes in the final text.
func (m *mender) place(findings []diag.Finding) {
	for _, r := range Of(m.Text, findings) {
		if i := m.refusal(r); i >= 0 {
			m.Refused[i].Remedy = r
		}
	}

	slices.SortStableFunc(m.Refused, func(a, b Refusal) int { return a.Edit.Start - b.Edit.Start })
}

// spoils returns why a text is worse than the one before some fixes, or an empty string.
func spoils(before, after []diag.Finding, batch []Remedy) string {
	left := map[[2]string]int{}
	for _, f := range before {
		left[named(f)]++
	}
	for _, r := range batch {
		left[named(r.Finding)]--
	}
	now := map[[2]string]int{}
	for _, f := range after {
		now[named(f)]++
	}

	for _, r := range batch {
		if name := named(r.Finding); now[name] > left[name] {
			return "the finding stays"
		}
	}
	if len(yamldoc.Stopping(after)) > len(yamldoc.Stopping(before)) {
		return "the file could not be loaded any more"
	}
	return ""
}

// named returns a key of a finding that doesn't change if lines are inserted or removed above it.
func named(f diag.Finding) [2]string { return [2]string{f.Rule, f.Message} }
