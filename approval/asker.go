package approval

import (
	"fmt"
	"strconv"
)

// Asker is a party that wants a call to run. It is never empty: requests, permits, standing
// approvals and idempotency keys are looked up by their asker, and none of the asker's people may
// answer.
type Asker struct {
	// Token is the name of the token that asks, or of the program that embeds the service.
	// Required.
	Token string `json:"token"`
	// Person is the owner of the token, as an id of the directory. It is empty if the token has no
	// owner.
	Person string `json:"person,omitempty"`
	// Principal is the person that the agent acts for, according to the token. It may be empty.
	Principal string `json:"principal,omitempty"`
}

// Same reports whether both have the same token and owner. It ignores the principal.
func (a Asker) Same(b Asker) bool { return a.Token == b.Token && a.Person == b.Person }

// Check returns an error if the asker has no token, or if a name can't be stored in a store or the
// ledger.
func (a Asker) Check() error {
	if a.Token == "" {
		return &InputError{"asker.token", "the name of the token, or of the program, that asks"}
	}

	return firstError(
		checkName("asker.token", a.Token),
		checkName("asker.person", a.Person),
		checkPrincipal(a.Principal),
	)
}

// Own returns a key that contains the asker, so that equal keys of two askers are different.
func (a Asker) Own(key string) string {
	return prefixed(a.Token) + prefixed(a.Person) + key
}

// prefixed returns the text with its length in front, so that what follows can't be mistaken for a
// part of it.
func prefixed(text string) string { return strconv.Itoa(len(text)) + ":" + text }

// speaksFor sets the asker's principal to the principal of the call if it is empty, and returns an
// error if it is another one.
func (a *Asker) speaksFor(principal string) error {
	if a.Principal == "" {
		a.Principal = principal
	}
	if a.Principal != principal {
		return &InputError{
			"asker.principal",
			fmt.Sprintf("the principal of the call, %q", principal),
		}
	}

	return nil
}

// asker returns the first asker.
func (r *Requester) asker() Asker {
	return Asker{Token: r.Runtime, Person: r.Person, Principal: r.Principal}
}

// askers returns all askers of this call, the first one first.
func (r *Request) askers() []Asker {
	out := []Asker{r.Requester.asker()}
	for i, token := range r.Requester.Also {
		out = append(out, Asker{Token: token, Person: r.Requester.AlsoOf[i]})
	}
	return out
}

// AlsoPeople returns the owners of the further tokens in Also, without duplicates.
func (r *Requester) AlsoPeople() []string { return distinctTexts(r.AlsoOf) }

// AskedBy reports whether the asker made or joined this request. Such an asker may read, consume
// and withdraw the request.
func (r *Request) AskedBy(who Asker) bool {
	return r.Requester.asker().Same(who) || among(r.Requester.Also, r.Requester.AlsoOf, who)
}

// among reports whether an asker is in the list. people holds the owners of the tokens, in the same
// order.
func among(tokens, people []string, who Asker) bool {
	for i, token := range tokens {
		person := ""
		if i < len(people) {
			person = people[i]
		}
		if who.Same(Asker{Token: token, Person: person}) {
			return true
		}
	}

	return false
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}

	return nil
}
