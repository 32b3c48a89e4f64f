package decide

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/assent-dev/assent/cmd/internal/term"
	"github.com/assent-dev/assent/policy"
)

// loadPolicies reads directories of policies into one registry. It is
// all or nothing (docs/contracts/policy.md).
func loadPolicies(dirs []string, errOut io.Writer) (*policy.Set, error) {
	var policies []*policy.Policy
	texts := map[string][]byte{}
	for _, dir := range dirs {
		files, unread := policy.ReadFS(os.DirFS(dir), dir)
		for _, f := range files {
			texts[f.Name] = f.Text
		}
		set, findings := policy.LoadFiles(files, dir, unread...)
		if set.Err() != nil {
			term.PrintFindings(errOut, findings, texts)
			return nil, fmt.Errorf("the policies in %s can't be used", dir)
		}
		policies = append(policies, set.Policies()...)
	}

	set, findings := policy.NewSet(policies...)
	if set.Err() != nil {
		term.PrintFindings(errOut, findings, texts)
		return nil, fmt.Errorf("the policies in %s can't be used together", strings.Join(dirs, ", "))
	}
	return set, nil
}
