package main

import (
	"errors"
	"math"
	"testing"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/server/quota"
)

// TestTheMemoryLimitIsTheGroups: the limit is four fifths of the control group's limit, or the
// default if the group has none.
func TestTheMemoryLimitIsTheGroups(t *testing.T) {
	for name, c := range map[string]struct {
		group uint64
		err   error
		want  int64
	}{
		"a bounded group":      {512 << 20, nil, 512 << 20 / 5 * 4},
		"a large one":          {64 << 30, nil, 64 << 30 / 5 * 4},
		"no bound":             {0, errors.New("memory is not limited"), usualMemory},
		"no group":             {0, errors.New("no cgroups"), usualMemory},
		"a bound that is none": {math.MaxUint64, nil, usualMemory},
		"zero":                 {0, nil, usualMemory},
	} {
		if got := memoryLimit(func() (uint64, error) { return c.group, c.err }); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestLimitsFitTogether: what is configured holds, and what is not fits
// itself to it.
func TestLimitsFitTogether(t *testing.T) {
	standard := quota.Parts{Total: 100, Tenant: 50, Caller: 10}
	for _, c := range []struct {
		set  config.Parts
		want quota.Parts
	}{
		{config.Parts{}, standard},
		{config.Parts{Total: 30}, quota.Parts{Total: 30, Tenant: 30, Caller: 10}},
		{config.Parts{Total: 5}, quota.Parts{Total: 5, Tenant: 5, Caller: 5}},
		{config.Parts{Tenant: 200}, quota.Parts{Total: 200, Tenant: 200, Caller: 10}},
		{config.Parts{Token: 70}, quota.Parts{Total: 100, Tenant: 70, Caller: 70}},
		{config.Parts{Token: 300}, quota.Parts{Total: 300, Tenant: 300, Caller: 300}},
		{config.Parts{Total: 9, Tenant: 8, Token: 7}, quota.Parts{Total: 9, Tenant: 8, Caller: 7}},
	} {
		if got := partsOf(standard, c.set); got != c.want {
			t.Errorf("%+v gives %+v, want %+v", c.set, got, c.want)
		}
	}
}

func TestQuotaOf(t *testing.T) {
	got := quotaOf(config.Limits{Open: config.Parts{Token: 3}, HourlyBytes: config.Parts{Tenant: 4}})
	want := usualQuota()
	want.Token.Open, want.Tenant.BytesPerHour = 3, 4
	if got != want || quotaOf(config.Limits{}) != usualQuota() || want == (approval.Quota{}) {
		t.Errorf("got %+v", got)
	}
}

func TestCallLimits(t *testing.T) {
	if got := callLimits(config.Limits{}).MaxValues; got != 50_000 {
		t.Errorf("got %d", got)
	}
	if got := callLimits(config.Limits{Values: 7}).MaxValues; got != 7 {
		t.Errorf("got %d", got)
	}
}
