package policy_test

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/policy"
)

func TestArgumentsHide(t *testing.T) {
	for _, c := range []struct {
		pattern string
		path    string // segments by slashes
		want    bool
	}{
		{"password", "password", true},
		{"password", "nested/password", false},
		{"user.password", "user/password", true},
		{"user.password", "user.password", true}, // one literal key
		{"user", "user/password", true},          // the content of a hidden value is hidden
		{"user.password", "user", false},
		{"items.0.pin", "items/0/pin", true},
		{"**.password", "password", true},
		{"**.password", "a/0/b/password", true},
		{"**.password", "a/password/old", true},
		{"**.password", "a/passwords", false},
		{"user.**.pin", "user/pin", true},
		{"user.**.pin", "user/cards/3/pin", true},
		{"user.**.pin", "other/pin", false},
		{"**", "anything", true},
		{"**.a.**.b", "x/a/y/b", true},
		{"**.a.**.b", "x/b/y/a", false},
		{"**.user.password", "x/user.password", true},
	} {
		a := policy.Arguments{Redact: []string{"elsewhere", c.pattern}}
		if got := a.Hides(strings.Split(c.path, "/")...); got != c.want {
			t.Errorf("%s hides %s: got %v", c.pattern, c.path, got)
		}
	}

	if (policy.Arguments{}).Hides("password") {
		t.Error("arguments that are shown in full hide something")
	}
}
