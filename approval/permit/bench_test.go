package permit_test

import (
	"context"
	"testing"
	"time"

	"github.com/assent-dev/assent/approval/permit"
	"github.com/assent-dev/assent/internal/must"
)

// forgetful accepts a permit any number of times, so that a benchmark needs only one.
type forgetful struct{}

func (forgetful) Use(context.Context, string, time.Time) (bool, error) { return true, nil }

// BenchmarkSign measures what a permit adds to consuming a request.
func BenchmarkSign(b *testing.B) {
	signer := newSigner(b, issuer, 1)
	p := good(b)
	for b.Loop() {
		digest, err := permit.Digest([]byte(arguments))
		must.Do(b, err)
		p.Arguments = digest
		if _, err := signer.Sign(&p); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkVerify measures what a permit costs its tool.
func BenchmarkVerify(b *testing.B) {
	signer := newSigner(b, issuer, 1)
	text := sign(b, signer, good(b))
	v, err := permit.NewVerifier(permit.Config{
		Issuer:   issuer,
		Audience: audience,
		Keys:     keysOf(b, signer),
		Uses:     forgetful{},
		Now:      now,
	})
	must.Do(b, err)

	for b.Loop() {
		if _, err := v.Verify(b.Context(), text, target, []byte(arguments)); err != nil {
			b.Fatal(err)
		}
	}
}
