package runtime

import "testing"

func FuzzParsePlace(f *testing.F) {
	for _, text := range []string{"0.0", "3.1", "999999999.999999999", "01.2", "1.", "-1.2", "1.2.3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		place, err := ParsePlace(text)
		if err == nil && (place.String() != text || place.Events < 0 || place.Views < 0) {
			t.Fatalf("%q was read as %q", text, place)
		}
	})
}
