package upstream_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/assent-dev/assent/mcp/upstream"
)

// What a failure says reaches logs, the ledger and the client's model.
func TestAFailureNamesNoSecretOfTheAddress(t *testing.T) {
	t.Parallel()
	h := newSite(t, "modern", func(http.ResponseWriter, string, int) {
		panic(http.ErrAbortHandler) // the connection breaks
	})
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
