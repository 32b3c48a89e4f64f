package channels

import "testing"

// TestNames: no two channels share a name or a field, and empty settings have no receivers.
func TestNames(t *testing.T) {
	taken := map[string]bool{}
	for _, c := range All() {
		if taken[c.Name] {
			t.Errorf("two channels are called %q", c.Name)
		}
		taken[c.Name] = true
		if c.Settings == nil {
			continue
		}
		if field := "notify." + c.Settings.Field; taken[field] {
			t.Errorf("two channels read %s", field)
		} else {
			taken[field] = true
		}
		if got := c.Settings.Receivers(c.Settings.New()); len(got) != 0 {
			t.Errorf("%s sends to %d receivers that nobody named", c.Name, len(got))
		}
	}
}
