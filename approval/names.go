package approval

import "github.com/assent-dev/assent/policy/people"

// checkPrincipal returns an error if the name can't be the name of a principal.
func checkPrincipal(name string) error {
	if name == "" {
		return nil
	}
	if err := checkName("call.principal", name); err != nil {
		return err
	}
	if message, expected := people.NameProblem(name); message != "" {
		return &InputError{"call.principal", expected + ": " + message}
	}

	return nil
}
