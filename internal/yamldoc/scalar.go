package yamldoc

import (
	"math/big"
	"strconv"
	"strings"
)

// resolved is the value of a plain scalar in the YAML 1.2 core schema.
type resolved struct {
	kind   Kind
	truth  bool // for a Bool
	finite bool // for a Number
	float  bool // for a Number: written as a float
}

// resolve reads a plain scalar according to the YAML 1.2 core schema (YAML 1.2.2, section
// 10.3.2).
func resolve(text string) resolved {
	if text == "" {
		return resolved{kind: Null}
	}
	switch c := text[0]; {
	case c == '~' && len(text) == 1:
		return resolved{kind: Null}
	case c == 'n' || c == 'N' || c == 't' || c == 'T' || c == 'f' || c == 'F':
		return resolveWord(text)
	case isDigit(c) || c == '-' || c == '+' || c == '.':
		return resolveNumber(text)
	}

	return resolved{kind: String}
}

func resolveWord(text string) resolved {
	switch text {
	case "null", "Null", "NULL":
		return resolved{kind: Null}
	case "true", "True", "TRUE":
		return resolved{kind: Bool, truth: true}
	case "false", "False", "FALSE":
		return resolved{kind: Bool}
	}

	return resolved{kind: String}
}

func resolveNumber(text string) resolved {
	switch unsigned := strings.TrimLeft(text[:1], "+-") + text[1:]; {
	case isInfinity(unsigned), isNaN(text):
		return resolved{kind: Number, float: true}
	case hasRadix(text, 'o', isOctal), hasRadix(text, 'x', isHex):
		return resolved{kind: Number, finite: true}
	default:
		ok, float := decimal(unsigned)
		if !ok {
			return resolved{kind: String}
		}
		return resolved{kind: Number, finite: true, float: float}
	}
}

// decimal reports whether s is an unsigned decimal number, and whether it has a point or an
// exponent.
func decimal(s string) (ok, float bool) {
	whole, rest := digits(s)
	fraction := 0
	if strings.HasPrefix(rest, ".") {
		float = true
		fraction, rest = digits(rest[1:])
	}
	if whole+fraction == 0 {
		return false, false
	}
	if rest != "" && (rest[0] == 'e' || rest[0] == 'E') {
		float = true
		rest = rest[1:]
		if rest != "" && (rest[0] == '+' || rest[0] == '-') {
			rest = rest[1:]
		}
		n, after := digits(rest)
		if n == 0 {
			return false, false
		}
		rest = after
	}

	return rest == "", float
}

// digits returns the number of decimal digits at the start of s, and the rest.
func digits(s string) (int, string) {
	i := 0
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return i, s[i:]
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isOctal(c byte) bool { return c >= '0' && c <= '7' }
func isHex(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// hasRadix reports whether text is 0, a radix letter, and one or more digits of that radix.
func hasRadix(text string, letter byte, digit func(byte) bool) bool {
	if len(text) < 3 || text[0] != '0' || text[1] != letter {
		return false
	}
	return all(text[2:], digit)
}

func all(s string, ok func(byte) bool) bool {
	for i := 0; i < len(s); i++ {
		if !ok(s[i]) {
			return false
		}
	}
	return s != ""
}

func isInfinity(s string) bool { return s == ".inf" || s == ".Inf" || s == ".INF" }
func isNaN(s string) bool      { return s == ".nan" || s == ".NaN" || s == ".NAN" }

// maxNumber limits the length of a number. Longer ones don't occur in practice, and exact
// arithmetic on them is slow.
const maxNumber = 1000

// jsonNumber returns the JSON number with the value of a finite YAML 1.2 number. It returns
// false if the number is longer than maxNumber.
func jsonNumber(text string) (string, bool) {
	if len(text) > maxNumber {
		return "", false
	}
	if isJSONNumber(text) {
		return text, true
	}
	if strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "0o") {
		n, ok := new(big.Int).SetString(text, 0)
		if !ok {
			return "", false
		}
		return n.String(), true
	}

	sign, s := "", text
	if s[0] == '+' || s[0] == '-' {
		sign, s = strings.TrimPrefix(s[:1], "+"), s[1:]
	}
	n, rest := digits(s)
	whole := strings.TrimLeft(s[:n], "0")
	if whole == "" {
		whole = "0"
	}
	if strings.HasPrefix(rest, ".") {
		if n, _ := digits(rest[1:]); n == 0 {
			rest = rest[1:]
		}
	}
	return sign + whole + rest, true
}

// isJSONNumber reports whether a decimal YAML number is also a JSON number, which is the usual
// case.
func isJSONNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	n, rest := digits(s)
	if n == 0 || n > 1 && s[0] == '0' || rest != "" && (rest[0] == 'x' || rest[0] == 'o') {
		return false
	}
	if strings.HasPrefix(rest, ".") {
		n, _ = digits(rest[1:])
		return n > 0
	}
	return true
}

// trap is a plain scalar that a YAML 1.1 reader understands differently.
type trap struct {
	rule    string
	reading string // description of the YAML 1.1 reading
	key     bool   // also matters for keys
}

// trapOf compares our reading of a plain scalar with that of YAML 1.1 (as its types are
// published and as PyYAML implements them). It returns the zero trap if both agree.
func trapOf(text string, r resolved) trap {
	if text == "" {
		return trap{}
	}
	switch c := text[0]; {
	case isDigit(c) || c == '-' || c == '+' || c == '.':
		return numberTrap(text, r)
	case text == "=" || text == "<<":
		return trap{ruleSpecial, "a special value", true}
	case len(text) <= 3:
		return wordTrap(text)
	}

	return trap{}
}

func wordTrap(text string) trap {
	switch text {
	case "yes", "Yes", "YES", "on", "On", "ON":
		return trap{ruleBool11, "true", true}
	case "no", "No", "NO", "off", "Off", "OFF":
		return trap{ruleBool11, "false", true}
	case "y", "Y": // published, but hardly any reader does it; a key such as the y of a point is accepted
		return trap{ruleBool11, "true", false}
	case "n", "N":
		return trap{ruleBool11, "false", false}
	}

	return trap{}
}

func numberTrap(text string, r resolved) trap {
	unsigned := strings.TrimLeft(text[:1], "+-") + text[1:]
	switch {
	case r.kind == Number && !r.finite:
		return trap{}
	case r.kind == Number && r.float:
		return floatTrap(text, unsigned)
	case r.kind == Number:
		return integerTrap(text, unsigned)
	case isDate(text):
		return trap{ruleDate11, "a date", true}
	case isSexagesimal(unsigned):
		return trap{ruleNumber11, "a number to the base 60", true}
	case isGrouped(unsigned):
		return trap{ruleNumber11, "the number " + strings.ReplaceAll(text, "_", ""), true}
	case !isDigit(text[0]) && hasRadix(unsigned, 'x', isHex), hasRadix(unsigned, 'b', isBinary):
		return trap{ruleNumber11, "a number", true}
	}

	return trap{}
}

// integerTrap handles integers: in YAML 1.1, 0777 is octal, and 08 and 0o17 are text.
func integerTrap(text, unsigned string) trap {
	switch {
	case unsigned[0] != '0' || len(unsigned) == 1 || unsigned[1] == 'x':
		return trap{}
	case unsigned[1] == 'o' || !all(unsigned, isOctal):
		return trap{ruleNumber11, "text", true}
	case len(strings.TrimLeft(unsigned, "0")) < 2:
		return trap{} // the same number in both readings
	}

	n, err := strconv.ParseInt(unsigned, 8, 64)
	if err != nil {
		return trap{ruleNumber11, "an octal number", true}
	}
	if text[0] == '-' {
		n = -n
	}
	return trap{ruleNumber11, "the number " + strconv.FormatInt(n, 10), true}
}

// floatTrap handles floats: YAML 1.1 requires a point, and a sign in the exponent.
func floatTrap(text, unsigned string) trap {
	e := strings.IndexAny(text, "eE")
	if e < 0 {
		if unsigned[0] == '.' && unsigned != text {
			return trap{ruleNumber11, "text", true}
		}
		return trap{}
	}

	signed := text[e+1] == '+' || text[e+1] == '-'
	if signed && strings.Contains(text[:e], ".") {
		return trap{}
	}
	return trap{ruleNumber11, "text", true}
}

// isGrouped recognizes numbers with underscores between their digits.
func isGrouped(s string) bool {
	if !strings.Contains(s, "_") || !isDigit(s[0]) && s[0] != '.' {
		return false
	}
	bare := strings.ReplaceAll(s, "_", "")
	if ok, _ := decimal(bare); ok {
		return true
	}
	return hasRadix(bare, 'x', isHex) || hasRadix(bare, 'b', isBinary)
}

func isBinary(c byte) bool { return c == '0' || c == '1' }

// isSexagesimal recognizes numbers such as 12:30:45 and 1:30.5: digits, then groups of :00 to
// :59.
func isSexagesimal(s string) bool {
	head, rest, found := strings.Cut(s, ":")
	if !found || !isDigit(s[0]) || !all(head, func(c byte) bool { return isDigit(c) || c == '_' }) {
		return false
	}
	rest, fraction, isFloat := strings.Cut(rest, ".")
	for _, group := range strings.Split(rest, ":") {
		if len(group) < 1 || len(group) > 2 || !all(group, isDigit) || len(group) == 2 && group[0] > '5' {
			return false
		}
	}
	if !isFloat && head[0] == '0' { // base-60 integers do not start with 0
		return false
	}
	return fraction == "" || all(fraction, func(c byte) bool { return isDigit(c) || c == '_' })
}

// isDate recognizes YAML 1.1 timestamps: 2026-01-31, or with a time 2026-1-31 12:30:45.
func isDate(s string) bool {
	if len(s) < 8 || !all(s[:4], isDigit) || s[4] != '-' {
		return false
	}
	month, rest := digits(s[5:])
	if month < 1 || month > 2 || !strings.HasPrefix(rest, "-") {
		return false
	}
	day, rest := digits(rest[1:])
	if day < 1 || day > 2 {
		return false
	}
	if rest == "" {
		return month == 2 && day == 2
	}
	return isTime(rest)
}

func isTime(s string) bool {
	if s[0] != 'T' && s[0] != 't' && !isBlank(s[0]) {
		return false
	}
	hours, rest := digits(strings.TrimLeft(s[1:], " \t"))
	if hours < 1 || hours > 2 || !strings.HasPrefix(rest, ":") {
		return false
	}
	minutes, rest := digits(rest[1:])
	if minutes != 2 || !strings.HasPrefix(rest, ":") {
		return false
	}
	seconds, rest := digits(rest[1:])
	return seconds == 2 && (rest == "" || strings.ContainsAny(rest[:1], ".Zz+- \t"))
}
