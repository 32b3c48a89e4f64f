package quota

// Limits are the parts of all shared resources of a process.
type Limits struct {
	Memory  Parts // bytes for requests and answers in progress
	Turns   Parts // pieces of heavy work at a time: pages, and calls and requests above 64 KiB
	Streams Parts // event streams, of the API and of the inbox
	Polls   Parts // requests that wait for a change
	// Exchanges of the API that are processed at the same time. Tenants are tokens here,
	// because the token's owner is not known yet.
	Exchanges Parts
}

// Default returns the limits for a process with this memory, in bytes, and this number of
// processors. They suit a laptop and a small server. Less than half of the memory is for
// requests in progress, and at most half of the processors for one tenant's heavy work.
func Default(memory int64, processors int) Limits {
	turns := int64(max(2, processors))
	return Limits{
		Memory:  Parts{Total: memory / 8 * 3, Tenant: memory / 4, Caller: memory / 16 * 3},
		Turns:   Parts{Total: turns, Tenant: turns / 2, Caller: max(1, turns/4)},
		Streams: Parts{Total: 1000, Tenant: 500, Caller: 100},
		Polls:   Parts{Total: 2000, Tenant: 1000, Caller: 500},

		Exchanges: Parts{
			Total:   32 * turns,
			Tenant:  8 * turns,
			Caller:  8 * turns,
			Waiting: 1000,
		},
	}
}

// Shares are the pools of a process.
type Shares struct {
	Memory, Turns, Streams, Polls, Exchanges *Pool
}

// New returns shares in which all units are free.
func New(l Limits) *Shares {
	return &Shares{
		Memory:    NewPool(l.Memory),
		Turns:     NewPool(l.Turns),
		Streams:   NewPool(l.Streams),
		Polls:     NewPool(l.Polls),
		Exchanges: NewPool(l.Exchanges),
	}
}
