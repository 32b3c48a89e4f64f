package a2a

import (
	"errors"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// object is an object of a task. Null is the same as absent, as in all protobuf JSON.
type object = jsonmsg.Fields

// DecodeTask reads a task, or a response or stream event of an A2A server that contains one
// under task or statusUpdate. Member names must be spelled exactly as in A2A. Other members are
// ignored. A duplicate key is an error. Errors are of type *Error.
func DecodeTask(src []byte) (*Task, error) {
	task := jsonmsg.Read(src, jsonmsg.Limits())
	id := "id"
	switch {
	case task.Has("task"):
		task = task.Object("task")
	case task.Has("statusUpdate"):
		task, id = task.Object("statusUpdate"), "taskId"
	}

	out := &Task{
		ID:        task.NonEmpty(id),
		ContextID: task.Text("contextId"),
		Status:    readStatus(task.Required("status")),
	}
	for _, a := range task.Objects("artifacts") {
		out.Artifacts = append(out.Artifacts, Artifact{
			ArtifactID: a.NonEmpty("artifactId"),
			Name:       a.Text("name"),
			Parts:      readParts(a),
		})
	}

	if err := task.Err(); err != nil {
		return nil, badMessage(err)
	}
	return out, nil
}

// DecodeMessage reads a message. See DecodeTask.
func DecodeMessage(src []byte) (*Message, error) {
	message := jsonmsg.Read(src, jsonmsg.Limits())
	out := readMessage(message)
	if err := message.Err(); err != nil {
		return nil, badMessage(err)
	}
	return out, nil
}

func badMessage(err error) *Error {
	var unsound *value.Error
	if errors.As(err, &unsound) {
		err = unsound
	}
	return wrap(BadMessage, "", err)
}

func readStatus(status object) Status {
	out := Status{State: State(status.NonEmpty("state")), Timestamp: status.Text("timestamp")}
	if status.Has("message") {
		out.Message = readMessage(status.Object("message"))
	}
	return out
}

func readMessage(message object) *Message {
	out := &Message{
		MessageID: message.NonEmpty("messageId"),
		ContextID: message.Text("contextId"),
		TaskID:    message.Text("taskId"),
		Role:      Role(message.NonEmpty("role")),
	}
	if !message.Has("parts") {
		message.Expect("parts", "an array, found nothing")
	}
	out.Parts = readParts(message)
	return out
}

func readParts(of object) []Part {
	var out []Part
	for _, part := range of.Objects("parts") {
		out = append(out, readPart(part))
	}
	return out
}

// readPart reads a part, which must have exactly one content.
func readPart(part object) Part {
	data, _ := part.Given("data") // null is data too
	out := Part{
		Text:      part.Optional("text"),
		Data:      compact(data),
		URL:       part.Optional("url"),
		Raw:       part.Optional("raw"),
		Filename:  part.Text("filename"),
		MediaType: part.Text("mediaType"),
	}

	contents := 0
	for _, given := range []bool{out.Text != nil, out.Data != nil, out.URL != nil, out.Raw != nil} {
		if given {
			contents++
		}
	}
	if contents != 1 {
		part.Fail(&jsonmsg.Error{Path: part.Path, Expected: "one of text, raw, url and data"})
	}
	return out
}

// compact removes white space from data that is shown to people.
func compact(data []byte) []byte {
	tree, err := value.Parse(data, jsonmsg.Limits())
	if err != nil {
		return nil // there is none
	}
	return tree.AppendJSON(nil)
}
