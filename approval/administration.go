package approval

import "strings"

// AdministrationAgent is the id of the reserved agent whose calls are
// acts of administrators. Tools do nothing for it: who takes the run of
// such a call does what it says (package administration).
const AdministrationAgent = "assent-administration"

// administrationPrefix begins the names of those who ask for acts of
// administration. No token's name begins so.
const administrationPrefix = "administration/"

// AdministrationAsker is who asks for an act of administration by a
// token of this name.
func AdministrationAsker(token, person string) Asker {
	return Asker{Token: administrationPrefix + token, Person: person}
}

// mayAskFor keeps runtimes from asking for acts of administration: for
// them there is no such agent.
func (a *Asker) mayAskFor(agent string) error {
	if agent == AdministrationAgent && !strings.HasPrefix(a.Token, administrationPrefix) {
		return ErrUnknownAgent
	}

	return nil
}
