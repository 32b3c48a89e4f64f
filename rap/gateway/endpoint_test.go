package gateway

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/rap/peer"
)

func TestEndpoint(t *testing.T) {
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body := make([]byte, 100)
		n, _ := req.Body.Read(body) // its end comes with it
		switch {
		case bytes.Contains(body, []byte("fail")):
			http.Error(w, "secret", 500)
			return
		case bytes.Contains(body, []byte("text")):
			return
		case bytes.Contains(body, []byte("bytes")):
			body, n = []byte("\"\xff\""), 3
		}

		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body[:n])
	}))
	defer far.Close()
	op := must.Get(Endpoint(rap.Operation{Name: "look"}, peer.Config{URL: far.URL + "/api"}))(t)
	for args, want := range map[string]string{
		`{ "a":1}`:    `{ "a":1}`,
		`{"fail":1}`:  "answered 500",
		`{"text":1}`:  "the outcome is unknown",
		`{"bytes":1}`: "is not text",
	} {
		out, err := op.Run(t.Context(), rap.Job{Arguments: []byte(args)})
		var public *rap.PublicError
		if got := out.Text; err == nil && got != want ||
			err != nil && (!errors.As(err, &public) || !strings.Contains(public.Text, want)) {
			t.Errorf("%s: %q, %v", args, got, err)
		}
	}

	if _, err := Endpoint(op, peer.Config{URL: "ftp://far.example"}); err == nil {
		t.Error("taken")
	}
	if _, err := Endpoint(op, peer.Config{Allow: []string{far.URL}}); err == nil {
		t.Error("an endpoint without an address")
	}
}
