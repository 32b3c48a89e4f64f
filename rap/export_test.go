package rap

import "github.com/assent-dev/assent/approval"

// SentAs are the names under which a runtime of a key and room sends the call of an asker.
func SentAs(key []byte, room string, who approval.Asker, thread, id string) (group, call string) {
	names, err := newNamer(&RuntimeConfig{Common: Common{Key: key, Room: room}})
	if err != nil {
		panic(err)
	}
	sent := names.sent(who, &Invocation{Thread: thread, ID: id})

	return sent.Group, sent.ID
}
