package a2a

import (
	"errors"

	"github.com/assent-dev/assent/internal/jsonmsg"
	"github.com/assent-dev/assent/value"
)

// object is an object of a task. Null is the same as absent, as in all
// JSON of protobuf.
type object = jsonmsg.Fields

// DecodeTask reads a task, or the answer or stream event of an A2A
// server that holds one under task or statusUpdate. Names are taken as
// A2A writes them and in no other spelling, members of other names are
// ignored, a key twice is an error. Errors are of type *Error.
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

// DecodeMessage reads a message; see DecodeTask.
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

// readPart reads the one content that a part has.
func readPart(part object) Part {
	data, _ := part.Given("data") // null is data, too
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

// compact is data without white space, as people are shown it.
func compact(data []byte) []byte {
	tree, err := value.Parse(data, jsonmsg.Limits())
	if err != nil {
		return nil // there is none
	}
	return tree.AppendJSON(nil)
}
