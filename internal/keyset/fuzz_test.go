package keyset

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/assent-dev/assent/internal/must"
)

func FuzzRead(f *testing.F) {
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(f)
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "a", Use: "sig"}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(set)
	f.Add([]byte(`{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := Read(text)
		if (err == nil) != (len(keys) > 0) {
			t.Fatalf("%d keys, and %v", len(keys), err)
		}
		for _, k := range keys {
			if !k.IsPublic() || !k.Valid() {
				t.Fatalf("a key that checks no signature: %v", k)
			}
		}
	})
}
