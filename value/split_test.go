package value

import (
	"errors"
	"strings"
	"testing"
)

// split collects what SplitObject yields.
func split(src []byte) (members []RawMember, err error) {
	for m, err := range SplitObject(src) {
		if err != nil {
			return nil, err
		}
		members = append(members, m)
	}

	return members, nil
}

// The text is not read beyond the member at which the loop stops.
func TestSplitObjectStopsEarly(t *testing.T) {
	for m, err := range SplitObject([]byte(`{"a":1,"b" nonsense`)) {
		if m.Key != "a" || err != nil {
			t.Fatal(m, err)
		}
		break
	}

	if members, err := split([]byte(` {} `)); members != nil || err != nil {
		t.Error(members, err)
	}
}

func TestSplitObject(t *testing.T) {
	members, err := split([]byte(` { "a" : [1,{"b":"]}"}] , "\u0062":"x\\\"," ,"a":tru e } `))
	if err != nil {
		t.Fatal(err)
	}
	want := []RawMember{{"a", []byte(`[1,{"b":"]}"}]`)}, {"b", []byte(`"x\\\","`)}, {"a", []byte(`tru e`)}}
	if len(members) != len(want) {
		t.Fatalf("got %d members, want %d", len(members), len(want))
	}
	for i, w := range want {
		if members[i].Key != w.Key || string(members[i].Raw) != string(w.Raw) {
			t.Errorf("member %d: got %q %s, want %q %s", i, members[i].Key, members[i].Raw, w.Key, w.Raw)
		}
	}
}

func TestSplitObjectTakesAnyDepth(t *testing.T) {
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	members, err := split([]byte(`{"args":` + deep + `}`))
	if err != nil || len(members) != 1 || string(members[0].Raw) != deep {
		t.Fatalf("members %d, error %v", len(members), err)
	}
}

func TestSplitObjectRefuses(t *testing.T) {
	for _, src := range []string{
		``,
		` `,
		`[]`,
		`"a"`,
		`{`,
		`{"a"`,
		`{"a"}`,
		`{"a":`,
		`{"a":}`,
		`{"a":1`,
		`{"a":1,`,
		`{"a":1,}`,
		`{"a":1]`,
		`{"a":1}}`,
		`{"a":1} x`,
		`{a:1}`,
		`{"a`,
		`{"a\`,
		`{"a":"`,
		`{"a":"\`,
		`{"\ud800":1}`,
		`{"a":[}`,
		`{,}`,
		`{"a" 1}`,
		"{\"\xff\":1}",
	} {
		_, err := split([]byte(src))
		var bad *Error
		if !errors.As(err, &bad) || bad.Code != Syntax {
			t.Errorf("%s: got %v, want a syntax error", src, err)
		}
	}
}

func TestSplitArray(t *testing.T) {
	var items []string
	for raw, err := range SplitArray([]byte(` [ {"a":[1, "]"]} , tru e,[] ,"x,y"] `)) {
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, string(raw))
	}

	if got, want := strings.Join(items, "|"), `{"a":[1, "]"]}|tru e|[]|"x,y"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for raw, err := range SplitArray([]byte(`[1,2 nonsense`)) {
		if string(raw) != "1" || err != nil {
			t.Fatal(string(raw), err)
		}
		break
	}
}

func TestSplitArrayRefuses(t *testing.T) {
	for _, src := range []string{``, `{}`, `[`, `[1`, `[1,`, `[1,]`, `[,]`, `[1}`, `[1] x`, `["a`, `[1,,2]`} {
		var failed error
		for _, err := range SplitArray([]byte(src)) {
			failed = err
		}
		var bad *Error
		if !errors.As(failed, &bad) || bad.Code != Syntax {
			t.Errorf("%s: %v", src, failed)
		}
	}
}
