package wire

import "testing"

func FuzzReadID(f *testing.F) {
	for _, id := range []string{`1`, `-9007199254740991`, `"a"`, `"\u0061"`, `1.0`, `null`, `"\ud800"`} {
		f.Add([]byte(id))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		id, ok := ReadID(raw)
		if !ok {
			return
		}
		again, ok := ReadID([]byte(id.Text()))
		if !ok || id.Text() != string(raw) || again.Key() != id.Key() || id.Key() == "" {
			t.Fatalf("%q became %q with the key %q", raw, id.Text(), id.Key())
		}
	})
}

func FuzzReadLog(f *testing.F) {
	f.Add([]byte(`{"level":"info","logger":"a","data":{"b":1}}`))
	f.Add([]byte(`{"level":"loud","data":null}`))
	f.Fuzz(func(t *testing.T, params []byte) {
		log, refused := ReadLog(params)
		if refused != nil {
			return
		}
		text, err := log.Params()
		if err != nil {
			t.Fatalf("%+v can't be written: %v", log, err)
		}
		again, refused := ReadLog(text)
		if refused != nil || again.Level != log.Level || again.Logger != log.Logger {
			t.Fatalf("%+v became %+v, %v", log, again, refused)
		}
	})
}
