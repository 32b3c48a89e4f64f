package policy

import (
	"strings"
	"testing"
	"time"
)

func FuzzReadBundle(f *testing.F) {
	f.Add([]byte(`{"schema_version": "1.0.0", "policies": [{"name": "a.policy.yaml", "text": "policy_ref: a"}]}`))
	f.Add([]byte(`{"schema_version": "1.0.0", "policies": [{"name": "../a", "text": ""}, {"name": "../a", "text": ""}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		files, findings := ReadBundle(body, "origin", 1<<20)
		if len(findings) > 0 && len(files) > 0 {
			t.Fatalf("%d files of a bundle that is refused: %v", len(files), findings)
		}
		for _, file := range files {
			if !strings.HasPrefix(file.Name, "origin") {
				t.Fatalf("the file %q is not named after its origin", file.Name)
			}
		}
	})
}

func FuzzParseDuration(f *testing.F) {
	for _, seed := range []string{"30m", "1h30m", "8760h", "-1h", "1e3s", ".5s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if err != nil {
			return
		}
		again, err := ParseDuration(FormatDuration(d))
		if err != nil || again != d || d < time.Second || d > 8760*time.Hour {
			t.Fatalf("%q is %s, and %s when it is read again: %v", text, d, again, err)
		}
	})
}
