package anthropic

import (
	"io"
	"iter"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/assent-dev/assent/agent"
	"github.com/assent-dev/assent/agent/content"
)

// Exported for tests without a service.
var (
	ParseResponse = parseResponse
	InvalidJSON   = invalidJSON
)

// Body returns the request body for some messages.
func Body(messages []*content.Message) ([]byte, error) {
	q, err := (&client{model: "m", maxTokens: 1}).request(messages, nil)
	if err != nil {
		return nil, err
	}
	return q.body(false), nil
}

// ReadStream reads the text of a stream.
func ReadStream(text string) iter.Seq2[*agent.Update, error] {
	return func(yield func(*agent.Update, error) bool) {
		readStream(200, ssestream.NewDecoder(&http.Response{Body: io.NopCloser(strings.NewReader(text))}), yield)
	}
}
