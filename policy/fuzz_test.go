package policy

import (
	"strings"
	"testing"
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
