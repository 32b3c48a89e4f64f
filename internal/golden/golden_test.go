package golden

import "testing"

func TestWholeLines(t *testing.T) {
	for text, want := range map[string]string{"": "", "a": "a\n", "a\n": "a\n", "a\nb": "a\nb\n", "\n": "\n"} {
		if got := WholeLines(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
