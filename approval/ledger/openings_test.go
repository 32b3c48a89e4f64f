package ledger

import (
	"strings"
	"testing"
)

const plainOpenings = `{"args":{"salt":"QUFBQUFBQUFBQUFBQUFBQQ==","value":"{}"}}`

func TestParseOpenings(t *testing.T) {
	for _, text := range []string{
		plainOpenings,
		" {\n\"args\" : {\"value\": \"{}\", \"salt\": \"QUFBQUFBQUFBQUFBQUFBQQ==\"} } ", // as jsonb formats it
	} {
		o, err := ParseOpenings([]byte(text))
		must(t, err)
		if want := (Opening{[16]byte([]byte("AAAAAAAAAAAAAAAA")), "{}"}); len(o) != 1 || o["args"] != want {
			t.Errorf("got %v", o)
		}
		if got := string(appendOpenings(nil, o.sorted())); got != plainOpenings {
			t.Errorf("written again: %s", got)
		}
	}

	for _, text := range []string{"", "{}"} {
		if o, err := ParseOpenings([]byte(text)); err != nil || len(o) != 0 {
			t.Errorf("%q: %v, %v", text, o, err)
		}
	}
}

func TestParseOpeningsRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ from, to, want string }{
		"null":          {plainOpenings, `null`, "expected an object"},
		"half":          {`"}}`, `"}`, "line 1"},
		"duplicate key": {`"value":"{}"`, `"value":"{}","value":"{}"`, "duplicate key"},
		"duplicate":     {`}}`, `},"args":{}}`, "duplicate key"},
		"name":          {`"args"`, `"a b"`, "can't name"},
		"no object":     {plainOpenings, `{"args":1}`, "the opening of args: found a JSON value of kind number"},
		"no value":      {`,"value":"{}"`, ``, `"value" is missing`},
		"no salt":       {`"salt":"QUFBQUFBQUFBQUFBQUFBQQ==",`, ``, `unexpected member "value"`},
		"more":          {`"value":"{}"`, `"value":"{}","x":1`, `unexpected member "x"`},
		"short salt":    {`QUFBQUFBQUFBQUFBQUFBQQ==`, `QUFB`, "base64 of 16 bytes"},
		"loose salt":    {`QQ==`, `QR==`, "base64 of 16 bytes"},
		"broken salt":   {`QQ==`, `Q!==`, "base64 of 16 bytes"},
		"value":         {`"{}"`, `{}`, "nested"},
		"value's kind":  {`"{}"`, `1`, "of kind number, expected a string"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseOpenings([]byte(strings.Replace(plainOpenings, tt.from, tt.to, 1)))
			fails(t, err, tt.want)
		})
	}
}

func TestCheck(t *testing.T) {
	r := seal(t, testEntry(1), fixed(0))
	other := seal(t, testEntry(2), fixed(0))
	more := strings.Replace(string(r.Openings), `"args"`, `"brgs"`, 1)
	for _, tt := range []struct {
		name, leaf, openings string
		redacted             int
		want                 string
	}{
		{"whole", string(r.Leaf), string(r.Openings), 0, ""},
		{"redacted", string(r.Leaf), "", 2, ""},
		{"of another entry", string(r.Leaf), string(other.Openings), 0, "the opening of args does not match"},
		{
			"salt",
			string(r.Leaf),
			strings.Replace(string(r.Openings), "QUFB", "QUFC", 1),
			0,
			"the opening of args does not match",
		},
		{"unknown", string(r.Leaf), more, 0, "the opening of brgs belongs to nothing"},
		{"leaf", "x", "", 0, "line 1"},
		{"openings", string(r.Leaf), "x", 0, "line 1"},
	} {
		redacted, err := Check([]byte(tt.leaf), []byte(tt.openings))
		if redacted != tt.redacted {
			t.Errorf("%s: %d redacted, want %d", tt.name, redacted, tt.redacted)
		}
		if tt.want == "" && err != nil {
			t.Errorf("%s: %v", tt.name, err)
		} else if tt.want != "" {
			fails(t, err, tt.want)
		}
	}
}

func TestRedact(t *testing.T) {
	openings := seal(t, testEntry(1), fixed(0)).Openings
	left, err := Redact(openings, "reason", "never-there")
	if err != nil || strings.Contains(string(left), "because") || !strings.Contains(string(left), "amount") {
		t.Errorf("got %s, %v", left, err)
	}
	if left, err = Redact(left, "args"); err != nil || left != nil {
		t.Errorf("got %s, %v, want nothing", left, err)
	}
	if left, err = Redact(nil, "args"); err != nil || left != nil {
		t.Errorf("got %s, %v, want nothing", left, err)
	}
	_, err = Redact([]byte("[]"), "args")
	fails(t, err, "redact: ")
}
