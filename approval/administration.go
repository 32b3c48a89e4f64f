package approval

import "strings"

// AdministrationAgent is the id of the reserved agent whose calls are acts of administrators. Tools
// do not run these calls; the consumer of the approval carries out the act (package
// administration).
const AdministrationAgent = "assent-administration"

// administrationPrefix is the prefix of the askers of administration acts. Token names can't start
// with it.
const administrationPrefix = "administration/"

// AdministrationAsker returns the asker of an administration act that was requested with the named
// token.
func AdministrationAsker(token, person string) Asker {
	return Asker{Token: administrationPrefix + token, Person: person}
}

// mayAskFor returns ErrUnknownAgent if a runtime asks for an act of administration.
func (a *Asker) mayAskFor(agent string) error {
	if agent == AdministrationAgent && !strings.HasPrefix(a.Token, administrationPrefix) {
		return ErrUnknownAgent
	}

	return nil
}
