package client

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/internal/golden"
	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/server/openapi"
)

// text is one row of testdata/texts.json: a response of the HTTP API, and the text for the
// agent or the program. Clients in other languages are tested with the same rows.
type text struct {
	Name    string          `json:"name"`
	Opened  json.RawMessage `json:"opened,omitempty"`  // the response to opening
	Request json.RawMessage `json:"request,omitempty"` // the final request, if people were asked
	Problem json.RawMessage `json:"problem,omitempty"` // an error from the server
	Text    string          `json:"text"`
}

const (
	someDeadline = `,"deadline":"2026-03-01T12:05:59.5Z"`
	decisionRest = `,"reasons":[],"missing_variables":[]}`
	askDecision  = `{"outcome":"ask","message":"Trade?"` + decisionRest

	// requestRest has the members that all requests share.
	requestRest = `,"id":"apr_1","tenant":"default","version":2,` +
		`"created":"2026-03-01T12:00:00Z","requester":{"runtime":"desk"},"agent":{"id":"desk"},"stages":[],` +
		`"on_timeout":"deny","revisions":[{"number":0,"call":{"kind":"tool","tool":"trade","args":"{}"},` +
		`"binding":"sha256:00","plan":"sha256:01","at":"2026-03-01T12:00:00Z","decision":` + askDecision + `}]}`

	pendingAnswer = `{"outcome":"pending","decision":` + askDecision + `,"request":{"state":"pending"` + someDeadline +
		requestRest + `}`
)

// denied returns the response for a call that is denied without asking people. why is empty if
// the rules deny it; message is in JSON.
func denied(why, message string) json.RawMessage {
	if why != "" {
		why = `,"denied":"` + why + `"`
	}
	return []byte(`{"outcome":"deny"` + why + `,"decision":{"outcome":"deny","message":` + message + decisionRest + `}`)
}

// refused are responses to calls that are denied without asking people.
var refused = []text{
	{Name: "policy denies, with a message", Opened: denied("", `"Dropping tables is not delegated."`)},
	{Name: "policy denies, without one", Opened: denied("", `""`)},
	{Name: "policy denies, in so many words", Opened: denied("policy", `"No..."`)},
	{Name: "a word that a later version may bring", Opened: denied("later", `"It is late"`)},
	{Name: "the agent is frozen", Opened: denied("frozen", `"Frozen: incident"`)},
	{Name: "a person has just denied it", Opened: denied("cooling_down", `"mara denied it: too much."`)},
	{Name: "a person has just denied it, without a message", Opened: denied("cooling_down", `""`)},
	{Name: "<angle> brackets, Ünïcode", Opened: denied("", `"<b>ä\u2028&\u00a0.</b>.."`)},
}

// ended are requests in their final state.
var ended = []string{
	`"state":"denied","cause":"votes","by":"mara@example.com","reason":"not from this branch"`,
	`"state":"denied","cause":"votes","by":"mara@example.com","reason":"not from this branch..."`,
	`"state":"denied","cause":"votes","by":"mara@example.com"`,
	`"state":"denied","cause":"votes","reason":"no."`,
	`"state":"denied","cause":"votes"`,
	`"state":"denied","cause":"response","by":"mara@example.com","response":"Use the copy in Ünna."`,
	`"state":"denied","cause":"response","by":"mara@example.com","reason":"why","response":"Use the copy."`,
	`"state":"expired","cause":"deadline"` + someDeadline,
	`"state":"expired","cause":"deadline","deadline":"2026-03-01T01:05:00+02:00"`,
	`"state":"expired","cause":"late_deny","by":"omar@example.com","reason":"I looked again."`,
	`"state":"expired","cause":"late_deny"`,
	`"state":"expired","cause":"permit_age"`,
	`"state":"expired","cause":"plan_changed"`,
	`"state":"expired","cause":"history"`,
	`"state":"expired","cause":"superseded"`,
	`"state":"expired","cause":"requester","reason":"the run was stopped"`,
	`"state":"expired","cause":"requester"`,
	`"state":"expired","cause":"restored"`,
	`"state":"expired","cause":"of a later version"`,
	`"state":"cancelled","cause":"requester","by":"runtime","reason":"the run was stopped"`,
	`"state":"cancelled","cause":"requester"`,
	`"state":"cancelled","cause":"superseded"`,
	`"state":"consumed","cause":"consumed"`,
	`"state":"answered","cause":"choice"`,
	`"state":"pending"`,
	`"state":"of a later version"`,
}

// problems are errors as the server writes them.
var problems = []string{
	`{"type":"urn:assent:problem:consumed","code":"consumed","status":409,"title":"the approval is used",` +
		`"next_action":"none","detail":"by attempt-1"}`,
	`{"type":"urn:assent:problem:unavailable","code":"unavailable","status":503,"title":"the store can't be reached",` +
		`"next_action":"retry"}`,
}

// The golden file has every text of the client, with the responses that cause it.
func TestTexts(t *testing.T) {
	var rows []text
	for _, row := range refused {
		row.Text = notRun(t, row.Opened, nil)
		rows = append(rows, row)
	}

	for _, fields := range ended {
		request := `{` + fields + requestRest
		if !strings.Contains(fields, `"deadline":`) {
			request = `{` + fields + someDeadline + requestRest
		}

		rows = append(rows, text{
			Name:    strings.ReplaceAll(fields, `"`, ""),
			Opened:  []byte(pendingAnswer),
			Request: []byte(request),
			Text:    notRun(t, []byte(pendingAnswer), []byte(request)),
		})
	}

	for _, document := range problems {
		rows = append(rows, text{
			Name:    read[openapi.Problem](t, []byte(document)).Title,
			Problem: []byte(document),
			Text:    (&Problem{read[openapi.Problem](t, []byte(document))}).Error(),
		})
	}

	golden.Equal(t, "texts.json", written(t, rows))
}

func notRun(t *testing.T, opened, request []byte) string {
	t.Helper()
	o := read[approval.Opened](t, opened)
	e := &NotRunError{Opened: &o}
	if request != nil {
		r := read[approval.Request](t, request)
		e.Request = &r
	}
	return e.Error()
}

func read[T any](t *testing.T, document []byte) (out T) {
	t.Helper()
	if err := json.Unmarshal(document, &out); err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	return out
}

func written(t *testing.T, rows []text) string {
	t.Helper()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	must.Do(t, encoder.Encode(rows))
	return out.String()
}
