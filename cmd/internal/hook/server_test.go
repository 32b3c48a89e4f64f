package hook

import (
	"encoding/json"
	"os"
	"testing"
)

// TestServersOfTools reads the table that the adapters for Python and
// TypeScript are held to as well.
func TestServersOfTools(t *testing.T) {
	text, err := os.ReadFile("testdata/servers.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct{ Tool, Name, Source, Server, Own string }
	if err := json.Unmarshal(text, &rows); err != nil || len(rows) == 0 {
		t.Fatal(err)
	}
	for _, row := range rows {
		server, own, known := serverOf(row.Tool, provenance{row.Name, row.Source})
		if known != (row.Own != "") || known && (server != row.Server || own != row.Own) {
			t.Errorf("%+v: got %q of %q, known: %t", row, own, server, known)
		}
	}
}
