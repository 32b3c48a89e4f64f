package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/assent-dev/assent/agent/content"
)

// answerTo makes an answer from the words of the command line.
func answerTo(request content.InputRequest, word string, more []string) (content.InputResponse, error) {
	reason := strings.Join(more, " ")
	switch q := request.(type) {
	case *content.ToolApprovalRequest:
		switch word {
		case "yes":
			return q.CreateApproval(reason), nil
		case "no":
			return q.CreateRejection(reason), nil
		case "edit":
			return q.CreateEdit(json.RawMessage(reason), "")
		}

		return nil, fmt.Errorf("%q: expected yes, no or edit JSON", word)
	case *content.StructuredInputRequest:
		switch word {
		case "data":
			return q.CreateResponse(json.RawMessage(reason))
		case "no":
			return q.CreateRejection(reason), nil
		}

		return nil, fmt.Errorf("%q: expected data JSON or no", word)
	}

	return nil, fmt.Errorf("a %T can't be answered here", request)
}
