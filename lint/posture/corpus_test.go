package posture

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/assent-dev/assent/internal/must"
	"github.com/assent-dev/assent/policy"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/schema"
)

// sharedCorpus exists on some machines only. It contains documents of other authors, which this
// project may not copy.
const sharedCorpus = "/work/shared/corpus"

// namedPolicies is a registry that has every policy, because documents of other authors refer to
// policies that this project doesn't have.
type namedPolicies struct{ *policy.Set }

func (n namedPolicies) Policy(ref string) (*policy.Policy, bool) {
	if p, ok := n.Set.Policy(ref); ok {
		return p, true
	}
	return &policy.Policy{Ref: ref}, true
}

// edits returns changes of single words, as authors make them.
func edits() map[*regexp.Regexp][]string {
	return map[*regexp.Regexp][]string{
		regexp.MustCompile(`\bgt\b`):                         {"gte", "lt"},
		regexp.MustCompile(`\b(gte|lte|lt)\b`):               {"gt"},
		regexp.MustCompile(`\bin:`):                          {"not_in:"},
		regexp.MustCompile(`\bnot_in:`):                      {"in:"},
		regexp.MustCompile(`\b\d{2,}\b`):                     {"77", "1e9"},
		regexp.MustCompile(`pattern: ['"]`):                  {"${0}^", "${0}x"},
		regexp.MustCompile(`\|`):                             {"|x|", "x|"},
		regexp.MustCompile(`\bapproval: true\b`):             {"approval: false"},
		regexp.MustCompile(`"?\b[A-Z]{3,6}\b"?`):             {"OTHER"},
		regexp.MustCompile(`\*`):                             {"x*", "_*"},
		regexp.MustCompile(`\b(people|max_uses): ?\d`):       {"$1: 3"},
		regexp.MustCompile(`\b(group|to): [a-z-]+`):          {"$1: others"},
		regexp.MustCompile(`\b\d+[mh]\b`):                    {"7m"},
		regexp.MustCompile(`\b(tool|mcp_tool|skill)\b`):      {"delegation"},
		regexp.MustCompile(`\b[a-z]+Hint: (true|false)`):     {"idempotentHint: $1"},
		regexp.MustCompile(`(?m)^( *)approval:`):             {"${1}x-approval:"},
		regexp.MustCompile(`(?m)^ *- (name|alias):.*\n`):     {""},
		regexp.MustCompile(`(?m)^ *- args_match:.*\n`):       {""},
		regexp.MustCompile(`(?m)^ *allowed_(tools|skills):`): {"    x-list:"},
	}
}

// edited lists a document with each single edit.
func edited(text string) []string {
	var out []string
	for of, words := range edits() {
		for _, at := range of.FindAllStringSubmatchIndex(text, -1) {
			for _, word := range words {
				now := string(of.ExpandString(nil, word, text, at))
				out = append(out, text[:at[0]]+now+text[at[1]:])
			}
		}
	}

	return out
}

// documents lists the agents and policies below a directory.
type documents struct{ agents, policies []string }

func documentsBelow(t *testing.T, dir string) documents {
	t.Helper()
	var out documents
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		switch {
		case strings.HasSuffix(path, ".agf.yaml"):
			out.agents = append(out.agents, string(text))
		case strings.HasSuffix(path, ".policy.yaml"):
			out.policies = append(out.policies, string(text))
		}

		return err
	})
	must.Do(t, err)

	return out
}

// readings keeps the parsed form of each text, because most texts are parts of many sides.
type readings struct {
	agents   map[string]*schema.Agent
	policies map[string]*policy.Policy
}

func newReadings() readings {
	return readings{map[string]*schema.Agent{}, map[string]*policy.Policy{}}
}

// side compiles an agent with policies. It returns nil if the texts don't load.
func (r readings) side(agent string, policies []string) *Side {
	var all []*policy.Policy
	for _, text := range policies {
		if _, ok := r.policies[text]; !ok {
			r.policies[text], _ = policy.Parse("x.policy.yaml", []byte(text))
		}
		p := r.policies[text]
		if p == nil {
			return nil
		}
		all = append(all, p)
	}

	if _, ok := r.agents[agent]; !ok {
		r.agents[agent], _ = schema.Parse("x.agf.yaml", []byte(agent))
	}
	a := r.agents[agent]
	set, _ := policy.NewSet(all...)
	plan, err := resolve.Compile(a, namedPolicies{set}, resolve.Options{})
	if err != nil {
		return nil
	}

	return &Side{Plan: plan}
}

// tally counts comparisons, and the changes that are undecided because the comparison was too hard.
// Changes whose values have no order are not counted as undecided.
type tally struct{ compared, changes, undecided int }

func (n *tally) count(t *testing.T, old, new *Side) {
	if new == nil {
		return
	}
	n.compared++
	for _, c := range Compare(old, new) {
		n.changes++
		ordered := c.Effect != Undecided || strings.HasPrefix(c.Why, "neither side demands all") ||
			strings.HasPrefix(c.Why, "each side lists") || strings.HasPrefix(c.Why, "what may be done there")
		if !ordered {
			n.undecided++
			t.Logf("%s %s: %s", c.Kind, c.Aspect, c.Why)
		}
	}
}

// TestCorpusIsDecided compares documents written by people with themselves and with every single
// edit.
func TestCorpusIsDecided(t *testing.T) {
	dirs := map[string]int{ // and how many comparisons there are at least
		"testdata/corpus": 60, "../../examples": 200, "../../agent/examples": 60,
	}
	if _, err := os.Stat(sharedCorpus); err == nil {
		dirs[sharedCorpus] = 20
	}
	for dir, least := range dirs {
		t.Run(dir, func(t *testing.T) {
			n := tallyOf(t, documentsBelow(t, dir))
			t.Logf("%d comparisons, %d changes, %d undecided", n.compared, n.changes, n.undecided)
			if n.undecided > 0 || n.compared < least || n.changes < least/2 {
				t.Errorf("%d comparisons, %d changes, %d undecided", n.compared, n.changes, n.undecided)
			}
		})
	}
}

func tallyOf(t *testing.T, all documents) tally {
	var n tally
	sideOfTexts := newReadings().side
	for _, agent := range all.agents {
		old := sideOfTexts(agent, all.policies)
		if old == nil {
			continue // the standard's schema refuses it too
		}
		if same := Compare(old, sideOfTexts(agent, all.policies)); len(same) > 0 {
			t.Errorf("a document differs from itself: %s", told(same))
		}
		for _, text := range edited(agent) {
			n.count(t, old, sideOfTexts(text, all.policies))
		}
		for i, text := range all.policies {
			for _, other := range edited(text) {
				policies := append(append([]string(nil), all.policies[:i]...), other)
				n.count(t, old, sideOfTexts(agent, append(policies, all.policies[i+1:]...)))
			}
		}
	}

	return n
}
