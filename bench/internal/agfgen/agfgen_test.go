package agfgen

import (
	"bytes"
	"testing"

	"github.com/assent-dev/assent/schema"
)

// TestFile checks that all files have the promised size, are valid and different, and have no
// findings.
func TestFile(t *testing.T) {
	seen := map[string]bool{}
	for _, size := range []int{3_000, 60_000} {
		for seed := range uint64(50) {
			src := File(seed, size)
			if n := len(src); n < size*8/10 || n > size*12/10 {
				t.Errorf("seed %d: %d bytes, want about %d", seed, n, size)
			}
			if seen[string(src)] {
				t.Errorf("seed %d gives a file that another seed gave", seed)
			}
			seen[string(src)] = true
			if _, findings := schema.Parse("x.agf.yaml", src); len(findings) > 0 {
				t.Errorf("seed %d: %+v\n%s", seed, findings[0], src)
			}
		}
	}
}

func TestSameSeedSameFile(t *testing.T) {
	if !bytes.Equal(File(7, 3_000), File(7, 3_000)) {
		t.Error("two files of one seed differ")
	}
}
