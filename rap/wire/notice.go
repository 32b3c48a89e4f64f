package wire

// ParseAnswer parses a user choice response. The caller has to check that the index is one of
// the choices. Errors are *Error.
func ParseAnswer(body []byte) (Answer, error) {
	o := document(body, "id", "selected")
	return read(o, Answer{ID: o.id("id"), Selected: o.index("selected")})
}

// ParseCloseThread parses a thread closure. Errors are *Error.
func ParseCloseThread(body []byte) (CloseThread, error) {
	o := document(body, "thread_id")
	return read(o, CloseThread{o.id("thread_id")})
}

// ParseCancelCall parses a cancellation. Errors are *Error.
func ParseCancelCall(body []byte) (CancelCall, error) {
	o := document(body, "thread_id", "tool_call_id")
	return read(o, CancelCall{o.id("thread_id"), o.id("tool_call_id")})
}

// ParseStatus parses a status check. Errors are *Error.
func ParseStatus(body []byte) (Status, error) {
	c, err := ParseCancelCall(body)
	return Status(c), err
}

// Append appends the encoded answer to dst.
func (a Answer) Append(dst []byte) []byte {
	w := open(dst)
	w.str("id", a.ID)
	w.index("selected", a.Selected)
	return w.close()
}

// Append appends the encoded closure to dst.
func (c CloseThread) Append(dst []byte) []byte {
	w := open(dst)
	w.str("thread_id", c.ThreadID)
	return w.close()
}

// Append appends the encoded cancellation to dst.
func (c CancelCall) Append(dst []byte) []byte {
	w := open(dst)
	w.str("thread_id", c.ThreadID)
	w.str("tool_call_id", c.ToolCallID)
	return w.close()
}

// Append appends the encoded status check to dst.
func (s Status) Append(dst []byte) []byte { return CancelCall(s).Append(dst) }
