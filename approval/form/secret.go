package form

import (
	"strings"
	"unicode"

	"github.com/assent-dev/assent/value"
)

// secretWords are words of names and titles that ask for something that
// a form must not carry: it is shown, kept and logged.
var secretWords = map[string]bool{
	"password": true, "passwords": true, "passwd": true, "pwd": true, "passphrase": true, "passcode": true,
	"secret": true, "secrets": true, "credential": true, "credentials": true, "token": true, "apikey": true,
	"pin": true, "otp": true, "totp": true, "cvv": true, "cvc": true, "ssn": true, "privatekey": true,
}

// secretPairs are two words in a row that do.
var secretPairs = map[string]bool{
	"api key": true, "access key": true, "private key": true, "signing key": true,
	"encryption key": true, "card number": true, "security code": true, "recovery code": true,
	"pass phrase": true, "pass word": true, "one time": true, "seed phrase": true,
}

// secret refuses a field that asks for a password, a key or the like.
func (r *reader) secret(path string, doc value.Value, f *Field) {
	format, _ := doc.Get("format")
	_, hidden := doc.Get("writeOnly")
	name := path[strings.LastIndex(path, ".")+1:]
	if f.Type == Boolean && format.Text == "" && !hidden {
		return // "has a password been set?" is answered by yes or no
	}
	if format.Text == "password" || hidden || asksSecret(name) || asksSecret(f.Title) {
		r.refused(path, "no field for a password, key or other secret: "+
			"a form is shown and kept. Let the person sign in where the secret belongs")
	}
}

// refused puts a refusal before one that came earlier at the same
// field: that a form is no vault is what its author must know.
func (r *reader) refused(path, want string) {
	if r.err == nil || strings.HasPrefix(r.err.Path, path) {
		r.err = &SchemaError{path, want}
	}
}

func asksSecret(text string) bool {
	all := words(text)
	for i, w := range all {
		if secretWords[w] || i > 0 && secretPairs[all[i-1]+" "+w] {
			return true
		}
	}

	return secretWords[strings.Join(all, "")]
}

// words splits a name or title at case, digits and everything that is
// no letter: userPassword2, api-key.
func words(text string) []string {
	var out []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			out = append(out, strings.ToLower(string(word)))
		}
		word = nil
	}
	letters := []rune(text)
	for i, c := range letters {
		switch {
		case !unicode.IsLetter(c):
			flush()
			continue
		case unicode.IsUpper(c) && i > 0 && unicode.IsLower(letters[i-1]):
			flush()
		}

		word = append(word, c)
	}

	flush()

	return out
}
