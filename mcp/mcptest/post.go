package mcptest

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// Ask sends a request to a gateway as the caller desk. headers contains
// names, each followed by its value. The body of the answer is closed when the test ends.
func Ask(
	ctx context.Context, t testing.TB, c *http.Client, method, url, body string, headers ...string,
) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer desk")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}

	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}
