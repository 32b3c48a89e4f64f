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

// usualMemory is the memory limit of a process that nobody has given
// one, in bytes.
const usualMemory = 1 << 30

// roomy lets the heap grow further between collections while it is
// small, which is a tenth of what a busy service does; from the memory
// limit on the collector works as hard as ever. GOGC and GOMEMLIMIT go
// before it. It returns the limit, in bytes.
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

// memoryLimit is four fifths of what the process's control group may
// have; the rest is for what the collector doesn't see. Without a group
// that bounds the memory it is the usual one.
func memoryLimit(group func() (uint64, error)) int64 {
	most, err := group()
	if err != nil || most == 0 || most > math.MaxInt64 {
		return usualMemory
	}
	return int64(most / 5 * 4)
}

// sharesOf are the pools of a process with so much memory, by the
// configuration.
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

// partsOf puts what is configured over the defaults. Where only one of
// them is, the others fit themselves to it.
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

// What tokens and tenants may have kept unless the configuration says
// otherwise.
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
