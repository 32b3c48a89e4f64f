package main

import (
	"cmp"
	"math"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/assent-dev/assent/approval"
	"github.com/assent-dev/assent/cmd/internal/config"
	"github.com/assent-dev/assent/resolve"
	"github.com/assent-dev/assent/server/quota"
	"github.com/assent-dev/assent/value"
)

// usualMemory is the default memory limit of a process in bytes.
const usualMemory = 1 << 30

// roomy reduces garbage collection while the heap is small, which saves a tenth of the work of a
// busy service. Near the memory limit the collector works as usual. GOGC and GOMEMLIMIT take
// precedence. It returns the limit in bytes.
func roomy() int64 {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit(memlimit.FromCgroup))
	}
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 { // GOMEMLIMIT=off
		return usualMemory
	}
	return limit
}

// memoryLimit returns four fifths of the memory limit of the process's control group. The rest is
// for memory outside of the Go heap. Without a control group limit it returns usualMemory.
func memoryLimit(group func() (uint64, error)) int64 {
	most, err := group()
	if err != nil || most == 0 || most > math.MaxInt64 {
		return usualMemory
	}
	return int64(most / 5 * 4)
}

// sharesOf returns the pools of a process with the given memory, by the configuration.
func sharesOf(c config.Limits, memory int64) *quota.Shares {
	l := quota.Default(memory, runtime.GOMAXPROCS(0))
	for _, p := range []struct {
		parts *quota.Parts
		set   config.Parts
	}{{&l.Memory, c.Memory}, {&l.Turns, c.Heavy}, {&l.Streams, c.Streams}, {&l.Polls, c.Polls}} {
		*p.parts = partsOf(*p.parts, p.set)
	}

	return quota.New(l)
}

// partsOf overrides the defaults by what is configured. If only one part is configured, the others
// are adapted to it.
func partsOf(standard quota.Parts, set config.Parts) quota.Parts {
	out := quota.Parts{
		Total:  cmp.Or(set.Total, standard.Total),
		Tenant: cmp.Or(set.Tenant, standard.Tenant),
		Caller: cmp.Or(set.Token, standard.Caller),
	}
	if set.Total == 0 {
		out.Total = max(out.Total, set.Tenant, set.Token)
	}
	if set.Tenant == 0 {
		out.Tenant = min(max(out.Tenant, set.Token), out.Total)
	}
	if set.Token == 0 {
		out.Caller = min(out.Caller, out.Tenant)
	}
	return out
}

// usualQuota returns the default limits for what tokens and tenants may store.
func usualQuota() approval.Quota {
	return approval.Quota{
		Token: approval.Amounts{
			Open:         500,
			OpenBytes:    256 << 20,
			BytesPerHour: 512 << 20,
		},
		Tenant: approval.Amounts{Open: 2000, OpenBytes: 1 << 30, BytesPerHour: 2 << 30},
	}
}

func quotaOf(c config.Limits) approval.Quota {
	q := usualQuota()
	for _, p := range []struct {
		token, tenant *int64
		set           config.Parts
	}{
		{&q.Token.Open, &q.Tenant.Open, c.Open}, {&q.Token.OpenBytes, &q.Tenant.OpenBytes, c.OpenBytes},
		{&q.Token.BytesPerHour, &q.Tenant.BytesPerHour, c.HourlyBytes},
	} {
		*p.token, *p.tenant = cmp.Or(p.set.Token, *p.token), cmp.Or(p.set.Tenant, *p.tenant)
	}

	return q
}

// callLimits bounds the arguments of calls.
func callLimits(c config.Limits) value.Limits {
	return value.Limits{MaxValues: cmp.Or(c.Values, resolve.DefaultValues)}
}
