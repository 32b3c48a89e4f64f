package storetest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	stores "github.com/assent-dev/assent/store"
)

// signer returns the signer of a name. The same name has the same key.
func signer(name string) ledger.Signer {
	seed := sha256.Sum256([]byte(name))
	s, _, err := ledger.GenerateKey(name, bytes.NewReader(seed[:]))
	if err != nil {
		panic(err) // names here are fit for keys
	}
	return s
}

// keyOf returns the key of a name.
func keyOf(name string) stores.Key {
	secret := sha256.Sum256([]byte("secret of " + name))
	return stores.Key{Public: signer(name).PublicKey(), Secret: secret[:]}
}

// ours is the name of the key that the suite uses.
const ours = "storetest.example"

// Trust returns the configuration with which the suite opens stores.
func Trust() stores.Trust { return stores.Trust{Key: keyOf(ours)} }

// Keys runs the suite of the binding of a store to its key.
func Keys(t *testing.T, place func(t *testing.T) Place) {
	for name, test := range map[string]func(*testing.T, Place){
		"another key":                  anotherKey,
		"at once":                      boundAtOnce,
		"rotation":                     rotation,
		"rotated elsewhere":            rotatedElsewhere,
		"rotation of what was changed": rotationRefused,
		"filled without a key":         withoutKey,
		"codes taken away":             codesRemoved,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, place(t))
		})
	}
}

func anotherKey(t *testing.T, p Place) {
	ctx := t.Context()
	s := p.open(t, Trust())
	equal(t, must(s.Identity(ctx))(t).Empty, true)
	opened(t, s, 1)
	id := must(s.Identity(ctx))(t)
	equal(t, id.Empty, false)
	equal(t, id.PublicKey, signer(ours).PublicKey())
	ok(t, s.Close())
	for given, says := range map[string]string{
		"":              "give that key",
		"other.example": "mount that key, or run `assent key rotate`",
	} {
		trust := stores.Trust{}
		if given != "" {
			trust.Key = keyOf(given)
		}
		err := second(p.Open(trust))
		refused(t, err, stores.ErrKey)
		if !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), signer(ours).PublicKey()) {
			t.Fatalf("%v does not say %q", err, says)
		}
	}

	s = p.one(t, Trust())
	ok(t, readRequest(ctx, s))
	again := must(s.Identity(ctx))(t)
	equal(t, again.ID, id.ID)
}

// boundAtOnce checks that of replicas that start together with different keys, one binds
// the store and the others are refused.
func boundAtOnce(t *testing.T, p Place) {
	var bound []stores.Store
	opened := make([]stores.Store, 4)
	errs := crowd(4, func(i int) (err error) {
		opened[i], err = p.Open(stores.Trust{Key: keyOf("replica" + number(i) + ".example")})
		return err
	})
	for i, err := range errs {
		if err == nil {
			bound = append(bound, opened[i])
			continue
		}
		refused(t, err, stores.ErrKey)
	}

	equal(t, len(bound), 1)
	ok(t, bound[0].Close())
}

// next returns the rotation from the suite's key to that of next.example.
func next() stores.Rotation {
	return stores.Rotation{
		Key:    keyOf("next.example"),
		Sign:   ledger.Both(signer(ours), signer("next.example")).Sign,
		Reseal: func(_, key string, value []byte) ([]byte, error) { return append([]byte(key+" "), value...), nil },
	}
}

// rotation checks that rows and logs continue under the next key, and that the checkpoint
// between them is signed by both.
func rotation(t *testing.T, p Place) {
	ctx := t.Context()
	dir := t.TempDir()
	trust, _ := remembering(t, dir)
	s := p.open(t, trust)
	everyKind(t, s)
	appendEntries(t, s, "other", 3)
	must(s.Seal(ctx, 2, signer(ours).Sign))(t)
	ok(t, s.Rotate(ctx, next()))
	appendEntries(t, s, tenant, 2) // the same process goes on
	must(s.Seal(ctx, 100, signer("next.example").Sign))(t)
	ok(t, s.Close())
	refused(t, second(p.Open(Trust())), stores.ErrKey)
	trust, _ = remembering(t, dir)
	trust.Key = keyOf("next.example")
	s = p.one(t, trust)
	ok(t, s.Verify(ctx))
	for _, read := range readers() {
		ok(t, read(ctx, s))
	}

	equal(t, string(must(s.Record(ctx, "calls", "a"))(t).Value), "a a")
	appendEntries(t, s, tenant, 2)
	must(s.Seal(ctx, 100, signer("next.example").Sign))(t)
	for _, of := range []string{tenant, "other"} {
		notes := must(s.Handovers(ctx, of))(t)
		equal(t, len(notes), 1)
		c := must(ledger.OpenCheckpoint(notes[0], signer(ours).PublicKey()))(t)
		equal(t, must(ledger.OpenCheckpoint(notes[0], signer("next.example").PublicKey()))(t), c)
		last := must(s.Leaves(ctx, of, c.Size-1, 1))(t)
		leaf := must(ledger.ParseLeaf(last[0].Leaf))(t)
		equal(t, leaf.Type, approval.EventKeyRotated)
		size, note, err := s.Checkpoint(ctx, of)
		ok(t, err)
		now := must(ledger.OpenCheckpoint(note, signer("next.example").PublicKey()))(t)
		equal(t, now.Size, size)
		proof := must(ledger.ProveConsistency(size, c.Size, s.Hashes(ctx, of)))(t)
		ok(t, ledger.CheckConsistency(proof, size, now.Root, c.Size, c.Root))
	}
}

// rotatedElsewhere checks that a process with the old key can write nothing any more.
func rotatedElsewhere(t *testing.T, p Place) {
	ctx := t.Context()
	a, b := p.one(t, Trust()), p.one(t, Trust())
	opened(t, b, 1)
	ok(t, a.Rotate(ctx, next()))
	refused(t, inserting(b, 2), stores.ErrKey)
	refused(t, b.SetValue(ctx, "session", "k", nil, epoch()), stores.ErrKey)
	refused(t, second(b.PutRecord(ctx, document("a"))), stores.ErrKey)
	refused(t, b.Ping(ctx), stores.ErrKey)
	refused(t, readRequest(ctx, b), stores.ErrKey)
	equal(t, b.Integrity().Alarms, 0)
	appendEntries(t, a, tenant, 1)
	refused(t, second(b.Seal(ctx, 10, signature)), stores.ErrKey)
	ok(t, readRequest(ctx, a))
}

// rotationRefused checks that a forged row gets no new code, and nothing changes.
func rotationRefused(t *testing.T, p Place) {
	s := p.one(t, Trust())
	everyKind(t, s)
	p.Exec(`UPDATE tokens SET person = 'eve'`)
	tampered(t, s.Rotate(t.Context(), next()))
	refused(t, second(p.Open(stores.Trust{Key: keyOf("next.example")})), stores.ErrKey)
	appendEntries(t, s, tenant, 1)
	ok(t, sealing(t.Context(), s))
}

// withoutKey checks that a store which was filled without a key is refused with one.
func withoutKey(t *testing.T, p Place) {
	s := p.open(t, stores.Trust{})
	stored(t, s, put(t, s, document("a")))
	ok(t, s.Close())
	refusedWithoutKey(t, second(p.Open(Trust())))
	ok(t, second(p.Open(stores.Trust{})))
}

func refusedWithoutKey(t *testing.T, err error) {
	t.Helper()
	refused(t, err, stores.ErrKey)
	var wrong *stores.KeyError
	if !errors.As(err, &wrong) || wrong.Bound != "" || !strings.Contains(err.Error(), "restore a backup") {
		t.Fatal(err)
	}
}

// codesRemoved removes all codes, so that the store looks like one that was filled without a
// key. It is refused with and without a watermark.
func codesRemoved(t *testing.T, p Place) {
	dir := t.TempDir()
	trust, _ := remembering(t, dir)
	s := p.open(t, trust)
	opened(t, s, 1)
	must(s.Seal(t.Context(), 10, signer(ours).Sign))(t)
	ok(t, s.Close())
	p.Exec(`DELETE FROM periods`)
	trust, _ = remembering(t, dir)
	refusedWithoutKey(t, second(p.Open(trust)))
	refusedWithoutKey(t, second(p.Open(Trust())))
}
