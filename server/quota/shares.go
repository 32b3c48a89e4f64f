package quota

// Limits are the parts of everything that a process shares out.
type Limits struct {
	Memory  Parts // bytes that requests and answers in work may take
	Turns   Parts // pieces of heavy work at a time: pages, and calls and requests above 64 KiB
	Streams Parts // event streams, of the API and of the inbox
	Polls   Parts // requests that wait for a change
	// Exchanges of the API that are worked on at a time, whatever they
	// are. Tenants are tokens here: whose they are is not known yet.
	Exchanges Parts
}

// Default are the limits of a process that may have so much memory, in
// bytes, on so many processors: good for a laptop and for a small
// server. Less than half of the memory is for what is in work, and half
// of the processors at most for one tenant's heavy work.
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

// New returns shares of which nothing is held.
func New(l Limits) *Shares {
	return &Shares{
		Memory:    NewPool(l.Memory),
		Turns:     NewPool(l.Turns),
		Streams:   NewPool(l.Streams),
		Polls:     NewPool(l.Polls),
		Exchanges: NewPool(l.Exchanges),
	}
}
