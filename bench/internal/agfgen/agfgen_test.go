package agfgen

import (
	"bytes"
	"testing"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/lint"
	"github.com/assent-dev/assent/lint/rules"
)

// TestFile checks that all files have the promised size, are valid and different, and have no
// errors, which would end a benchmark of agf-validate.
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
			for _, f := range lint.New(rules.All(), lint.Options{}).Worker().Agent("x.agf.yaml", src, nil).Findings {
				if f.Severity == diag.Error {
					t.Errorf("seed %d: %+v\n%s", seed, f, src)
				}
			}
		}
	}
}

func TestSameSeedSameFile(t *testing.T) {
	if !bytes.Equal(File(7, 3_000), File(7, 3_000)) {
		t.Error("two files of one seed differ")
	}
}
