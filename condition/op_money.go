package condition

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/assent-dev/assent/diag"
	"github.com/assent-dev/assent/internal/yamldoc"
	"github.com/assent-dev/assent/value"
)

// MoneyOp is the operator that compares an amount with a bound for its currency.
const MoneyOp Op = "money"

// Money is the operand of MoneyOp.
type Money struct {
	Currency  string // the key of the currency's code in the arguments
	Bounds    []MoneyBound
	Minor     bool  // amounts are in the smallest unit of the currency, such as cents
	Otherwise Truth // the result for a currency that the tables lack
}

// MoneyBound is one comparison, with a number for each currency. All bounds have the same codes.
type MoneyBound struct {
	Op    Op // Gt, Gte, Lt or Lte
	Codes []string
	Nums  []value.Num // by the index of Codes
}

// Amount returns a number of a bound in the unit of arguments. It returns false if that unit is not
// known, or no double is near the number.
func (m *Money) Amount(bound, code int) (value.Num, bool) {
	b := &m.Bounds[bound]
	if !m.Minor {
		return b.Nums[code], true
	}
	exponent, known := minorUnits(b.Codes[code])
	n, err := value.ParseNum(scaledText(b.Nums[code], exponent))
	if err != nil || !known {
		return n, false
	}
	n, err = value.ParseNum(n.Canonical()) // without the exponent, for people
	return n, err == nil
}

// money holds for numbers that pass the comparison for the currency of the call.
type money struct{}

func (money) op() Op { return MoneyOp }

func (money) means() string {
	return "The amount, compared with a number for the currency of the call."
}

func (money) words() words { return words{"an amount", "is an amount"} }

func (money) slips() []Op { return nil } // mutation tests change the tables

func (money) operand() operand { return moneyTables{} }

func (money) negative() bool { return false }

func (money) expression(string) (string, bool) { return "", false }

func (money) compare(t *Test, with compiling) (comparison, bool) {
	m := t.Money
	if m == nil || m.Currency == "" || len(m.Bounds) == 0 {
		return comparison{}, false
	}
	test := &moneyTest{
		source:    m,
		bounds:    map[string][]*bound{},
		missing:   m.Otherwise.or(with.sem.OnMissing),
		otherwise: m.Otherwise.or(with.sem.OnMismatch),
		noUnit:    Unknown.or(with.sem.OnMismatch),
		slot:      -1,
		nested:    -1,
	}
	for at, b := range m.Bounds {
		if !slices.Contains(orders, b.Op) || len(b.Codes) == 0 || len(b.Codes) != len(b.Nums) {
			return comparison{}, false
		}
		for i, code := range b.Codes {
			n, ok := m.Amount(at, i)
			if _, known := minorUnits(code); m.Minor && !known {
				test.bounds[code] = nil
				continue
			}
			if !ok {
				return comparison{}, false
			}
			o, _ := find(b.Op)
			test.bounds[code] = append(test.bounds[code], &bound{o.(order), n, n.Float()})
		}
	}
	return comparison{money: test}, true
}

// or returns False instead of Unknown if the owner chose that.
func (t Truth) or(s Silence) Truth {
	if t == Unknown {
		return s.truth()
	}
	return t
}

// scaledText multiplies a number by a power of ten.
func scaledText(n value.Num, exponent int) string {
	text := n.Canonical()
	mantissa, power, _ := strings.Cut(text, "e")
	was, _ := strconv.Atoi(strings.TrimPrefix(power, "+")) // empty: 0
	return mantissa + "e" + strconv.Itoa(was+exponent)
}

// moneyTest is a compiled Money. Its currency has slots like the key of a matcher.
type moneyTest struct {
	source       *Money
	bounds       map[string][]*bound // by code; empty if the code has no known unit
	missing      Truth               // without a currency
	otherwise    Truth               // for other currencies
	noUnit       Truth               // for a currency without a known unit
	parent       bool
	slot, nested int
}

// find adds the slots of the currency.
func (m *moneyTest) find(use Use, c *Compiler) {
	m.slot, m.nested, m.parent, _ = c.locate(use, m.source.Currency)
}

// truth compares an amount. If the currency has two places, the greater truth counts, as for the
// key of a matcher.
func (m *moneyTest) truth(n *value.Num, v *View) Truth {
	first, second, ok := m.currencies(v)
	switch {
	case !ok:
		return Unknown
	case second == nil || second.Kind == value.Absent:
		return m.with(n, first)
	case first.Kind == value.Absent:
		return m.with(n, second)
	}
	return max(m.with(n, first), m.with(n, second))
}

// currencies returns the slots of the currency. It returns false if the document has none.
func (m *moneyTest) currencies(v *View) (first, second *value.Slot, ok bool) {
	if v == nil {
		return nil, nil, false
	}
	doc := &v.Args
	if m.parent {
		doc = &v.Parent
	}
	if m.slot < 0 || doc.Top != value.Object || max(m.slot, m.nested) >= len(doc.Slots) {
		return nil, nil, false
	}
	if m.nested >= 0 {
		second = &doc.Slots[m.nested]
	}
	return &doc.Slots[m.slot], second, true
}

// with compares an amount in a currency.
func (m *moneyTest) with(n *value.Num, currency *value.Slot) Truth {
	if currency.Kind != value.String {
		if currency.Kind == value.Absent || currency.Kind == value.Null {
			return m.missing
		}
		return m.otherwise
	}
	bounds, known := m.bounds[upperCode(currency.Text)]
	switch {
	case !known:
		return m.otherwise
	case bounds == nil:
		return m.noUnit
	}
	result := True
	for _, b := range bounds {
		result = min(result, b.truth(n))
	}
	return result
}

// upperCode converts ASCII letters only, so that no other letter becomes one of a code.
func upperCode(code string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, code)
}

// why returns the reason why a comparison of a number is Unknown.
func (m *moneyTest) why(v *View) string {
	first, second, ok := m.currencies(v)
	for _, s := range []*value.Slot{first, second} {
		if ok && s != nil && s.Kind == value.String && m.bounds[upperCode(s.Text)] != nil {
			return WhyRoundedNumber
		}
	}
	return WhyCurrency
}

func (m *moneyTest) cost() int { return longList }

// byCurrency returns the boxes of a matcher that compares money: arguments that are no numbers, and
// numbers together with each kind of currency.
func (q *question) byCurrency(places [][]string, tests []test, m *moneyTest, level Truth) []box {
	d := q.domainOf(tests, level)
	amounts := d.numbers
	d.numbers = allNumbers(false)
	list := q.at(places, d)
	if amounts.empty() {
		return list
	}
	currency, fault := q.reading.places(m.source.Currency)
	if fault != "" || len(currency) == 0 {
		if level == Unknown {
			list = append(list, q.at(places, domain{numbers: amounts})...)
		}
		return list
	}
	add := func(amounts numbers, codes domain) {
		if !amounts.empty() && !codes.empty() {
			list = append(list, spread(q.at(places, domain{numbers: amounts}), q.at(currency, codes))...)
		}
	}

	var listed, unitless []string
	for _, code := range slices.Sorted(maps.Keys(m.bounds)) {
		bounds := m.bounds[code]
		texts := texts{list: sorted(spellings(code))}
		listed = append(listed, texts.list...)
		if bounds == nil {
			unitless = append(unitless, texts.list...)
			continue
		}
		passing := amounts
		for _, b := range bounds {
			passing = passing.and(b.set(level))
		}
		add(passing, domain{texts: texts})
	}
	if m.noUnit >= level {
		add(amounts, domain{texts: texts{list: sorted(unitless)}})
	}
	if m.missing >= level {
		add(amounts, only(atomAbsent|atomNull))
	}
	if m.otherwise >= level {
		others := domain{numbers: allNumbers(true), texts: texts{but: true, list: sorted(listed)}}
		others.atoms = allAtoms &^ (atomAbsent | atomNull)
		add(amounts, others)
	}
	return list
}

func sorted(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// spellings returns the texts that upperCode converts to a code.
func spellings(code string) []string {
	list := []string{""}
	for _, c := range code {
		var next []string
		for _, s := range list {
			next = append(next, s+string(c))
			if c >= 'A' && c <= 'Z' {
				next = append(next, s+string(c-'A'+'a'))
			}
		}
		list = next
	}
	return list
}

// moneyTables are the currency's key and tables of bounds.
type moneyTables struct{}

func (moneyTables) schema() string {
	var all []string
	for _, op := range orders {
		all = append(all, `"`+string(op)+`": { "$ref": "#/$defs/amounts" }`)
	}
	return `"type": "object", "required": ["currency"], "minProperties": 2, "properties": { ` +
		`"currency": { "description": "The argument with the code.", "type": "string", "minLength": 1 }, ` +
		strings.Join(all, ", ") +
		`, "minor_units": { "description": "The amount is in cents, or the smallest unit of its currency.", ` +
		`"type": "boolean" }, "otherwise": { "description": ` +
		`"For a missing currency and for one that the tables lack.", "enum": ["unknown", true, false] }` +
		` }, "additionalProperties": false`
}

func (moneyTables) read(p *parser, t *Test, n *yamldoc.Node) bool {
	m := &Money{Otherwise: Unknown}
	t.Money = m
	ok := n.Kind == yamldoc.Mapping
	if !ok {
		p.refuse(n.Range)
	}
	for i := range n.Fields {
		key, operand := n.Fields[i].Key, n.Fields[i].Value
		good := true
		switch {
		case key.Text == "currency":
			good, m.Currency = operand.Kind == yamldoc.String && operand.Text != "", operand.Text
		case key.Text == "minor_units":
			good, m.Minor = operand.Kind == yamldoc.Bool, operand.Bool
		case key.Text == "otherwise" && operand.Kind == yamldoc.Bool:
			m.Otherwise = truthOf(operand.Bool)
		case key.Text == "otherwise":
			good = operand.Kind == yamldoc.String && operand.Text == "unknown"
		case slices.Contains(orders, Op(key.Text)):
			ok = p.table(m, Op(key.Text), operand) && ok
		default:
			good = false
		}
		if !good {
			p.refuse(operand.Range)
		}
		ok = ok && good
	}
	if ok && (m.Currency == "" || len(m.Bounds) == 0) {
		p.findings = append(p.findings, yamldoc.Stop(ruleOperand, n.Range,
			"money needs the argument with the currency, and a comparison", "{currency: currency, gt: {EUR: 5000}}"))
		ok = false
	}
	return ok && p.sameCodes(m, n)
}

// table reads the numbers of one comparison.
func (p *parser) table(m *Money, op Op, n *yamldoc.Node) bool {
	b := MoneyBound{Op: op}
	if n.Kind != yamldoc.Mapping || len(n.Fields) == 0 {
		p.refuse(n.Range)
		return false
	}
	sound := true
	for i := range n.Fields {
		code := n.Fields[i].Key
		number, ok := p.scalar(n.Fields[i].Value)
		if !ok || number.Kind != value.Number || len(code.Text) != 3 || strings.Trim(code.Text, capitals) != "" {
			p.refuse(diag.Range{Start: code.Range.Start, End: n.Fields[i].Value.Range.End})
			sound = false
		}
		b.Codes, b.Nums = append(b.Codes, code.Text), append(b.Nums, number.Num)
	}
	m.Bounds = append(m.Bounds, b)
	return sound
}

const capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// sameCodes reports tables with different codes. It warns about codes that no currency has, and about
// those whose smallest unit is needed and not known.
func (p *parser) sameCodes(m *Money, n *yamldoc.Node) bool {
	first := sorted(slices.Clone(m.Bounds[0].Codes))
	for _, b := range m.Bounds[1:] {
		if !slices.Equal(first, sorted(slices.Clone(b.Codes))) {
			p.findings = append(p.findings, yamldoc.Stop(ruleOperand, n.Range,
				"the tables of this amount have different currencies", "the same codes in each table"))
			return false
		}
	}
	for _, code := range first {
		at := n.Get(string(m.Bounds[0].Op)).Field(code).Key.Range
		_, known := minorUnits(code)
		switch {
		case !known && !strings.Contains(unitless, " "+code+" "):
			p.findings = append(p.findings, yamldoc.Warn(ruleCode, at,
				code+" is not an active code of ISO 4217, so no amount is in it",
				"the code of a currency, such as EUR"))
		case !known && m.Minor:
			p.findings = append(p.findings, yamldoc.Warn(ruleUnit, at,
				code+" has no minor unit, so with minor_units every amount in it is unknown",
				"an active code of ISO 4217 that has a minor unit"))
		}
	}
	return true
}

func (moneyTables) of(*Test) []Scalar { return nil }

func (moneyTables) text(t *Test, most int) string {
	m := t.Money
	if m == nil {
		return ""
	}
	var all []string
	for _, b := range m.Bounds {
		var list []string
		for i, code := range b.Codes[:min(most, len(b.Codes))] {
			list = append(list, code+" "+b.Nums[i].String())
		}
		if more := len(b.Codes) - len(list); more > 0 {
			list = append(list, strconv.Itoa(more)+" more")
		}
		all = append(all, string(b.Op)+" "+strings.Join(list, ", "))
	}
	text := "(" + strings.Join(all, " and ") + " by " + nameOf([]string{m.Currency})
	if m.Minor {
		text += ", in minor units"
	}
	if m.Otherwise != Unknown {
		text += ", otherwise " + m.Otherwise.String()
	}
	return text + ")"
}
