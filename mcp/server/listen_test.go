package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/mcp/server"
)

func TestWhoListensIsTold(t *testing.T) {
	t.Parallel()
	h := newEcho()
	d := connect(t, h, server.Config{Grace: time.Hour})
	d.send(modern(
		"subscriptions/listen",
		`"notifications":{"resourceSubscriptions":["file:///a","file:///secret"]},`,
	))
	want := `"notifications":{"resourceSubscriptions":["file:///a"]}`
	if got := d.receive(); !strings.Contains(got, want) {
		t.Errorf("heard %s, expected %s first", got, want)
	}
	want = `"uri":"file:///a","_meta":{"io.modelcontextprotocol/subscriptionId":1}`
	if got := d.receive(); !strings.Contains(got, want) {
		t.Errorf("heard %s, expected %s", got, want)
	}
	_ = d.in.Close() // the grace is for requests that work
	if got := d.receive(); !strings.Contains(got, `"resultType":"complete"`) {
		t.Errorf("heard %s at the end", got)
	}
	if err := <-d.ended; err != nil {
		t.Error(err)
	}
	if got := <-h.began; got != "unheard file:///a" {
		t.Errorf("%s", got)
	}
}

func TestALegacyClientSubscribesOnceAndUntilItHasGone(t *testing.T) {
	t.Parallel()
	h := newEcho()
	d := connect(t, h, server.Config{})
	d.expect(opening, `"result"`)
	subscribe := func(method, uri string) string {
		return `{"jsonrpc":"2.0","id":2,"method":"resources/` + method + `","params":{"uri":"` + uri + `"}}`
	}
	d.expect(subscribe("subscribe", "file:///a"), "notifications/initialized")
	d.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	d.expect(subscribe("subscribe", "file:///secret"), "-32602")
	d.expect(subscribe("subscribe", ""), "-32602")
	d.send(subscribe("subscribe", "file:///a"))
	both := d.receive() + d.receive()
	if !strings.Contains(both, `"result":{}`) || !strings.Contains(both, "resources/updated") {
		t.Errorf("heard %s", both)
	}
	d.expect(subscribe("subscribe", "file:///a"), `"result":{}`) // and is told nothing twice
	d.expect(subscribe("unsubscribe", "file:///a"), `"result":{}`)
	if got := <-h.began; got != "unheard file:///a" {
		t.Errorf("%s", got)
	}
	d.send(subscribe("subscribe", "file:///b"))
	d.receive()
	d.receive()
	_ = d.in.Close()
	if got := <-h.began; got != "unheard file:///b" {
		t.Errorf("%s", got)
	}
}
