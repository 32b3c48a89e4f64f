package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/server/openapi"
)

func contractPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/contracts/http.md")
	must(t, err)
	return string(text)
}

// TestContractPage runs the examples of docs/contracts/http.md in order.
func TestContractPage(t *testing.T) {
	h := newHarness(t)
	known := map[string]string{"$RUNTIME": h.runtime(), "$MARA": h.voter("mara"), "$ADMIN": h.admin()}
	example := regexp.MustCompile("(?s)```http\n(.*?)\n```\n```json ([0-9]+)\n(.*?)\n```")
	all := example.FindAllStringSubmatch(contractPage(t), -1)
	if len(all) != strings.Count(contractPage(t), "```http") || len(all) < 6 {
		t.Fatalf("found %d examples", len(all))
	}
	for _, m := range all {
		text := m[1]
		for name, value := range known {
			text = strings.ReplaceAll(text, name, value)
		}
		head, body, _ := strings.Cut(text, "\n\n")
		lines := strings.Split(head, "\n")
		method, path, _ := strings.Cut(lines[0], " ")
		var headers []string
		for _, line := range lines[1:] {
			name, value, _ := strings.Cut(line, ": ")
			headers = append(headers, name, value)
		}
		a := h.do(method, path, "", body, headers...)
		var want any
		if err := json.Unmarshal([]byte(m[3]), &want); err != nil {
			t.Fatalf("%s: %v", m[3], err)
		}
		if fmt.Sprint(a.status) != m[2] {
			t.Fatalf("%s\nanswers %d, the page says %s: %s", m[1], a.status, m[2], a.text)
		}
		if diff := missing(want, a.get(), ""); diff != "" {
			t.Errorf("%s\n%s\nanswers %s", m[1], diff, a.text)
		}
		if id := a.str("request", "id"); id != "" {
			known["$ID"], known["$BINDING"] = id, a.request("request").Binding()
		}
	}
}

// missing returns what the page promises and the answer lacks; "…" matches anything.
func missing(want, got any, at string) string {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for k, v := range w {
			if _, ok := g[k]; !ok {
				return at + "." + k + " is not there"
			}
			if d := missing(v, g[k], at+"."+k); d != "" {
				return d
			}
		}

		return ""
	case []any:
		g, _ := got.([]any)
		for i, v := range w {
			if i >= len(g) {
				return fmt.Sprintf("%s has %d items", at, len(g))
			}
			if d := missing(v, g[i], fmt.Sprintf("%s[%d]", at, i)); d != "" {
				return d
			}
		}

		return ""
	}

	if want != "…" && want != got {
		return fmt.Sprintf("%s is %v, the page says %v", at, got, want)
	}
	return ""
}

// TestContractPageLists checks that the page lists every code, scope, ending and outcome.
func TestContractPageLists(t *testing.T) {
	page := contractPage(t)
	meanings := openapi.Meanings()
	for _, m := range meanings {
		if row := fmt.Sprintf("| `%s` | %d | %s |\n", m.Code, m.Status, m.Next); !strings.Contains(page, row) {
			t.Errorf("the page lacks %s", row)
		}
	}
	if n := strings.Count(page, "| none |\n") + strings.Count(page, "| retry |\n") +
		strings.Count(page, "| request |\n"); n != len(meanings) {
		t.Errorf("the page lists %d codes, there are %d", n, len(meanings))
	}

	for _, name := range []string{
		string(openapi.ScopeDecide),
		string(openapi.ScopeRequest),
		string(openapi.ScopeRead),
		string(openapi.ScopeVote),
		string(openapi.ScopeAdmin),
		string(approval.ByVotes),
		string(approval.ByResponse),
		string(approval.ByDeadline),
		string(approval.ByPermitAge),
		string(approval.ByPlanChange),
		string(approval.ByLateDeny),
		string(approval.ByRequester),
		string(approval.BySupersede),
		string(approval.VoteCounted),
		string(approval.ByChoice),
		string(approval.ByDismissal),
		string(approval.VoteAnswered),
		string(approval.VoteRevoked),
		string(approval.VoteNotEligible),
	} {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("the page does not name `%s`", name)
		}
	}
}

// TestExamplesOfTheContract checks that the examples in openapi.yaml match their schemas.
func TestExamplesOfTheContract(t *testing.T) {
	c := theContract()
	n := 0
	check := func(what string, content any) {
		for _, body := range content.(map[string]any) {
			m := body.(map[string]any)
			if m["example"] == nil {
				continue
			}
			n++
			text, err := json.Marshal(m["example"])
			must(t, err)
			validate(t, c.schema(t, m["schema"]), &answer{t: t, text: string(text)}, what)
		}
	}
	for _, o := range c.operations() {
		if body, ok := o.def["requestBody"].(map[string]any); ok {
			check(o.pattern()+" body", body["content"])
		}
		for status := range o.def["responses"].(map[string]any) {
			if content, ok := c.at(o.def["responses"], status).(map[string]any)["content"]; ok {
				check(o.pattern()+" "+status, content)
			}
		}
		if o.def["operationId"] == nil || o.def["summary"] == nil ||
			o.method != http.MethodGet && o.method != http.MethodPost {
			t.Errorf("%s has no name, no summary or an odd method", o.pattern())
		}
	}

	if n < 40 {
		t.Errorf("found %d examples", n)
	}
}
