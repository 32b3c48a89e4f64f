package keyfile

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/assent-dev/assent/internal/must"
)

// TestKeyIsMadeOnce: starts at the same time agree on one key, and each
// file is whole.
func TestKeyIsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	keys := make([]Key, 8)
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() {
			var err error
			if keys[i], _, err = Make(path, "a host+name"); err != nil {
				t.Error(err)
			}
		})
	}

	all.Wait()
	for _, k := range keys {
		if k.Signer.PublicKey() != keys[0].Signer.PublicKey() || !bytes.Equal(k.Forms, keys[0].Forms) ||
			len(k.Forms) != 32 {
			t.Error("two keys")
		}
	}

	if !strings.HasPrefix(keys[0].Signer.PublicKey(), "ahostname+") {
		t.Error(keys[0].Signer.PublicKey())
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o660, 0o777} {
		must.Do(t, os.Chmod(path, mode))
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("%o: %v", mode, err)
		}
	}

	for name, path := range map[string]string{"a directory": t.TempDir(), "nowhere": filepath.Join(path, "key")} {
		if _, err := Load(path); err == nil {
			t.Errorf("%s is no key", name)
		}
	}
}

func TestExposedKeys(t *testing.T) {
	for _, c := range []struct {
		mode  os.FileMode
		root  bool
		uid   int
		wants bool
	}{
		{0o600, true, 0, false},
		{0o400, false, 1000, false},
		{0o440, true, 65532, false}, // a secret of Kubernetes
		{0o640, true, 65532, false},
		{0o440, true, 0, true},
		{0o440, false, 65532, true},
		{0o444, true, 65532, true},
		{0o460, true, 65532, true},
		{0o604, true, 65532, true},
	} {
		if got := exposed(c.mode, c.root, c.uid); got != c.wants {
			t.Errorf("%+v: %t", c, got)
		}
	}
}
