package rap_test

import (
	"net/http"
	"testing"
)

// confT40: the check of a call's status reads and changes nothing, and
// is about the caller's own calls alone. Nothing can be migrated.
func confT40(t *testing.T) {
	alpha, beta := newConfRuntime(t, "alpha"), newConfRuntime(t, "beta")
	h := confGatewayOf(t, []*confRuntime{alpha, beta})
	c, q := alpha.asked()
	for range 3 {
		if !alpha.alive(c.in.GroupID, c.in.ID) {
			t.Fatal("a call that waits for its user is not alive")
		}
	}
	for name, alive := range map[string]bool{
		"another caller": beta.alive(c.in.GroupID, c.in.ID),
		"another thread": alpha.alive(c.in.GroupID+"x", c.in.ID),
		"another id":     alpha.alive(c.in.GroupID, c.in.ID+"x"),
	} {
		if alive {
			t.Errorf("%s: alive", name)
		}
	}

	for _, path := range []string{"/migrate", "/migrate/"} {
		status, _ := alpha.tell(path, map[string]any{"session_id": c.in.GroupID, "destination_url": alpha.server.URL})
		if status != http.StatusNotFound {
			t.Errorf("%s: %d", path, status)
		}
	}

	c.picks(q, q.index(t, "once"))
	c.result()
	alpha.over(c.in.GroupID, c.in.ID)
	h.ran("write_file", 1)
}
