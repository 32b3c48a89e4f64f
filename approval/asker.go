package approval

import (
	"fmt"
	"strconv"
)

// Asker is who wants a call to run. It is never empty: everything that
// belongs to an asker (requests, permits, standing approvals,
// idempotency keys) is found by it, and none of the people behind it
// may answer.
type Asker struct {
	// Token is the name of the token that asks, or of the program where
	// the service is embedded. Required.
	Token string `json:"token"`
	// Person is whose token that is: the id that the directory gives
	// them; "" when it is nobody's.
	Person string `json:"person,omitempty"`
	// Principal is whom the agent acts for, as the token claims; ""
	// when it names nobody.
	Principal string `json:"principal,omitempty"`
}

// Same reports whether both are one asker, whomever they act for.
func (a Asker) Same(b Asker) bool { return a.Token == b.Token && a.Person == b.Person }

// Check refuses an asker without a name, and names that a store or the
// ledger could not keep.
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

// Own makes a key of the asker's own: two askers that choose the same
// key mean two things.
func (a Asker) Own(key string) string {
	return prefixed(a.Token) + prefixed(a.Person) + key
}

// prefixed writes a text so that nothing that follows can be taken for
// a part of it.
func prefixed(text string) string { return strconv.Itoa(len(text)) + ":" + text }

// speaksFor makes sure that the asker names the principal of the call.
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

// asker is who asked first.
func (r *Requester) asker() Asker {
	return Asker{Token: r.Runtime, Person: r.Person, Principal: r.Principal}
}

// askers are all who asked for this very call.
func (r *Request) askers() []Asker {
	out := []Asker{r.Requester.asker()}
	for i, token := range r.Requester.Also {
		out = append(out, Asker{Token: token, Person: r.Requester.AlsoOf[i]})
	}
	return out
}

// AlsoPeople are those whose tokens asked for the very same call
// meanwhile, each once.
func (r *Requester) AlsoPeople() []string { return distinctTexts(r.AlsoOf) }

// AskedBy reports whether the asker wants this very call to run, as the
// first or as a further one: such an asker may read the request,
// consume and withdraw it.
func (r *Request) AskedBy(who Asker) bool {
	return r.Requester.asker().Same(who) || among(r.Requester.Also, r.Requester.AlsoOf, who)
}

// among reports whether an asker is in a list of tokens and the people
// whose tokens those are, in the same order.
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
