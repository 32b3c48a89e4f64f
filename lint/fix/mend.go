package fix

import (
	"bytes"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
)

// most bounds how many findings of one file are mended.
const most = 1_000

// Refusal is a remedy that was not applied.
type Refusal struct {
	Remedy
	Why string
}

// Result is a file after its findings were mended.
type Result struct {
	Text    []byte
	Made    []Remedy  // in the order in which they were applied
	Refused []Refusal // places are those of Text
}

// Mend applies the remedies of a file one after the other. check lints a
// text, keep says why a text must not take the place of another, or "".
// A remedy is also refused when its finding stays, or when what comes of
// it can't be loaded. To mend the result again changes nothing.
func Mend(
	src []byte,
	check func([]byte) []diag.Finding,
	keep func(before, after []byte) string,
) Result {
	m := mender{
		check:   check,
		keep:    keep,
		refused: map[string]bool{},
	}
	m.Text = bytes.Clone(src)
	findings := check(src)
	for len(m.Made)+len(m.Refused) < most {
		next := m.step(findings)
		if next == nil {
			break
		}
		findings = next
	}

	return m.Result
}

type mender struct {
	Result
	check   func([]byte) []diag.Finding
	keep    func(before, after []byte) string
	refused map[string]bool // by name
}

// step applies the first remedy that may be applied, and returns what is
// found then; nil when there is none.
func (m *mender) step(findings []diag.Finding) []diag.Finding {
	for _, r := range Of(m.Text, findings) {
		if m.refused[r.name()] {
			continue
		}
		after := r.Edit.Apply(m.Text)
		left := m.check(after)
		why := spoils(findings, left, r.Finding)
		if why == "" {
			why = m.keep(m.Text, after)
		}
		if why == "" {
			m.Text = after
			m.Made = append(m.Made, r)
			return append([]diag.Finding{}, left...)
		}

		m.refused[r.name()] = true
		m.Refused = append(m.Refused, Refusal{Remedy: r, Why: why})
	}

	return nil
}

// name tells remedies apart though lines above them come and go.
func (r Remedy) name() string { return r.Finding.Rule + "\n" + r.Finding.Message + "\n" + r.Title }

// spoils says why a text is worse than before.
func spoils(before, after []diag.Finding, mended diag.Finding) string {
	same := func(list []diag.Finding) (n int) {
		for _, f := range list {
			if f.Rule == mended.Rule && f.Message == mended.Message {
				n++
			}
		}
		return n
	}
	switch {
	case same(after) >= same(before):
		return "the finding stays"
	case len(yamldoc.Stopping(after)) > len(yamldoc.Stopping(before)):
		return "the file could not be loaded any more"
	}

	return ""
}
