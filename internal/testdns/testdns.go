// Package testdns lets a test set what names resolve to. Only tests import it.
package testdns

import (
	"context"
	"net"
	"testing"
)

// Resolve makes every name resolve to the result of answer, through a real local DNS server. This
// affects the whole process until the test ends, so no other test may run in parallel.
func Resolve(t testing.TB, answer func() [4]byte) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for buf := make([]byte, 1500); ; {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(reply(buf[:n], answer()), from)
		}
	}()
	// A lookup that was given up may dial after the test. This dialer does not read DefaultResolver then.
	dialer := net.Dialer{Resolver: &net.Resolver{}}
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{
		PreferGo: true,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "udp", conn.LocalAddr().String())
		},
	}
	t.Cleanup(func() {
		net.DefaultResolver = before
		_ = conn.Close()
	})
}

// reply answers a question for an A record. For other questions it answers that there is no record.
func reply(query []byte, ip [4]byte) []byte {
	end := 12
	for query[end] != 0 {
		end += int(query[end]) + 1
	}
	question := query[12 : end+5]
	out := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
	if question[len(question)-3] == 1 {
		out[7] = 1
		out = append(append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4), ip[:]...)
	}
	return out
}
