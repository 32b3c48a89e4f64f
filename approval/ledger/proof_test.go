package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assent-dev/assent/internal/golden"
)

func (l *testLog) proof(t testing.TB, index int) Proof {
	t.Helper()
	hashes, err := ProveInclusion(l.size(), int64(index), l)
	must(t, err)
	r := l.records[index]
	return Proof{int64(index), r.Leaf, r.Openings, hashes, testSigner(t).PublicKey(), sign(t, l.checkpoint())}
}

func marshal(t testing.TB, p Proof) []byte {
	t.Helper()
	b, err := json.MarshalIndent(p, "", "  ")
	must(t, err)
	return append(b, '\n')
}

func TestProofGolden(t *testing.T) {
	golden.Equal(t, "proof.json", string(marshal(t, newLog(t, 5).proof(t, 2))))
}

func TestVerifyProof(t *testing.T) {
	key := testSigner(t).PublicKey()
	for size := 1; size < 9; size++ {
		l := newLog(t, size)
		for index := range size {
			p := l.proof(t, index)
			var again Proof
			if err := json.Unmarshal(marshal(t, p), &again); err != nil || !reflect.DeepEqual(again, p) {
				t.Fatalf("got %+v, %v, want %+v", again, err, p)
			}
			if index%2 == 1 {
				p.Openings = nil
			}
			got, err := VerifyProof(marshal(t, p), key)
			must(t, err)
			if got.Index != int64(index) || got.Leaf.Subject != testEntry(index).Subject || got.Redacted != index%2*2 ||
				len(got.Openings) != 2-got.Redacted || got.Checkpoint != l.checkpoint() ||
				got.PublicKey != key ||
				!got.KeyPinned {
				t.Errorf("got %+v", got)
			}
		}
	}

	got, err := VerifyProof(marshal(t, newLog(t, 2).proof(t, 1)), "")
	if err != nil || got.KeyPinned {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestVerifyProofRefuses(t *testing.T) {
	l := newLog(t, 5)
	tenant := l.checkpoint()
	tenant.Origin = Origin("other")
	for name, tt := range map[string]struct {
		change func(*Proof)
		index  int64
		want   string
	}{
		"leaf":       {func(p *Proof) { p.Leaf = l.records[1].Leaf }, 2, "does not hold this entry at index 2"},
		"index":      {func(p *Proof) { p.Index = 3 }, 3, "does not hold this entry at index 3"},
		"high index": {func(p *Proof) { p.Index = math.MaxInt64 }, math.MaxInt64, "has no index"},
		"hashes":     {func(p *Proof) { p.Hashes[0] = Hash{} }, 2, "does not hold this entry"},
		"no hashes":  {func(p *Proof) { p.Hashes = nil }, 2, "does not hold this entry"},
		"more":       {func(p *Proof) { p.Hashes = append(p.Hashes, Hash{}) }, 2, "does not hold this entry"},
		"openings":   {func(p *Proof) { p.Openings = l.records[1].Openings }, 2, "the opening of args does not match"},
		"size":       {func(p *Proof) { p.Checkpoint = sign(t, newLog(t, 4).checkpoint()) }, 2, "the log of 4 entries"},
		"tenant":     {func(p *Proof) { p.Checkpoint = sign(t, tenant) }, 2, "another tenant"},
		"signature": {func(p *Proof) {
			p.Checkpoint = []byte(corrupt(string(p.Checkpoint), 20))
		}, -1, "bad signature"},
		"key": {func(p *Proof) { p.PublicKey = namedSigner(t, "a", 1).PublicKey() }, -1, "wrong key"},
	} {
		t.Run(name, func(t *testing.T) {
			p := l.proof(t, 2)
			tt.change(&p)
			_, err := VerifyProof(marshal(t, p), testSigner(t).PublicKey())
			refused(t, err, tt.index, tt.want)
		})
	}

	junk := bare(t, 2)
	_, err := VerifyProof(marshal(t, junk.proof(t, 1)), "")
	refused(t, err, 1, "edited leaf")
}

func TestProofIsReadStrictly(t *testing.T) {
	text, err := newLog(t, 5).proof(t, 2).MarshalJSON()
	must(t, err)
	hash := newLog(t, 5).proof(t, 2).Hashes[0].String()
	for name, tt := range map[string]struct{ from, to, want string }{
		"nothing":       {string(text), "", "line 1"},
		"format":        {"proof/1", "proof/2", `"format" is not`},
		"duplicate key": {`"index":2`, `"index":2,"index":2`, "duplicate key"},
		"unknown key":   {`"index":2`, `"x":1,"index":2`, `unexpected member "x"`},
		"index":         {`"index":2`, `"index":2.5`, "index: "},
		"leaf":          {`"leaf":`, `"leaf":1,"x":`, "unexpected member"},
		"key":           {`"public_key":"`, `"public_key":null,"x":"`, "unexpected member"},
		"key's kind":    {`"` + testSigner(t).PublicKey() + `"`, `1`, "must be strings"},
		"openings":      {`"openings":{`, `"openings":{"x":1,`, "the opening of x"},
		"hashes":        {`"hashes":["` + hash, `"hashes":["AAAA`, "hashes, 0: "},
		"hash's kind":   {`"hashes":["` + hash + `"`, `"hashes":[1`, "hashes, 0: "},
		"many hashes":   {`"hashes":[`, `"hashes":[` + strings.Repeat(`"",`, 64), "at most 64"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := strings.Replace(string(text), tt.from, tt.to, 1)
			if changed == string(text) {
				t.Fatal("the case changes nothing")
			}
			_, err := VerifyProof([]byte(changed), "")
			refused(t, err, -1, tt.want)
		})
	}

	_, err = Proof{Openings: []byte("x")}.MarshalJSON()
	fails(t, err, "write a proof: openings")
	_, err = Proof{Leaf: []byte("\xff")}.MarshalJSON()
	fails(t, err, "write a proof: ")
}

// TestVerifyProofDetectsEveryByte: every changed byte of a proof is detected, unless the change
// only affects insignificant white space.
func TestVerifyProofDetectsEveryByte(t *testing.T) {
	file := marshal(t, newLog(t, 5).proof(t, 2))
	key := testSigner(t).PublicKey()
	want, err := VerifyProof(file, key)
	must(t, err)
	rapid.Check(t, func(rt *rapid.T) {
		i := rapid.IntRange(0, len(file)-1).Draw(rt, "at")
		changed := slices.Replace(slices.Clone(file), i, i+1, rapid.SliceOfN(rapid.Byte(), 0, 2).Draw(rt, "bytes")...)
		got, err := VerifyProof(changed, key)
		var problem *VerifyError
		if err == nil && !reflect.DeepEqual(got, want) || err != nil && !errors.As(err, &problem) {
			rt.Fatalf("got %+v, %v", got, err)
		}
		if err == nil && !bytes.Equal(bytes.Join(bytes.Fields(changed), nil), bytes.Join(bytes.Fields(file), nil)) {
			rt.Fatalf("changed at %d, and verifies", i)
		}
	})
}
