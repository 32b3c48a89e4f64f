package resolve_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assent-dev/assent/resolve"
)

// pastCase is a call with its fields as JSON texts. An absent field is empty.
type pastCase struct {
	hours                            int
	tool, state, principal           string
	amount, to, currency, dotted, ab string
}

func (c *pastCase) args() string {
	var all []string
	for _, m := range [][2]string{{"amount", c.amount}, {"to", c.to}, {"cur", c.currency}, {"a.b", c.dotted}} {
		if m[1] != "" {
			all = append(all, fmt.Sprintf("%q:%s", m[0], m[1]))
		}
	}
	if c.ab != "" {
		all = append(all, `"a":{"b":`+c.ab+`}`)
	}
	return "{" + strings.Join(all, ",") + "}"
}

// group returns the value of a key: its text, whether the call has it, and whether that can be said.
func (c *pastCase) group(by string) (text string, has, known bool) {
	switch by {
	case "principal":
		return c.principal, c.principal != "", true
	case "target":
		return c.tool, true, true
	case "args.to":
		return c.to, c.to != "" && c.to != "null", true
	}
	if c.dotted != "" && c.ab != "" && c.dotted != c.ab {
		return "", false, false
	}
	text = c.dotted + c.ab
	if c.dotted != "" {
		text = c.dotted
	}
	return text, text != "" && text != "null", true
}

// where returns whether amount gt 0 is true, false or unknown.
func (c *pastCase) where() string {
	switch c.amount {
	case "1", "2":
		return "true"
	case "-1", "0":
		return "false"
	}
	return "unknown"
}

func (c *pastCase) number() (int, bool) {
	n, ok := map[string]int{"1": 1, "2": 2, "-1": -1, "0": 0}[c.amount]
	return n, ok
}

func (c *pastCase) code() (string, bool) {
	if !strings.HasPrefix(c.currency, `"`) {
		return "", false
	}
	return strings.ToUpper(c.currency), true
}

// historyCase is an entry of history with one or two comparisons.
type historyCase struct {
	of, state, measure string
	within             int
	by                 []string
	where, currency    bool
	ops                []string
	bounds             []int
}

func (h *historyCase) text() string {
	out := fmt.Sprintf("{within: %dh", h.within)
	if h.of != "" {
		out += ", of: " + h.of
	}
	if h.state != "" {
		out += ", state: " + h.state
	}
	if len(h.by) > 0 {
		out += ", by: [" + strings.Join(h.by, ", ") + "]"
	}
	if h.where {
		out += ", where: {amount: {gt: 0}}"
	}
	if h.currency {
		out += ", currency: cur"
	}
	var compared []string
	if h.measure == "sum" {
		compared = append(compared, "of: amount")
	}
	if h.measure == "distinct" {
		compared = append(compared, "of: to")
	}
	for i, op := range h.ops {
		compared = append(compared, fmt.Sprintf("%s: %d", op, h.bounds[i]))
	}
	if strings.HasPrefix(h.measure, "exists") {
		return out + ", " + h.measure + "}"
	}
	return out + ", " + h.measure + ": {" + strings.Join(compared, ", ") + "}}"
}

func (h *historyCase) selects(c *pastCase) bool {
	return h.of == "" && c.tool == "pay" || h.of == "{}" || strings.Contains(h.of, c.tool)
}

// want evaluates the contract word by word.
func (h *historyCase) want(this *pastCase, past []pastCase) string {
	for _, by := range h.by {
		if _, has, known := this.group(by); !has || !known {
			return "unknown"
		}
	}
	code, ok := this.code()
	if h.currency && !ok {
		return "unknown"
	}
	state := h.state
	if state == "" {
		state = "ran"
	}
	var certain, doubtful []pastCase
	if (state == "ran" || state == "asked") && h.selects(this) && (!h.where || this.where() != "false") &&
		!strings.HasPrefix(h.measure, "exists") {
		certain = append(certain, *this)
	}
	for i := range past {
		c := &past[i]
		counts := "true"
		if c.hours < 0 || c.hours >= h.within || c.state != state || !h.selects(c) {
			continue
		}
		for _, by := range h.by {
			wanted, _, _ := this.group(by)
			text, has, known := c.group(by)
			switch {
			case !known:
				counts = "unknown"
			case !has || text != wanted:
				counts = "false"
			}
			if counts == "false" {
				break
			}
		}
		if where := c.where(); h.where && counts != "false" && where != "true" {
			counts = where
		}
		if counts == "true" {
			certain = append(certain, *c)
		}
		if counts == "unknown" {
			doubtful = append(doubtful, *c)
		}
	}
	result := "true"
	for i := range max(1, len(h.ops)) {
		switch got := h.both(i, code, certain, doubtful); {
		case got == "false":
			return "false"
		case got == "unknown":
			result = got
		}
	}
	return result
}

// both returns the result of a comparison if it is the same for each choice of doubtful calls.
func (h *historyCase) both(at int, code string, certain, doubtful []pastCase) string {
	result := ""
	for chosen := range 1 << len(doubtful) {
		calls := slices.Clone(certain)
		for i := range doubtful {
			if chosen>>i&1 == 1 {
				calls = append(calls, doubtful[i])
			}
		}
		got := h.compare(at, code, calls)
		if result != "" && result != got || got == "unknown" {
			return "unknown"
		}
		result = got
	}
	return result
}

func (h *historyCase) compare(at int, code string, calls []pastCase) string {
	n := 0
	values := map[string]bool{}
	for i := range calls {
		c := &calls[i]
		if h.currency {
			of, ok := c.code()
			if !ok {
				return "unknown"
			}
			if of != code {
				continue
			}
		}
		switch h.measure {
		case "sum":
			amount, ok := c.number()
			if !ok {
				return "unknown"
			}
			n += amount
		case "distinct":
			if c.to == "" || c.to == "null" {
				return "unknown"
			}
			values[c.to] = true
			n = len(values)
		default:
			n++
		}
	}
	var holds bool
	switch {
	case h.measure == "exists: true":
		holds = n > 0
	case h.measure == "exists: false":
		holds = n == 0
	default:
		b := h.bounds[at]
		holds = map[string]bool{"gt": n > b, "gte": n >= b, "lt": n < b, "lte": n <= b}[h.ops[at]]
	}
	return fmt.Sprint(holds)
}

// Random entries, calls and histories of up to four events are decided as the contract says.
func TestHistoryAgreesWithAReference(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	one := func(of ...string) string { return of[random.Intn(len(of))] }
	call := func() pastCase {
		return pastCase{
			hours: []int{0, 1, 2, 3, 24, -1}[random.Intn(6)],
			tool:  one("pay", "pay", "buy"), state: one("ran", "ran", "ran", "asked", "failed"),
			principal: one("", "p", "p", "q"), amount: one("", "1", "2", "-1", "0", `"x"`, "null", "1", "2"),
			to: one("", `"a"`, `"a"`, `"b"`, "1", "null"), currency: one("", `"eur"`, `"EUR"`, `"USD"`, "5"),
			dotted: one("", "", "1", "2"), ab: one("", "", "1", "null"),
		}
	}
	at, _ := time.Parse(time.RFC3339, historyNow)
	for range 1500 {
		h := historyCase{
			of: one("", "{}", "{targets: [pay]}", "{targets: [buy]}"), state: one("", "", "ran", "asked", "failed"),
			measure: one("count", "sum", "distinct", "exists: true", "exists: false"),
			within:  []int{2, 3, 24}[random.Intn(3)],
			where:   random.Intn(2) == 0,
		}
		for _, by := range []string{"principal", "target", "args.to", "args.a.b"} {
			if random.Intn(6) == 0 {
				h.by = append(h.by, by)
			}
		}
		h.currency = h.measure == "sum" && random.Intn(2) == 0
		ops := []string{"gt", "gte", "lt", "lte"}
		random.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
		if !strings.HasPrefix(h.measure, "exists") {
			for _, op := range ops[:1+random.Intn(2)] {
				h.ops, h.bounds = append(h.ops, op), append(h.bounds, random.Intn(6)-1)
			}
		}
		p := plan(t, resolve.Options{}, space11, `schema_version: "1.1.0"
policy_ref: p
applies: implicit
rules:
  - {id: a, deny: "no", unknown: ask, when: {history: [`+h.text()+`]}}
`)
		for range 6 {
			this := call()
			this.tool = "pay"
			past := make([]pastCase, random.Intn(5))
			var list []string
			for i := range past {
				past[i] = call()
				entry := fmt.Sprintf(`{"at":%q,"states":[%q],"kind":"tool","tool":%q,"args":%s`,
					at.Add(-time.Duration(past[i].hours)*time.Hour).Format(time.RFC3339),
					past[i].state, past[i].tool, past[i].args())
				if past[i].principal != "" {
					entry += `,"principal":"` + past[i].principal + `"`
				}
				list = append(list, entry+"}")
			}
			line := `{"kind":"tool","tool":"pay","at":"` + historyNow + `","args":` + this.args() +
				`,"history":[` + strings.Join(list, ",") + `]`
			if this.principal != "" {
				line += `,"principal":"` + this.principal + `"`
			}
			want := map[string]string{"true": "deny", "false": "allow", "unknown": "ask"}[h.want(&this, past)]
			if got := decide(t, p, line+"}").Outcome.String(); got != want {
				t.Fatalf("%s\n%s}\n%s, want %s", h.text(), line, got, want)
			}
		}
	}
}
