package openapi_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/server/openapi"
	"github.com/assent-dev/assent/store"
)

// withoutError returns the codes without a domain error: those of the exchange itself, and
// those whose errors carry a field, a limit or a file (approval.InputError,
// approval.LimitError, plans.UnusableError).
func withoutError() []openapi.Code {
	return []openapi.Code{
		openapi.CodeBadRequest,
		openapi.CodeUnauthenticated,
		openapi.CodeTokenExpired,
		openapi.CodeTokenRevoked,
		openapi.CodeMissingScope,
		openapi.CodeAgentNotAllowed,
		openapi.CodeNoPerson,
		openapi.CodeMethodNotAllowed,
		openapi.CodeTooLarge,
		openapi.CodeUnsupportedMediaType,
		openapi.CodeIfMatchRequired,
		openapi.CodeInternal,
		openapi.CodeWrongHost,
		openapi.CodeInvalid,
		openapi.CodeTooMany,
		openapi.CodeAgentUnusable,
	}
}

// codes returns the codes in the contract.
func codes(t *testing.T) []openapi.Code {
	t.Helper()
	doc, findings := yamldoc.Parse("openapi.yaml", []byte(openapi.Document()), yamldoc.Limits{})
	if doc == nil {
		t.Fatal(findings)
	}
	at := doc.Root.Any()
	for _, key := range []string{"components", "schemas", "Code", "enum"} {
		at = at.(map[string]any)[key]
	}
	var out []openapi.Code
	for _, code := range at.([]any) {
		out = append(out, openapi.Code(code.(string)))
	}

	return out
}

// TestEveryCode checks that exactly the codes of the contract have a status and a title.
func TestEveryCode(t *testing.T) {
	known := codes(t)
	if meanings := openapi.Meanings(); len(known) != len(meanings) {
		t.Errorf("openapi.yaml has %d codes, the table %d", len(known), len(meanings))
	}
	for _, code := range known {
		m := openapi.MeaningOf(code)
		if m.Code != code || http.StatusText(m.Status) == "" || m.Title == "" || !m.Next.Valid() {
			t.Errorf("%s: got %+v", code, m)
		}
	}
}

// TestCodesAndErrors checks that codes and errors map to each other one to one.
func TestCodesAndErrors(t *testing.T) {
	seen := map[error]openapi.Code{}
	for _, code := range codes(t) {
		m := openapi.MeaningOf(code)
		if bare := slices.Contains(withoutError(), code); bare != (m.Err == nil) {
			t.Errorf("%s: stands for the error %v", code, m.Err)
		}
		if m.Err == nil {
			continue
		}
		if before, ok := seen[m.Err]; ok {
			t.Errorf("%v has the codes %s and %s", m.Err, before, code)
		}
		seen[m.Err] = code
		back, ok := openapi.MeaningOfError(fmt.Errorf("wrapped: %w", m.Err))
		if !ok || back.Code != code {
			t.Errorf("%v: got the code %q, want %s", m.Err, back.Code, code)
		}
	}

	if m, ok := openapi.MeaningOfError(errors.New("anything else")); ok {
		t.Errorf("an error that nobody knows is %+v", m)
	}
}

// TestTamperingComesFirst checks that tampering counts before everything else in an error.
func TestTamperingComesFirst(t *testing.T) {
	for _, m := range openapi.Meanings() {
		if m.Err == nil {
			continue
		}
		got, _ := openapi.MeaningOfError(errors.Join(m.Err, store.ErrTampered))
		if got.Code != openapi.CodeTampered {
			t.Errorf("%s and tampering: got %s", m.Code, got.Code)
		}
	}
}
