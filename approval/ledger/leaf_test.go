package ledger

import (
	"strings"
	"testing"
	"time"
)

const plainLeaf = `{"actor":"ann","facts":{"n":1},"sealed":{"args":"sha256:` +
	`0000000000000000000000000000000000000000000000000000000000000000"},"subject":"req-1","tenant":"t",` +
	`"time":"2026-11-21T16:00:00.000001Z","type":"vote","v":1}`

func TestParseLeaf(t *testing.T) {
	l, err := ParseLeaf([]byte(plainLeaf))
	must(t, err)
	if want := time.Date(2026, 11, 21, 16, 0, 0, 1000, time.UTC); !l.Time.Equal(want) {
		t.Errorf("time %v, want %v", l.Time, want)
	}
	if n, ok := l.Facts.Get("n"); !ok || n.Num.String() != "1" {
		t.Errorf("facts %s", l.Facts.AppendJSON(nil))
	}
	if _, ok := l.Sealed["args"]; !ok || len(l.Sealed) != 1 {
		t.Errorf("sealed %v", l.Sealed)
	}
}

func TestParseLeafRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ from, to, want string }{
		"nothing":         {plainLeaf, "", "line 1, column 1"},
		"no object":       {plainLeaf, `[]`, "expected an object"},
		"no members":      {plainLeaf, `{}`, `"actor" is missing`},
		"duplicate key":   {`"facts":`, `"actor":1,"facts":`, "duplicate key"},
		"unknown key":     {`"facts":`, `"b":1,"facts":`, `unexpected member "b"`},
		"missing key":     {`"type":"vote",`, ``, `unexpected member "v"`},
		"more keys":       {`"v":1`, `"v":1,"w":1`, `unexpected member "w"`},
		"space":           {`"v":1`, `"v": 1`, "not canonical"},
		"order":           {`"actor":"ann","facts":{"n":1}`, `"facts":{"n":1},"actor":"ann"`, "not canonical"},
		"escape":          {`"ann"`, `"\u0061nn"`, "not canonical"},
		"number":          {`{"n":1}`, `{"n":1.0}`, "not canonical"},
		"trailing":        {`"v":1}`, `"v":1}x`, "line 1"},
		"version":         {`"v":1`, `"v":2`, "another version"},
		"version's kind":  {`"v":1`, `"v":"1"`, "another version"},
		"facts":           {`{"n":1}`, `[]`, `"facts" is of kind array`},
		"actor":           {`"ann"`, `null`, `"actor" is of kind null`},
		"empty type":      {`"vote"`, `""`, `"type" is empty`},
		"empty tenant":    {`"tenant":"t"`, `"tenant":""`, "no tenant"},
		"tenant":          {`"tenant":"t"`, `"tenant":"\u007f"`, "not canonical"},
		"time":            {`000001Z`, `00001Z`, `"time" is not of the form`},
		"time zone":       {`000001Z`, `000001+00:00`, `"time" is not of the form`},
		"comma":           {`.000001Z`, `,000001Z`, `"time" is not of the form`},
		"no such day":     {`11-21`, `02-30`, `"time" is not of the form`},
		"zero time":       {`2026-11-21T16:00:00.000001`, `0001-01-01T00:00:00.000000`, `"time" is not of the form`},
		"sealed":          {`{"args":"sha256:` + strings.Repeat("0", 64) + `"}`, `1`, `"sealed" is of kind number`},
		"sealed name":     {`"args"`, `"Args"`, "can't name"},
		"digest":          {`sha256:00`, `sha256:0`, "the digest of args"},
		"digest's case":   {`sha256:00`, `sha256:AA`, "the digest of args"},
		"digest's digits": {`sha256:00`, `sha256:xx`, "the digest of args"},
		"digest's name":   {`sha256:00`, `sha512:00`, "the digest of args"},
		"digest's kind":   {`"sha256:` + strings.Repeat("0", 64) + `"`, `true`, "the digest of args"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(plainLeaf, tt.from, tt.to, 1)
			if text == plainLeaf {
				t.Fatal("the case changes nothing")
			}
			_, err := ParseLeaf([]byte(text))
			fails(t, err, tt.want)
		})
	}

	_, err := ParseLeaf([]byte(strings.Replace(plainLeaf, `"t"`, "\"\x7f\"", 1)))
	fails(t, err, "control characters")
}
