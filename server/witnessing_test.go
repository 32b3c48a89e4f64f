package server_test

import (
	"crypto/rand"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/internal/testwait"
	"github.com/assent-dev/assent/store"
)

// shown is what another server sends about its log: the checkpoint and the proof that the
// log is consistent with an earlier size.
type shown struct {
	Checkpoint string        `json:"checkpoint"`
	PublicKey  string        `json:"public_key"`
	Since      int64         `json:"since,omitempty"`
	Proof      []ledger.Hash `json:"proof,omitempty"`
}

// otherLog is the ledger of another server, in memory.
type otherLog struct {
	t      *testing.T
	signer ledger.Signer
	hashes memoryHashes
}

type memoryHashes []ledger.Hash

func (m memoryHashes) ReadHashes(indexes []int64) ([]ledger.Hash, error) {
	out := make([]ledger.Hash, len(indexes))
	for i, index := range indexes {
		out[i] = m[index]
	}
	return out, nil
}

// grow adds entries to the log, which has size entries. It returns what the other server shows: the
// new checkpoint, with a proof from size since unless that is 0.
func (o *otherLog) grow(size, since int64, leaves ...string) string {
	o.t.Helper()
	all := make([][]byte, len(leaves))
	for i, leaf := range leaves {
		all[i] = []byte(leaf)
	}
	ext, err := ledger.Extend(size, o.hashes, all)
	must(o.t, err)
	o.hashes = append(o.hashes, ext.Hashes...)
	note, err := o.signer.Sign(ledger.Checkpoint{Origin: "assent/theirs", Size: ext.Size, Root: ext.Root})
	must(o.t, err)
	s := shown{Checkpoint: string(note), PublicKey: o.signer.PublicKey(), Since: since}
	if since > 0 {
		if s.Proof, err = ledger.ProveConsistency(ext.Size, since, o.hashes); err != nil {
			o.t.Fatal(err)
		}
	}
	text, err := json.Marshal(s)
	must(o.t, err)
	return string(text)
}

// TestAWitnessAnswersWithWhatItKeeps checks that only tokens of the same tenant that may
// show and ask get an answer.
func TestAWitnessAnswersWithWhatItKeeps(t *testing.T) {
	h := newHarness(t)
	them := h.token(store.Token{Name: "them", Scopes: []string{"witness"}})
	signer, _, err := ledger.GenerateKey("theirs.example", rand.Reader)
	must(t, err)
	other := &otherLog{t: t, signer: signer}
	newest := "/v1/witness?" + url.Values{"log": {"assent/theirs"}}.Encode()
	h.do("GET", newest, them, "").must(404)
	h.do("GET", "/v1/witness", them, "").must(400)

	h.do("POST", "/v1/witness", them, other.grow(0, 0, "a", "b")).must(200)
	if a := h.do("POST", "/v1/witness", them, other.grow(2, 0, "c")).must(200); a.str("reason") != "proof" ||
		a.get("size") != 2.0 {
		t.Errorf("without a proof: %s", a.text)
	}
	if a := h.do("POST", "/v1/witness", them, other.grow(3, 2)).must(200); a.str("reason") != "" ||
		a.get("size") != 3.0 ||
		a.str("public_key") != signer.PublicKey() {
		t.Errorf("with a proof: %s", a.text)
	}
	forked := &otherLog{t: t, signer: signer}
	if a := h.do("POST", "/v1/witness", them, forked.grow(0, 0, "a", "b", "x", "y")).must(200); a.str(
		"reason",
	) != "proof" {
		t.Errorf("another history: %s", a.text)
	}
	if a := h.do("POST", "/v1/witness", them, forked.grow(4, 3)).must(200); a.str("reason") != "contradicts" ||
		a.get("size") != 3.0 {
		t.Errorf("another history with a proof: %s", a.text)
	}
	if !strings.Contains(h.log.String(), "shows another history") {
		t.Error("no line of the log tells of it")
	}
	if a := h.do("GET", newest, them, "").must(200); a.get("size") != 3.0 || a.str("checkpoint") == "" ||
		a.str("log") != "assent/theirs" {
		t.Errorf("got %s", a.text)
	}

	good := other.grow(3, 0)
	for name, body := range map[string]string{
		"no note":          `{"checkpoint":"x","public_key":"y"}`,
		"another key":      strings.Replace(good, "theirs.example+", "ours.example+", 1),
		"a bad hash":       strings.TrimSuffix(good, "}") + `,"proof":["x"]}`,
		"too many hashes":  strings.TrimSuffix(good, "}") + `,"proof":["` + strings.Repeat(`x","`, 200) + `x"]}`,
		"a negative since": strings.TrimSuffix(good, "}") + `,"since":-1}`,
		"no key":           `{"checkpoint":"x"}`,
		"a field more":     strings.TrimSuffix(good, "}") + `,"size":3}`,
	} {
		if a := h.do("POST", "/v1/witness", them, body); a.status != 400 && a.status != 422 {
			t.Errorf("%s: %d %s", name, a.status, a.text)
		}
	}

	elsewhere := h.token(store.Token{Name: "elsewhere", Tenant: "lab", Scopes: []string{"witness"}})
	h.do("GET", newest, elsewhere, "").must(404)
	h.do("GET", newest, h.voter("mara"), "").must(200)
	h.do("GET", newest, h.runtime(), "").must(403)
	for _, token := range []string{h.runtime(), h.voter("mara"), h.admin()} {
		h.do("POST", "/v1/witness", token, good).must(403)
	}
	h.do("POST", "/v1/witness", "", good).must(401)
}

// TestOnlyAdministratorsLetALogBeginAnew also checks the entry in the ledger.
func TestOnlyAdministratorsLetALogBeginAnew(t *testing.T) {
	h := newHarness(t)
	them, admin := h.token(store.Token{Name: "them", Scopes: []string{"witness"}}), h.admin()
	signer, _, err := ledger.GenerateKey("theirs.example", rand.Reader)
	must(t, err)
	h.do("POST", "/v1/witness", them, (&otherLog{t: t, signer: signer}).grow(0, 0, "a", "b")).must(200)
	const forget = `{"log":"assent/theirs"}`
	h.do("POST", "/v1/witness/forget", them, forget).must(403)
	h.do("POST", "/v1/witness/forget", admin, `{}`).must(400)
	asked := h.do("POST", "/v1/witness/forget", admin, forget).must(202).request("request")
	h.approve(asked.ID, "ada")
	h.do("POST", "/v1/witness/forget", admin, forget).must(202) // one person alone is not enough
	early := (&otherLog{t: t, signer: signer}).grow(0, 0, "x")
	if a := h.do("POST", "/v1/witness", them, early); a.str("reason") == "" {
		t.Errorf("it begins anew already: %s", a.text)
	}
	h.approve(asked.ID, "abe")
	h.do("POST", "/v1/witness/forget", admin, forget).must(204)
	h.do("POST", "/v1/witness/forget", admin, forget).must(404)
	if a := h.do("POST", "/v1/witness", them, (&otherLog{t: t, signer: signer}).grow(0, 0, "x")).must(200); a.str(
		"reason",
	) != "" ||
		a.get("size") != 1.0 {
		t.Errorf("it does not begin anew: %s", a.text)
	}

	var told bool
	testwait.Until(t, "the ledger tells of it", func() bool {
		entries, err := h.store.Entries(t.Context(), "acme", 0, 100)
		for _, e := range entries {
			leaf, bad := ledger.ParseLeaf(e.Leaf)
			if told = told || bad == nil && leaf.Type == "witness_forgot" && leaf.Actor == "root"; err == nil {
				err = bad
			}
		}

		return err == nil && told
	})
}
