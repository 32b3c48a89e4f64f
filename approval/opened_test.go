package approval_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/resolve"
)

// TestOpenedDocuments: a document contains the outcome as one word, and contradictory documents are
// refused.
func TestOpenedDocuments(t *testing.T) {
	allow := resolve.Decision{Outcome: resolve.Allow, Reasons: []resolve.Reason{}, MissingVariables: []string{}}
	ask := allow
	ask.Outcome = resolve.Ask
	for word, o := range map[string]*approval.Opened{
		"allow": {Outcome: resolve.Allow, Decision: allow, Binding: "<b>"},
		"granted": {
			Outcome:  resolve.Allow,
			Decision: ask,
			Binding:  "<b>",
			Grant:    &approval.Grant{ID: "grt_1", Call: resolve.Call{Args: resolve.Raw("{}")}},
		},
		"pending": {
			Outcome:  resolve.Ask,
			Decision: ask,
			Binding:  "<b>",
			Request:  &approval.Request{ID: "apr_1"},
			Shared:   true,
		},
		"deny": {
			Outcome:  resolve.Deny,
			Decision: ask,
			Binding:  "<b>",
			Request:  &approval.Request{ID: "apr_1"},
			Denied:   "cooling_down",
		},
	} {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		must(t, encoder.Encode(o))
		if want := []byte(`{"outcome":"` + word + `","decision":{"outcome":`); !bytes.HasPrefix(text.Bytes(), want) {
			t.Errorf("got %s, want %s first", text.Bytes(), want)
		}

		if !bytes.Contains(text.Bytes(), []byte(`"binding":"<b>"`)) {
			t.Errorf("%s: the encoder around it does not say what is escaped: %s", word, text.Bytes())
		}
		back := &approval.Opened{}
		if err := json.Unmarshal(text.Bytes(), back); err != nil || !reflect.DeepEqual(back, o) {
			t.Errorf("%s: got %+v, %v, want %+v", word, back, err, o)
		}
	}

	for _, wrong := range []string{
		`{}`,
		`{"outcome":""}`,
		`{"outcome":"granted"}`,
		`{"outcome":"allowed"}`,
		`{"outcome":"ask"}`,
		`{"outcome":1}`,
		`[]`,
	} {
		if err := json.Unmarshal([]byte(wrong), new(approval.Opened)); err == nil {
			t.Errorf("%s was read", wrong)
		}
	}
}
