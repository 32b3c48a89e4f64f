package wire

import (
	"encoding/json"
	"slices"

	"github.com/assent-dev/assent/internal/jsonmsg"
)

// MethodLevel is the method by which a legacy client sets the lowest level of server logs that it
// wants.
const MethodLevel = "logging/setLevel"

// Log is a log message of a server.
type Log struct {
	Level  string          // one that LogRank knows
	Logger string          // who wrote it; "" when the server doesn't say
	Data   json.RawMessage // any JSON
}

// LogRank returns the position of a log level, starting at 0 for debug. It returns -1 for an
// unknown level.
func LogRank(level string) int {
	return slices.Index([]string{
		"debug",
		"info",
		"notice",
		"warning",
		"error",
		"critical",
		"alert",
		"emergency",
	}, level)
}

// ReadLog reads the params of notifications/message.
func ReadLog(params []byte) (Log, *Error) {
	f := jsonmsg.Read(objectOr(params), Limits())
	l := Log{Level: f.NonEmpty("level"), Logger: f.Text("logger"), Data: f.Raw("data")}
	if f.Err() != nil || LogRank(l.Level) < 0 || l.Data == nil {
		return l, Fail(CodeInvalidParams, "params: expected a level of the protocol, and data")
	}
	return l, nil
}

// Params writes the params of notifications/message.
func (l Log) Params() (json.RawMessage, error) {
	return jsonmsg.Object(func(w *jsonmsg.Writer) {
		w.Member("level", l.Level)
		w.Optional("logger", l.Logger)
		w.Name("data").Verbatim(l.Data)
	})
}
