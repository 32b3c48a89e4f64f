package form

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/assent-dev/assent/internal/safetext"
	"github.com/assent-dev/assent/value"
)

// secretWords are words for secrets, which a form must not ask for, because its answers are shown,
// stored and logged. The words are written without accents.
var secretWords = wordSet(`
	password passwords passwd pwd pswd passphrase passcode passkey secret secrets credential credentials token apikey
	pin pincode otp totp mfa cvv cvc ssn privatekey privkey sshkey mnemonic
	passwort passworter kennwort kennworter geheimnis geheimzahl contrasena contrasenas senha senhas palavrapasse
	wachtwoord losenord adgangskode passord salasana haslo hasło heslo parola jelszo sifre şifre lozinka geslo slaptazodis
	пароль пароли κωδικος סיסמה سر पासवर्ड
	parola sandi losen salasana kodeord tunnusluku nenosiri credenziali identifiants zugangsdaten secreto segreto segredo
	jeton hemlig hemmelig tajne gizli секрет токен סוד גישה गुप्त`)

// secretStems are parts of words for secrets, for languages with compound words and inflection.
var secretStems = strings.Fields(`
	password passwort kennwort wachtwoord losenord passord adgangskod kodeord salasan contrasen geheimzahl zugangscode
	sicherheitscode einmalcode bestatigungscode verifizierungscode beveiligingscode verificatiecode sakerhetskod
	engangskod apischlussel privatschlussel zugriffsschlussel geheimschlussel tunnusluk jelszo jelszav lozink slaptazod
	парол секретн`)

// secretPairs are pairs of adjacent words for secrets.
var secretPairs = map[string]bool{
	"api key": true, "access key": true, "private key": true, "signing key": true, "ssh key": true, "secret key": true,
	"encryption key": true, "master key": true, "recovery key": true, "card number": true, "security code": true,
	"recovery code": true, "recovery phrase": true, "backup code": true, "sms code": true, "verification code": true,
	"login code": true, "auth code": true, "authentication code": true, "access code": true, "security answer": true,
	"pass phrase": true, "pass word": true, "one time": true, "seed phrase": true, "seed words": true,
	"clave api": true, "clave acceso": true, "clave privada": true, "clave secreta": true, "codigo seguridad": true,
	"codigo verificacion": true, "cle api": true, "cle privee": true, "cle secrete": true, "cle acces": true,
	"code confidentiel": true, "code verification": true, "code securite": true, "code pin": true,
	"codigo seguranca": true, "codigo verificacao": true, "chave api": true, "chave privada": true,
	"chave acesso":  true,
	"palavra passe": true, "codice sicurezza": true, "codice verifica": true, "codice segreto": true,
	"chiave api":     true,
	"chiave privata": true, "parola ordine": true, "api schlussel": true, "privater schlussel": true,
	"geheimer schlussel": true, "api sleutel": true, "geheime sleutel": true, "klucz api": true, "klucz prywatny": true,
	"kod weryfikacyjny": true, "klic api": true, "dogrulama kodu": true, "api anahtari": true,
	"код подтверждения": true,
	"код безопасности":  true, "код доступа": true, "ключ доступа": true, "ключ api": true, "приватныи ключ": true,
	"ma xac": true, "kode verifikasi": true, "kode otp": true, "cod verificare": true, "titkos kulcs": true,
	"mot passe": true, "code secret": true, "mat khau": true, "kata sandi": true,
}

// secretTexts are words for secrets in languages without spaces between words.
var secretTexts = []string{
	"密码", "密碼", "口令", "验证码", "驗證碼", "密钥", "密鑰", "パスワード", "暗証番号", "秘密鍵", "비밀번호", "암호", "รหัสผ่าน", "كلمة المرور",
	"令牌", "私钥", "私鑰", "助记词", "助記詞", "安全码", "安全碼", "动态码", "暗号", "合言葉", "秘密の", "認証コード", "確認コード", "トークン", "APIキー",
	"비밀 번호", "인증번호", "인증 코드", "개인키", "토큰", "รหัสลับ", "كلمة السر", "الرقم السري", "رمز التحقق", "رمز عبور", "گذرواژه",
	"পাসওয়ার্ড", "கடவுச்சொல்", "గుప్తపదం",
}

// likeSecrets are long words that are also recognized if one letter is wrong, missing, added or
// swapped.
var likeSecrets = []string{"password", "passwords", "passphrase", "passcode", "credential", "credentials"}

// aboutSecrets are words that may follow one of secretWords in the name of a field that is not
// secret: token_count, secret_name, password_policy.
var aboutSecrets = wordSet(`
	count counts limit limits budget usage used name names type types kind policy length size expiry expires expiration
	ttl lifetime age reset rotation santa manager strength provider store scope scopes owner status`)

// postal are words about addresses, which may contain a PIN code.
var postal = wordSet(`postal postcode zip zipcode postleitzahl india`)

func wordSet(text string) map[string]bool {
	out := map[string]bool{}
	for _, word := range strings.Fields(text) {
		out[word] = true
	}

	return out
}

// secret refuses a field that asks for a password, a key or similar.
func (r *reader) secret(path string, doc value.Value, f *Field) {
	format, _ := doc.Get("format")
	_, hidden := doc.Get("writeOnly")
	name := path[strings.LastIndex(path, ".")+1:]
	if f.Type == Boolean && format.Text == "" && !hidden {
		return // "has a password been set?" is answered by yes or no
	}
	if format.Text != "password" && !hidden && isPostal(name+" "+f.Title+" "+f.Help) {
		return
	}
	if isNumber := f.Type == Integer || f.Type == Number; isNumber && !asksSecret(withoutTokens(name), true) {
		name = ""
	}
	if format.Text == "password" || hidden || asksSecret(name, true) || asksSecret(f.Title, true) ||
		asksSecret(f.Help, false) {
		r.refused(path, "no field for a password, key or other secret: "+
			"a form is shown and kept. Let the person sign in where the secret belongs")
	}
}

// isPostal reports whether a field asks for the PIN code of an address and for no secret.
func isPostal(text string) bool {
	all := words(withoutAccents(text))
	rest := slices.DeleteFunc(slices.Clone(all), func(w string) bool { return w == "pin" || w == "pincode" })
	return len(rest) < len(all) && slices.ContainsFunc(rest, func(w string) bool { return postal[w] }) &&
		!asksPlainly(strings.Join(rest, " "), true)
}

// withoutTokens removes the words token and tokens, because a number of tokens is not a secret.
func withoutTokens(name string) string {
	return strings.Join(slices.DeleteFunc(words(name), func(w string) bool { return w == "token" || w == "tokens" }),
		" ")
}

// refused records that a field asks for a secret. It replaces an earlier error about the same
// field, because this one matters more to the schema's author.
func (r *reader) refused(path, want string) {
	if r.err == nil || strings.HasPrefix(r.err.Path, path) {
		r.err = &SchemaError{path, want}
	}
}

// asksSecret reports whether a text asks for a secret, even if it is written with similar-looking
// letters, with digits for letters, or with a typing error. name is set for the name of a field;
// only there "one time" counts as a sign.
func asksSecret(text string, name bool) bool {
	if slices.ContainsFunc(secretTexts, func(w string) bool { return strings.Contains(text, w) }) {
		return true
	}
	alike := strings.Map(func(c rune) rune {
		if ascii, ok := safetext.Letter(c); ok {
			return ascii
		}
		return c
	}, text)
	for _, form := range []string{text, alike, digitsAsLetters.Replace(alike)} {
		if asksPlainly(withoutAccents(form), name) {
			return true
		}
	}

	return false
}

// digitsAsLetters replaces digits and signs by the letters that they resemble: passw0rd.
var digitsAsLetters = strings.NewReplacer(
	"0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t", "8", "b", "$", "s", "@", "a", "!", "i",
)

func withoutAccents(text string) string {
	return norm.NFKC.String(strings.Map(func(c rune) rune {
		if unicode.Is(unicode.Mn, c) {
			return -1
		}
		return c
	}, norm.NFKD.String(text)))
}

func asksPlainly(text string, name bool) bool {
	all := slices.DeleteFunc(words(text), func(w string) bool { return joining[w] })
	for i, w := range all {
		before := ""
		if i > 0 {
			before = all[i-1]
		}
		if name && i+1 < len(all) && aboutSecrets[all[i+1]] {
			continue
		}
		pair := before + " " + w
		if secretWords[w] || secretPairs[pair] && (name || pair != "one time") || almost(w) || hasStem(w) {
			return true
		}
	}

	return name && secretWords[strings.Join(all, "")]
}

// joining are words that may occur in the middle of a pair: mot de passe.
var joining = wordSet(`de di da do del des du of la d`)

func hasStem(word string) bool {
	return slices.ContainsFunc(secretStems, func(stem string) bool { return strings.Contains(word, stem) })
}

// almost reports whether a word differs from one of likeSecrets by one letter.
func almost(word string) bool {
	return slices.ContainsFunc(likeSecrets, func(secret string) bool { return oneApart([]rune(word), []rune(secret)) })
}

func oneApart(a, b []rune) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch {
	case len(b)-len(a) > 1:
		return false
	case len(a) < len(b):
		return slices.Equal(a[i:], b[i+1:])
	case i == len(a):
		return true
	case slices.Equal(a[i+1:], b[i+1:]):
		return true
	}

	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && slices.Equal(a[i+2:], b[i+2:])
}

// words splits a name or title at case changes, digits and other characters that are not letters:
// userPassword2, api-key.
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
