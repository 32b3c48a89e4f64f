package wire_test

import (
	"strings"
	"testing"

	"github.com/assent-dev/assent/mcp/wire"
)

func TestChallenges(t *testing.T) {
	t.Parallel()
	const at = "https://a.example/.well-known/oauth-protected-resource/mcp"
	found := wire.Challenge{Metadata: at}
	for text, want := range map[string]wire.Challenge{
		`Bearer resource_metadata="` + at + `"`:                       found,
		`bearer  Resource_Metadata = "` + at + `" , realm=x`:          found,
		`Bearer realm="a, Bearer x=\"", resource_metadata=` + at:      found,
		`Basic realm="x", Bearer resource_metadata="` + at + `"`:      found,
		"Negotiate\nBearer resource_metadata=\"" + at + `", DPoP a=b`: found,
		`Negotiate, Bearer`: {},
		`Bearer error="insufficient_scope", scope="a b"`: {Error: wire.InsufficientScope, Scope: "a b"},
	} {
		if got, ok := wire.ReadChallenge(strings.Split(text, "\n")); !ok || got != want {
			t.Errorf("%s: %+v, %v", text, got, ok)
		}
	}
	for _, text := range []string{
		"", "Basic", "DPoP resource_metadata=x", `Bearer scope=a, scope=b`, `Bearer scope="a`, `"Bearer"`, "=,=",
		"Bearerx a=b",
	} {
		if got, ok := wire.ReadChallenge([]string{text}); ok || got != (wire.Challenge{}) {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}
