package value

import (
	"fmt"
	"iter"
)

// RawMember is one member of an object with the unchanged bytes of its value.
type RawMember struct {
	Key string // unescaped
	Raw []byte // without surrounding white space
}

// SplitObject iterates over the top-level members of a JSON object without validating their
// values: it only matches brackets and strings, at any depth and without recursion. It is for
// envelopes whose payload is validated separately. Repeated keys are yielded as they occur. If
// the text is not a single object, the iteration ends with an *Error with the code Syntax. The
// text is read only as far as the loop goes.
func SplitObject(src []byte) iter.Seq2[RawMember, error] {
	return func(yield func(RawMember, error) bool) {
		s := splitter{src: src}
		if err := s.object(func(m RawMember) bool { return yield(m, nil) }); err != nil {
			yield(RawMember{}, err)
		}
	}
}

// SplitArray iterates over the items of a JSON array like SplitObject. Each item is an
// unchanged part of src.
func SplitArray(src []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		s := splitter{src: src}
		if err := s.array(func(raw []byte) bool { return yield(raw, nil) }); err != nil {
			yield(nil, err)
		}
	}
}

type splitter struct {
	src []byte
	pos int
}

// object reads the whole text, unless yield returns false.
func (s *splitter) object(yield func(RawMember) bool) error {
	s.space()
	if !s.take('{') {
		return s.fail("expected an object: {")
	}
	s.space()
	for more := !s.take('}'); more; more = !s.take('}') {
		m, err := s.member()
		if err != nil {
			return err
		}
		if !yield(m) {
			return nil
		}
		if err := s.comma(); err != nil {
			return err
		}
	}

	if s.space(); s.pos != len(s.src) {
		return s.fail("unexpected text after the object")
	}
	return nil
}

// array reads the whole text, unless yield returns false.
func (s *splitter) array(yield func([]byte) bool) error {
	s.space()
	if !s.take('[') {
		return s.fail("expected an array: [")
	}
	s.space()
	for more := !s.take(']'); more; more = !s.take(']') {
		raw, err := s.value()
		if err != nil {
			return err
		}
		if !yield(raw) {
			return nil
		}
		s.space()
		if err := s.between(']', "an item"); err != nil {
			return err
		}
	}

	if s.space(); s.pos != len(s.src) {
		return s.fail("unexpected text after the array")
	}
	return nil
}

// comma steps over a comma between two members, and stops at the end of the object.
func (s *splitter) comma() error { return s.between('}', "a member") }

// between steps over a comma between two parts, and stops at the closing bracket.
func (s *splitter) between(end byte, part string) error {
	if s.pos < len(s.src) && s.src[s.pos] == end {
		return nil
	}
	if !s.take(',') {
		return s.fail("expected , or " + string(end))
	}
	if s.space(); s.pos < len(s.src) && s.src[s.pos] == end {
		return s.fail("expected " + part + " after the comma")
	}
	return nil
}

func (s *splitter) member() (RawMember, error) {
	start := s.pos
	if err := s.str(); err != nil {
		return RawMember{}, err
	}
	key, err := Parse(s.src[start:s.pos], Limits{})
	if err != nil {
		return RawMember{}, s.fail(fmt.Sprintf("unreadable key: %v", err))
	}
	s.space()
	if !s.take(':') {
		return RawMember{}, s.fail("expected :")
	}
	s.space()
	raw, err := s.value()
	if err != nil {
		return RawMember{}, err
	}
	s.space()
	return RawMember{Key: key.Text, Raw: raw}, nil
}

// value skips to the end of one value: the first comma or closing bracket at its own level.
func (s *splitter) value() ([]byte, error) {
	start, depth := s.pos, 0
	for s.pos < len(s.src) {
		switch s.src[s.pos] {
		case '"':
			if err := s.str(); err != nil {
				return nil, err
			}
			continue
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 0 {
				return s.raw(start)
			}
			if s.src[s.pos] != ',' {
				depth--
			}
		}

		s.pos++
	}

	return nil, s.fail("the text ends inside a value")
}

func (s *splitter) raw(start int) ([]byte, error) {
	end := s.pos
	for end > start && isSpace(s.src[end-1]) {
		end--
	}
	if end == start {
		return nil, s.fail("expected a value")
	}
	return s.src[start:end], nil
}

func (s *splitter) str() error {
	if !s.take('"') {
		return s.fail("expected a string")
	}
	for s.pos < len(s.src) {
		switch s.src[s.pos] {
		case '\\':
			s.pos++
		case '"':
			s.pos++
			return nil
		}

		s.pos++
	}

	s.pos = len(s.src)
	return s.fail("the text ends inside a string")
}

func (s *splitter) take(c byte) bool {
	if s.pos < len(s.src) && s.src[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func (s *splitter) space() {
	for s.pos < len(s.src) && isSpace(s.src[s.pos]) {
		s.pos++
	}
}

func (s *splitter) fail(detail string) error {
	return newError(s.src, Syntax, s.pos, detail)
}
