package wire

import (
	"encoding/json"
	"errors"
)

var errLater = errors.New("being written")

// ParseToolset reads a manifest. All of it is valid, or none of it is used (D3, D4). Errors are *Error.
func ParseToolset(body []byte) (*Toolset, error) { return nil, errLater }

// ParseInvocation reads an invocation. After an error the invocation holds what could be read: with CallbackURL, GroupID and ID the sender
// can still be told by a result.
func ParseInvocation(body []byte) (Invocation, error) { return Invocation{}, errLater }

// ParseCallback reads a callback of any type.
func ParseCallback(body []byte) (Callback, error) { return nil, errLater }

// ParseAnswer reads a user choice response. Whether the index is one of the choices is the caller's to see.
func ParseAnswer(body []byte) (Answer, error) { return Answer{}, errLater }

// ParseCloseThread reads a thread closure.
func ParseCloseThread(body []byte) (CloseThread, error) { return CloseThread{}, errLater }

// ParseCancelCall reads a cancellation.
func ParseCancelCall(body []byte) (CancelCall, error) { return CancelCall{}, errLater }

// ParseStatus reads a status check.
func ParseStatus(body []byte) (Status, error) { return Status{}, errLater }

// CheckArguments holds the arguments of a call to the tool's schema, which a stranger may have written: what compiling and checking may cost is
// bounded. Errors name the place.
func (t *Tool) CheckArguments(args json.RawMessage) error { return errLater }

// Digest identifies what a tool says about itself: "sha256:…". A tool that changed is another tool.
func (t *Tool) Digest() string { return "" }

// Append writes a message, type first, without what is not there.
func (t *Toolset) Append(dst []byte) []byte    { return dst }
func (i *Invocation) Append(dst []byte) []byte { return dst }
func (r *Result) Append(dst []byte) []byte     { return dst }
func (c *Choice) Append(dst []byte) []byte     { return dst }
func (o *OAuth) Append(dst []byte) []byte      { return dst }
func (e *Event) Append(dst []byte) []byte      { return dst }
func (v *View) Append(dst []byte) []byte       { return dst }
func (a Answer) Append(dst []byte) []byte      { return dst }
func (c CloseThread) Append(dst []byte) []byte { return dst }
func (c CancelCall) Append(dst []byte) []byte  { return dst }
func (s Status) Append(dst []byte) []byte      { return dst }

func (r *Result) Group() string { return r.GroupID }
func (c *Choice) Group() string { return c.GroupID }
func (o *OAuth) Group() string  { return o.GroupID }
func (e *Event) Group() string  { return e.GroupID }
func (v *View) Group() string   { return v.GroupID }
func (r *Result) Call() string  { return r.ID }
func (c *Choice) Call() string  { return c.ID }
func (o *OAuth) Call() string   { return o.ID }
func (e *Event) Call() string   { return e.ToolCallID }
func (v *View) Call() string    { return "" }
