package main

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/cmd/internal/testfiles"
	"github.com/assent-dev/assent/policy/people"
)

const wirePolicy = `schema_version: "1.0.0"
policy_ref: acme.wires
rules:
  - id: large
    match: {targets: [wire]}
    approval: true
    require: {stages: [{group: finance, people: 9}], within: 1h}
  - id: both
    match: {targets: [pay]}
    approval: true
    require: {stages: [{group: finance, people: 2}, {group: heads, people: 1}], within: 1h}
  - id: stands-in
    match: {targets: [refund]}
    approval: true
    require:
      stages: [{group: finance, people: 3}]
      within: 1h
      on_timeout: escalate
      escalate: [{after: 20m, to: leads}]
  - id: looks-on
    match: {targets: [cancel]}
    approval: true
    require:
      stages: [{group: finance, people: 3}]
      within: 1h
      on_timeout: escalate
      escalate: [{after: 20m, to: leads, may: look}]
  - id: nobody
    match: {targets: [sign]}
    approval: true
    require: {stages: [{group: board, people: 1}], within: 1h}
  - id: two
    match: {targets: [book]}
    approval: true
    require: {stages: [{group: finance, people: 2}], within: 1h}
`

const wirePeople = `schema_version: "1.0.0"
people:
  - {id: mara@example.com, groups: [finance, heads]}
  - {id: omar@example.com, groups: [finance, heads]}
  - {id: ines@example.com, groups: [leads]}
`

// TestServeWarnsOfStagesThatNobodyCanFill: the server warns before the first request, with the rule
// and the numbers, once for each stage. A group without members has its own warning.
func TestServeWarnsOfStagesThatNobodyCanFill(t *testing.T) {
	dir := t.TempDir()
	testfiles.Write(t, filepath.Join(dir, "wires.policy.yaml"), wirePolicy)
	directory, findings := people.Parse("people.yaml", []byte(wirePeople))
	if directory == nil {
		t.Fatal(findings)
	}
	ts := tenants{"acme": {cfg: config.Tenant{Policies: []string{dir}}, groups: groupsOf([]string{dir})}}

	var log bytes.Buffer
	to := slog.New(slog.NewTextHandler(&log, nil))
	ts.warnOfEmptyGroups(t.Context(), directory, to)
	ts.warnOfShortStages(t.Context(), directory, to)

	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	want := []string{
		"group=board", "rule=large group=finance need=9 have=2", "rule=both group=heads need=1 have=0",
		"rule=looks-on group=finance need=3 have=2",
	}
	if len(lines) != len(want) {
		t.Fatalf("%d warnings, want %d:\n%s", len(lines), len(want), log.String())
	}
	for i, w := range want {
		if !strings.Contains(lines[i], w) || !strings.Contains(lines[i], "people.yaml") {
			t.Errorf("warning %d: got %q, want %q", i, lines[i], w)
		}
	}
}
