package upstream_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/assent-dev/assent/mcp/upstream"
)

// What a failure says reaches logs, the ledger and the client's model.
func TestAFailureNamesNoSecretOfTheAddress(t *testing.T) {
	t.Parallel()
	s := &site{era: "modern", called: func(w http.ResponseWriter, _ string, _ int) {
		panic(http.ErrAbortHandler) // the connection breaks
	}}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	u := reach(t, h.URL+"/mcp?key=geheim", nil)
	_, err := call(t.Context(), u, "write", nil)
	if err == nil || strings.Contains(err.Error(), "geheim") {
		t.Errorf("it says %v", err)
	}
	h.Close()
	gone := reach(t, h.URL+"/mcp?key=geheim", func(c *upstream.Config) { c.Era = upstream.Modern })
	if _, err = call(t.Context(), gone, "write", nil); err == nil || strings.Contains(err.Error(), "geheim") {
		t.Errorf("it says %v", err)
	}
}
