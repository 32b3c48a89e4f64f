package inbox_test

import (
	"net/http"
	"testing"
)

func TestEveryPageAnswers(t *testing.T) {
	h := open(t)
	r := h.fill()
	b := h.browser("carol")
	for _, path := range []string{
		"/",
		"/?tab=open",
		"/?tab=decided",
		"/queue",
		"/requests/" + r.ID,
		"/grants",
		"/grants?all=1",
		"/ledger",
		"/ledger?subject=" + r.ID,
		"/activity",
		"/agents",
		"/activity?days=30",
		"/deliveries",
		"/deliveries?state=waiting",
		"/freeze",
	} {
		if p := b.get(path); p.status != http.StatusOK {
			t.Errorf("%s: %d %s", path, p.status, p.text())
		}
	}
}
