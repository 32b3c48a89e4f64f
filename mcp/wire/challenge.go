package wire

import "strings"

// Challenge holds the parameters of a server's Bearer challenge (RFC 6750 section 3, RFC 9728
// section 5.1). Absent parameters are empty.
type Challenge struct {
	Error    string // such as "insufficient_scope"
	Scope    string // scopes that the request needs, separated by spaces
	Metadata string // address of the server's metadata
}

// InsufficientScope is the error of a challenge if the token lacks scopes.
const InsufficientScope = "insufficient_scope"

// ReadChallenge returns the first Bearer challenge of the values of WWW-Authenticate (RFC 9110
// section 11.6.1). It returns false and no parameters if there is none, or if one of its parameters
// is given twice.
func ReadChallenge(values []string) (c Challenge, ok bool) {
	for _, text := range values {
		for s := (scanner{text: text}); s.next(); {
			if !strings.EqualFold(s.scheme, "Bearer") {
				continue
			}
			if s.twice {
				return c, false
			}
			return Challenge{
				Error:    s.params["error"],
				Scope:    s.params["scope"],
				Metadata: s.params["resource_metadata"],
			}, true
		}
	}
	return c, false
}

// scanner reads the challenges of one header.
type scanner struct {
	text   string
	scheme string
	params map[string]string
	twice  bool // a parameter is given twice
}

// next reads the next challenge.
func (s *scanner) next() bool {
	s.skip(", \t")
	s.scheme, s.params, s.twice = s.token(), map[string]string{}, false
	for s.scheme != "" {
		rest := s.text
		s.skip(", \t")
		name := strings.ToLower(s.token())
		s.skip(" \t")
		if name == "" || !strings.HasPrefix(s.text, "=") {
			s.text = rest // another scheme, or the end
			return true
		}
		s.text = s.text[1:]
		s.skip(" \t")
		value, sound := s.value()
		if _, has := s.params[name]; has || !sound {
			s.twice = true
		}
		s.params[name] = value
	}
	return false
}

func (s *scanner) skip(characters string) { s.text = strings.TrimLeft(s.text, characters) }

// token reads a token; it is empty if there is none.
func (s *scanner) token() string {
	end := strings.IndexFunc(s.text, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
	if end < 0 {
		end = len(s.text)
	}
	token := s.text[:end]
	s.text = s.text[end:]
	return token
}

// value reads a token or a quoted string. It returns false if the quotes are not closed.
func (s *scanner) value() (string, bool) {
	if !strings.HasPrefix(s.text, `"`) {
		end := strings.IndexAny(s.text, ", \t")
		if end < 0 {
			end = len(s.text)
		}
		value := s.text[:end]
		s.text = s.text[end:]
		return value, true
	}
	var out strings.Builder
	for i := 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			s.text = s.text[i+1:]
			return out.String(), true
		case c == '\\' && i+1 < len(s.text):
			i++
			out.WriteByte(s.text[i])
		default:
			out.WriteByte(c)
		}
	}
	s.text = ""
	return "", false
}
