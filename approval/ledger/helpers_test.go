package ledger

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const testTenant = "default"

// fixed returns a source of random bytes that are the same in every run.
func fixed(seed byte) io.Reader {
	return strings.NewReader(strings.Repeat(string(rune('A'+seed)), 4096))
}

func testSigner(t testing.TB) Signer {
	t.Helper()
	return namedSigner(t, "assent.example", 0)
}

func namedSigner(t testing.TB, name string, seed byte) Signer {
	t.Helper()
	s, _, err := GenerateKey(name, fixed(seed))
	must(t, err)
	return s
}

// memory stores the hashes of a log and counts reads.
type memory struct {
	hashes []Hash
	calls  int
	read   int
}

func (m *memory) ReadHashes(indexes []int64) ([]Hash, error) {
	m.calls++
	m.read += len(indexes)
	var out []Hash
	for _, i := range indexes {
		if i < 0 || i >= int64(len(m.hashes)) {
			return nil, fmt.Errorf("no hash %d", i)
		}
		out = append(out, m.hashes[i])
	}

	return out, nil
}

// testLog is a log as a store keeps it.
type testLog struct {
	memory
	records []Record
	root    Hash
}

func (l *testLog) size() int64 { return int64(len(l.records)) }

func (l *testLog) extend(t testing.TB, records ...Record) {
	t.Helper()
	leaves := make([][]byte, len(records))
	for i, r := range records {
		leaves[i] = r.Leaf
	}
	e, err := Extend(l.size(), l, leaves)
	must(t, err)
	if e.First != int64(len(l.hashes)) {
		t.Fatalf("hashes begin at %d, want %d", e.First, len(l.hashes))
	}
	l.hashes = append(l.hashes, e.Hashes...)
	l.records = append(l.records, records...)
	if e.Size != l.size() {
		t.Fatalf("size %d, want %d", e.Size, l.size())
	}
	l.root = e.Root
}

func (l *testLog) checkpoint() Checkpoint {
	return Checkpoint{Origin(testTenant), l.size(), l.root}
}

func testEntry(i int) Entry {
	return Entry{
		Time:    time.Date(2026, 11, 21, 16, 0, i, 123456789, time.FixedZone("", 3600)),
		Tenant:  testTenant,
		Type:    "vote",
		Subject: fmt.Sprintf("req-%d", i),
		Actor:   "ann@example.com",
		Facts:   map[string]any{"stage": i % 3, "approve": i%2 == 0, "groups": []any{"risk", "größe <&>"}},
		Sealed:  map[string]string{"args": fmt.Sprintf(`{"amount":%d}`, i), "reason": "because\n\"" + fmt.Sprint(i)},
	}
}

func seal(t testing.TB, e Entry, rand io.Reader) Record {
	t.Helper()
	r, err := e.Seal(rand)
	must(t, err)
	return r
}

func newLog(t testing.TB, entries int) *testLog {
	t.Helper()
	l := &testLog{root: emptyRoot()}
	for i := range entries {
		l.extend(t, seal(t, testEntry(i), fixed(byte(i))))
	}
	return l
}

func sign(t testing.TB, c Checkpoint) []byte {
	t.Helper()
	signed, err := testSigner(t).Sign(c)
	must(t, err)
	return signed
}

// export writes these records with a checkpoint of the log.
func export(t testing.TB, signed []byte, records []Record) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, signed, testSigner(t).PublicKey())
	must(t, err)
	for _, r := range records {
		must(t, w.Write(r.Leaf, r.Openings))
	}
	must(t, w.Close())
	return out.Bytes()
}

func (l *testLog) export(t testing.TB) []byte {
	t.Helper()
	return export(t, sign(t, l.checkpoint()), l.records)
}

// forge writes an export that Writer would refuse, as a forger could who has our code but not our
// key.
func forge(t testing.TB, signed []byte, records []Record) []byte {
	t.Helper()
	c, err := OpenCheckpoint(signed, testSigner(t).PublicKey())
	must(t, err)
	out := appendHeader(nil, c.Origin, testSigner(t).PublicKey(), string(signed))
	for i, r := range records {
		o, err := ParseOpenings(r.Openings)
		must(t, err)
		out = appendEntry(out, int64(i), LeafHash(r.Leaf), string(r.Leaf), o)
	}

	return appendEnd(out, int64(len(records)))
}

func verify(t testing.TB, file []byte) (Report, error) {
	t.Helper()
	return Verify(bytes.NewReader(file), VerifyOptions{PublicKey: testSigner(t).PublicKey()})
}

// refused expects a *VerifyError about this entry whose problem contains the words.
func refused(t testing.TB, err error, index int64, words string) {
	t.Helper()
	problem, ok := err.(*VerifyError)
	switch {
	case !ok:
		t.Errorf("got %v, want a *VerifyError", err)
	case problem.Index != index || !strings.Contains(problem.Problem, words):
		t.Errorf("got entry %d: %s\nwant entry %d: …%s…", problem.Index, problem.Problem, index, words)
	}
}

// fails expects an error that contains the words.
func fails(t testing.TB, err error, words string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("got %v, want …%s…", err, words)
	}
}

func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
