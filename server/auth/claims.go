package auth

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/assent-dev/assent/internal/pattern"
	"github.com/assent-dev/assent/server/directory"
)

// claims returns a provider's claims about a person. They come from the ID token, and
// claims that it lacks from the UserInfo endpoint: OpenID Connect requires only the subject
// in the ID token.
func (p *provider) claims(
	ctx context.Context, d *discovered, token *oidc.IDToken, tokens *oauth2.Token,
) (directory.Claims, error) {
	c := directory.Claims{Issuer: token.Issuer, Subject: token.Subject}
	said := map[string]any{}
	if err := token.Claims(&said); err != nil {
		return c, fmt.Errorf("read the ID token: %w", err)
	}
	if p.lacks(said) && d.provider.UserInfoEndpoint() != "" {
		more, err := userInfo(ctx, d.provider, token.Subject, tokens)
		if err != nil {
			return c, err
		}
		p.complete(said, more)
	}

	p.read(&c, said)
	return c, nil
}

// The claims of the mail address, which must have the same source, and of the name.
const (
	claimEmail    = "email"
	claimVerified = "email_verified"
	claimName     = "name"
)

// lacks reports whether an ID token has no mail address, no email_verified, or no groups.
func (p *provider) lacks(said map[string]any) bool {
	for _, name := range []string{claimEmail, claimVerified, p.GroupsClaim} {
		if _, ok := said[name]; !ok {
			return true
		}
	}
	return false
}

// complete adds claims from UserInfo that the ID token lacks. The mail address and
// email_verified always come from the same source.
func (p *provider) complete(said, more map[string]any) {
	_, address := said[claimEmail]
	_, verified := said[claimVerified]
	if _, ok := more[claimEmail]; ok && !(address && verified) {
		said[claimEmail], said[claimVerified] = more[claimEmail], more[claimVerified]
	}
	for _, name := range []string{p.GroupsClaim, claimName} {
		if _, ok := said[name]; !ok {
			said[name] = more[name]
		}
	}
}

// read reads the claims that the directory needs. It ignores claims of the wrong type.
func (p *provider) read(c *directory.Claims, said map[string]any) {
	c.Email, _ = said[claimEmail].(string)
	c.Name, _ = said[claimName].(string)
	c.EmailVerified = said[claimVerified] == true || said[claimVerified] == "true" // some providers send text
	switch g := said[p.GroupsClaim].(type) {
	case string:
		c.Groups = []string{g}
	case []any:
		for _, one := range g {
			if name, ok := one.(string); ok {
				c.Groups = append(c.Groups, name)
			}
		}
	}
}

var errOtherSubject = errors.New("UserInfo is about somebody else than the ID token (sub)")

// userInfo reads the UserInfo of the person in the tokens.
func userInfo(
	ctx context.Context,
	from *oidc.Provider,
	subject string,
	tokens *oauth2.Token,
) (map[string]any, error) {
	info, err := from.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
	if err != nil {
		return nil, userInfoError(err)
	}
	if info.Subject != subject || subject == "" {
		return nil, errOtherSubject
	}
	more := map[string]any{}
	if err := info.Claims(&more); err != nil {
		return nil, fmt.Errorf("read UserInfo: %w", err)
	}
	return more, nil
}

// httpStatus matches the beginning of an error about a response's status.
var httpStatus = pattern.Of(`^([0-9]{3}) [A-Za-z ]*:`)

// userInfoError removes everything that the provider sent except its status.
func userInfoError(err error) error {
	if unreached, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%w: %w", errUnreachable, unreached)
	}
	status := httpStatus().FindStringSubmatch(err.Error())
	switch {
	case status == nil:
		return errors.New("the provider's UserInfo can't be read")
	case status[1][0] == '5':
		return fmt.Errorf("%w: its UserInfo endpoint answers with status %s", errUnreachable, status[1])
	}

	return fmt.Errorf("the provider refused UserInfo with status %s", status[1])
}
