package rap_test

import (
	"testing"

	"github.com/assent-dev/assent/rap"
	"github.com/assent-dev/assent/store"
	"github.com/assent-dev/assent/store/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Records(t, func(*testing.T) store.Records { return rap.NewMemory() })
}
