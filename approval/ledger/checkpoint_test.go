package ledger

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/mod/sumdb/note"

	"github.com/assent-dev/assent/internal/golden"
)

func TestCheckpoint(t *testing.T) {
	s := testSigner(t)
	for _, size := range []int{0, 1, 5} {
		c := bare(t, size).checkpoint()
		signed := sign(t, c)
		got, err := OpenCheckpoint(signed, s.PublicKey())
		if err != nil || got != c {
			t.Errorf("got %+v, %v, want %+v", got, err, c)
		}
	}
}

func TestCheckpointGolden(t *testing.T) {
	golden.Equal(t, "checkpoint.txt", string(sign(t, bare(t, 5).checkpoint())))
}

func TestKeys(t *testing.T) {
	s, secret, err := GenerateKey("assent.example", fixed(0))
	must(t, err)
	again, err := ParseSigner(secret)
	if err != nil || again.PublicKey() != s.PublicKey() {
		t.Errorf("got %s, %v, want %s", again.PublicKey(), err, s.PublicKey())
	}
	if _, public, _ := note.GenerateKey(fixed(0), "assent.example"); s.PublicKey() != public {
		t.Errorf("got %s, want %s", s.PublicKey(), public)
	}
	key := secret[strings.LastIndex(secret, "+"):]
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if strings.Contains(fmt.Sprintf(format, s), key) {
			t.Errorf("%s prints the secret", format)
		}
	}
	for _, name := range []string{"", "two words", "a+b", "\xff"} {
		_, _, err := GenerateKey(name, fixed(0))
		fails(t, err, "the name ")
	}
	gone := errors.New("no entropy")
	if _, _, err := GenerateKey("a", iotest.ErrReader(gone)); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func TestParseSignerRefuses(t *testing.T) {
	_, secret, err := GenerateKey("assent.example", fixed(0))
	must(t, err)
	for _, bad := range []string{
		"",
		"PRIVATE+KEY+a+b",
		secret[1:],
		secret[:len(secret)-1],
		secret + "A",
		secret + "\n",
		secret[:len(secret)-4] + "\n" + secret[len(secret)-4:],
		strings.Replace(secret, "example", "other", 1),
	} {
		_, err := ParseSigner(bad)
		fails(t, err, "not a secret key")
		if strings.Contains(err.Error(), secret[60:]) {
			t.Errorf("the error shows the secret: %v", err)
		}
	}

	_, err = Signer{}.Sign(bare(t, 1).checkpoint())
	fails(t, err, "no key")
}

// TestParsePublished: a published key that is not the secret's is refused at once, or signs nothing.
func TestParsePublished(t *testing.T) {
	signer, secret, err := GenerateKey("host", fixed(0))
	must(t, err)
	other, _, err := GenerateKey("host", fixed(1))
	must(t, err)
	point := bare(t, 1).checkpoint()
	good, ok := ParsePublished(secret, signer.PublicKey())
	if !ok || good.PublicKey() != signer.PublicKey() || good.Check() != nil {
		t.Fatalf("%v, %v", ok, good.Check())
	}
	want, err := signer.Sign(point)
	must(t, err)
	if got, err := good.Sign(point); string(got) != string(want) {
		t.Errorf("%s, %v, expected %s", got, err, want)
	}
	for _, public := range []string{"", "host", other.PublicKey(), "x" + signer.PublicKey()} {
		if _, ok := ParsePublished(secret, public); ok {
			t.Errorf("%q was accepted", public)
		}
	}

	// A secret with the hash of another key: only deriving the public key shows that.
	parts := strings.Split(secret, "+")
	parts[3] = strings.Split(other.PublicKey(), "+")[1]
	forged, ok := ParsePublished(strings.Join(parts, "+"), other.PublicKey())
	if !ok || forged.Check() == nil {
		t.Errorf("%v: a key that belongs to another secret passed the check", ok)
	}
	if note, err := forged.Sign(point); err == nil {
		t.Errorf("signed %s", note)
	}
}

func TestSignRefuses(t *testing.T) {
	for _, c := range []Checkpoint{
		{"", 1, Hash{}},
		{"assent/", 1, Hash{}},
		{"other/t", 1, Hash{}},
		{"assent/a\nb", 1, Hash{}},
		{"assent/\xff", 1, Hash{}},
		{"assent/t", -1, Hash{}},
		{"assent/t", maxSize + 1, Hash{}},
	} {
		_, err := testSigner(t).Sign(c)
		fails(t, err, "sign a checkpoint: ")
	}
}

func TestOpenCheckpointRefuses(t *testing.T) {
	signed := string(sign(t, bare(t, 5).checkpoint()))
	key := testSigner(t).PublicKey()
	for name, tt := range map[string]struct{ signed, key, want string }{
		"no note":       {"", key, "not a signed note"},
		"no signature":  {signed[:strings.Index(signed, "\n\n")+2], key, "not a signed note"},
		"wrong key":     {signed, namedSigner(t, "assent.example", 1).PublicKey(), "wrong key"},
		"wrong name":    {strings.Replace(signed, "— assent.example", "— assent.exampla", 1), key, "wrong key"},
		"size":          {strings.Replace(signed, "\n5\n", "\n6\n", 1), key, "bad signature"},
		"origin":        {strings.Replace(signed, "default", "another", 1), key, "bad signature"},
		"signature":     {corrupt(signed, len(signed)-20), key, "bad signature"},
		"loose base64":  {loosen(t, signed), key, "not canonical"},
		"no key":        {signed, "", "is not a public key"},
		"long key":      {signed, strings.Repeat("k", 1000), `kkk"… is not a public key`},
		"half a key":    {signed, key[:20], "is not a public key"},
		"key's case":    {signed, upperHash(key), "is not a public key"},
		"key's newline": {signed, key + "\n", "is not a public key"},
		"other text":    {signText(t, "hello\n"), key, "three lines"},
		"more lines":    {signText(t, "assent/t\n1\n"+Hash{}.String()+"\nmore\n"), key, "three lines"},
		"no tenant":     {signText(t, "assent/\n1\n"+Hash{}.String()+"\n"), key, "no tenant"},
		"no size":       {signText(t, "assent/t\nx\n"+Hash{}.String()+"\n"), key, "the size of the checkpoint"},
		"huge":          {signText(t, "assent/t\n9223372036854775807\n"+Hash{}.String()+"\n"), key, "can't have"},
		"long size":     {signText(t, "assent/t\n01\n"+Hash{}.String()+"\n"), key, "shortest form"},
		"no root":       {signText(t, "assent/t\n1\nAAAA\n"), key, "the root of the checkpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := OpenCheckpoint([]byte(tt.signed), tt.key)
			refused(t, err, -1, tt.want)
		})
	}
}

// TestOpenCheckpointWithWitness: a note may have further signatures of witnesses.
func TestOpenCheckpointWithWitness(t *testing.T) {
	c := bare(t, 5).checkpoint()
	witness := namedSigner(t, "witness.example", 2)
	signed, err := note.Sign(&note.Note{Text: c.text()}, witness.signer, testSigner(t).signer)
	must(t, err)
	for _, key := range []string{testSigner(t).PublicKey(), witness.PublicKey()} {
		if got, err := OpenCheckpoint(signed, key); err != nil || got != c {
			t.Errorf("%s: got %v, %v", key, got, err)
		}
	}
}

func corrupt(s string, at int) string {
	to := byte('A')
	if s[at] == to {
		to = 'B'
	}
	return s[:at] + string(to) + s[at+1:]
}

// loosen sets bits of the signature's base64 that decoders ignore.
func loosen(t *testing.T, signed string) string {
	t.Helper()
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	last := strings.LastIndex(signed, "=") - 1
	out := signed[:last] + string(alphabet[strings.IndexByte(alphabet, signed[last])|1]) + signed[last+1:]
	if _, err := base64.StdEncoding.DecodeString(strings.Fields(out)[len(strings.Fields(out))-1]); err != nil {
		t.Fatal(err)
	}
	return out
}

// upperHash writes the hash of a key in capitals, which some parsers accept.
func upperHash(key string) string {
	parts := strings.SplitN(key, "+", 3)
	return parts[0] + "+" + strings.ToUpper(parts[1]) + "+" + parts[2]
}

func signText(t *testing.T, text string) string {
	t.Helper()
	signed, err := note.Sign(&note.Note{Text: text}, testSigner(t).signer)
	must(t, err)
	return string(signed)
}
