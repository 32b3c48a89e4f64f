package wire_test

import (
	"testing"

	"github.com/assent-dev/assent/rap/wire"
)

func TestChoice(t *testing.T) {
	src := `{"type":"user_choice","group_id":"g","id":"call_1","prompt":"Write?","choices":["Yes","No"],"default":1,"response_url":"http://127.0.0.1:1/a?t=%41"}`
	c, err := wire.ParseCallback([]byte(src))
	if err != nil || string(c.Append(nil)) != src {
		t.Fatal(err, string(c.Append(nil)))
	}
	a, err := wire.ParseAnswer([]byte(`{"id":"call_1","selected":2,"Selected":0}`))
	if err != nil || a.Selected != 2 {
		t.Fatal(a, err)
	}
	ts := `{"name":"n","endpoint":"http://h/invoke","tools":[{"name":"t","description":"","inputSchema":{"type":"object","additionalProperties":false},"annotations":{"destructive":true}}]}`
	s, err := wire.ParseToolset([]byte(ts))
	if err != nil || string(s.Append(nil)) != ts {
		t.Fatal(err)
	}
	if err := s.Tools[0].CheckArguments([]byte(`{"a":1}`)); err == nil {
		t.Fatal()
	} else {
		t.Log(err, s.Tools[0].Digest())
	}
	i, err := wire.ParseInvocation([]byte(`{"operation":"x","id":"1","group_id":"g","callback_url":"http://a/b","arguments":{"a":"\ud800"}}`))
	t.Log(i, err)
}
