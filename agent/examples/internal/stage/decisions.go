package stage

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/assent-dev/assent/resolve"
)

// Decisions adds the flag -decisions to the flags of an example: the owner's decisions.yaml, in
// the form that assent serve reads.
func Decisions(flags *flag.FlagSet) *string {
	return flags.String("decisions", "", "decisions.yaml, as assent serve reads it, without policies of its own")
}

// Owner reads such a file for a plan. It returns no options for "". A file that names policies
// is an error. An example has its own policies in its binary, so without the file's policies it
// would decide more loosely than the file says.
func Owner(file string) (resolve.Options, error) {
	if file == "" {
		return resolve.Options{}, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return resolve.Options{}, err
	}
	chosen, findings := resolve.ParseConfig(file, text)
	switch {
	case chosen == nil:
		var all []error
		for _, f := range findings {
			at := f.Range.Start
			all = append(all, fmt.Errorf("%s:%d:%d: %s", file, at.Line, at.Column, f.Message))
		}
		return resolve.Options{}, errors.Join(all...)
	case len(chosen.Policies) > 0 || chosen.Registry != nil:
		return resolve.Options{}, fmt.Errorf("%s names policies: this example has its own, expected none", file)
	}

	return chosen.Options(), nil
}
