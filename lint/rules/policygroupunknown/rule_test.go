package policygroupunknown

import (
	"os"
	"testing"

	"github.com/assent-dev/assent/lint/linttest"
)

func TestRule(t *testing.T) { linttest.Run(t, os.DirFS("."), Rule()) }
