package mcp_test

import (
	"testing"
	"time"

	"github.com/assent-dev/assent/mcp"
	"github.com/assent-dev/assent/mcp/wire"
)

// testM67: internal/peers/mcp waits with the real client of TypeScript, whose
// limit is 60 seconds.
func testM67(t *testing.T) {
	for name, test := range map[string]func(*row, *client){
		"with progress": func(r *row, c *client) {
			c.send(request("7", wire.MethodCall,
				`"name":"write_file","arguments":`+write+`,"_meta":{"progressToken":7}`))
			for range 50 { // each of them sets the limit of the client back
				c.expect(c.hear(), `"notifications/progress"`)
			}
			r.approve()
			_, answer := c.hearUntil(`"id":7`)
			c.expect(answer, "done")
			r.ran(1)
		},
		"gives up": func(r *row, c *client) {
			c.sendCall(7, "write_file", write)
			r.pending(t)
			c.cancel(7)
			r.left(t)
			r.approve()
			r.settle(t)
			r.ran(0) // no client waits for it
			c.sendCall(8, "write_file", write)
			answer := c.hear()
			c.expect(answer, `"id":8`)
			c.expect(answer, "done")
			r.ran(1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRow(t, script("legacy"), func(cfg *mcp.Config) {
				long(cfg)
				cfg.Heartbeat = 10 * time.Millisecond
			})
			test(r, r.connect(t))
		})
	}
}
