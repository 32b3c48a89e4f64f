package cli

import (
	"bytes"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/ledger"
)

// A ledger can be whole and rightly signed, and still tell of what must not happen: then whoever runs the service wrote it.
func TestVerifyReadsWhatTheLedgerTells(t *testing.T) {
	signer, _, err := ledger.GenerateKey("acme.example", rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	record, err := ledger.Entry{
		Time: time.Unix(1, 0), Tenant: "default", Type: approval.EventConsumed, Subject: "apr_1", Actor: "bot",
		Facts: map[string]any{"agent": "a", "target": "tool t", "state": "consumed", "binding": "sha256:00", "revision": 0},
	}.Seal(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := ledger.Extend(0, nil, [][]byte{record.Leaf})
	if err != nil {
		t.Fatal(err)
	}
	note, err := signer.Sign(ledger.Checkpoint{Origin: ledger.Origin("default"), Size: 1, Root: tree.Root})
	if err != nil {
		t.Fatal(err)
	}
	var export, out bytes.Buffer
	w, err := ledger.NewWriter(&export, note, signer.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(record.Leaf, record.Openings); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	code := Assent{Streams: Streams{In: &export, Out: &out, Err: &out}}.Run([]string{"audit", "verify", "--public-key", signer.PublicKey(), "-"})
	if code != ExitNo || !strings.Contains(out.String(), "NOT VERIFIED: entry 0: apr_1") || !strings.Contains(out.String(), "the signatures hold") {
		t.Errorf("exit %d\n%s", code, out.String())
	}
}
