package ledger_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/assent-dev/assent/approval/ledger"
)

// hashes stores hashes like the table of a store.
type hashes []ledger.Hash

func (h hashes) ReadHashes(indexes []int64) ([]ledger.Hash, error) {
	out := make([]ledger.Hash, len(indexes))
	for i, index := range indexes {
		out[i] = h[index]
	}
	return out, nil
}

// A vote is sealed, appended, signed, redacted, exported and verified.
func Example() {
	signer, _, err := ledger.GenerateKey("assent.example", rand.Reader)
	if err != nil {
		panic(err)
	}
	vote := ledger.Entry{
		Time:    time.Now(),
		Tenant:  "default",
		Type:    "vote",
		Subject: "req-1",
		Actor:   "ann",
		Facts:   map[string]any{"approve": true},
		Sealed:  map[string]string{"reason": "known customer"},
	}
	record, err := vote.Seal(rand.Reader)
	if err != nil {
		panic(err)
	}
	log, err := ledger.Extend(0, hashes{}, [][]byte{record.Leaf})
	if err != nil {
		panic(err)
	}
	checkpoint, err := signer.Sign(ledger.Checkpoint{
		Origin: ledger.Origin("default"),
		Size:   log.Size,
		Root:   log.Root,
	})
	if err != nil {
		panic(err)
	}
	if record.Openings, err = ledger.Redact(record.Openings, "reason"); err != nil {
		panic(err)
	}

	var file bytes.Buffer
	export, err := ledger.NewWriter(&file, checkpoint, signer.PublicKey())
	if err != nil {
		panic(err)
	}
	if err := export.Write(record.Leaf, record.Openings); err != nil {
		panic(err)
	}
	if err := export.Close(); err != nil {
		panic(err)
	}
	edited := bytes.Replace(file.Bytes(), []byte("ann"), []byte("bob"), 1)

	report, err := ledger.Verify(&file, ledger.VerifyOptions{PublicKey: signer.PublicKey()})
	fmt.Println(report.Entries, "entry,", report.Redacted, "redacted,", err)
	_, err = ledger.Verify(bytes.NewReader(edited), ledger.VerifyOptions{PublicKey: signer.PublicKey()})
	fmt.Println(err.Error()[:len("entry 0: edited leaf")])
	// Output:
	// 1 entry, 1 redacted, <nil>
	// entry 0: edited leaf
}
