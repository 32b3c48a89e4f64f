package approval_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/approval/ledger"
	"github.com/assent-dev/assent/resolve"
)

// TestLargeArgumentsOfCallsThatNobodyIsAskedAboutAreADigest covers allowed, denied and granted
// calls. Arguments that people are asked about are kept in full.
func TestLargeArgumentsOfCallsThatNobodyIsAskedAboutAreADigest(t *testing.T) {
	h := newHarness(t)
	large := func(n int) string {
		return fmt.Sprintf(`{"n":%d,"x":"%s"}`, n, strings.Repeat("x", 20<<10))
	}
	if o := h.open(tool("quote", large(1))); o.Word() != "allow" {
		t.Fatal(o.Outcome)
	}
	if o := h.open(tool("wire", large(2))); o.Outcome != resolve.Deny {
		t.Fatal(o.Outcome)
	}
	_, g := h.approved(tool("pay", large(3)), &approval.GrantOffer{MaxUses: 2})
	h.covers(tool("pay", large(3)))
	if g == nil {
		t.Fatal("no standing approval")
	}
	h.open(tool("quote", `{"n":4}`))
	h.history()
	stored, err := h.store.Entries(context.Background(), "t", 0, 1000)
	must(t, err)
	digest := func(n int) string {
		return fmt.Sprintf("sha256:%x of %d bytes", sha256.Sum256([]byte(large(n))), len(large(n)))
	}
	want := map[string][]string{
		approval.EventAllowed:   {"args_digest " + digest(1), `args {"n":4}`},
		approval.EventDenied:    {"args_digest " + digest(2)},
		approval.EventOpened:    {"args " + large(3)},
		approval.EventGrantUsed: {"args_digest " + digest(3)},
	}
	got := map[string][]string{}
	for _, e := range stored {
		leaf, err := ledger.ParseLeaf(e.Leaf)
		must(t, err)
		openings, err := ledger.ParseOpenings(e.Openings)
		must(t, err)
		for _, name := range []string{"args", "args_digest"} {
			if o, ok := openings[name]; ok && want[leaf.Type] != nil {
				got[leaf.Type] = append(got[leaf.Type], name+" "+o.Value)
			}
		}
	}

	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %.2000v\nwant %.2000v", got, want)
	}
}
