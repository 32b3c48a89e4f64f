//go:build unix

package hook

import (
	"os"
	"syscall"
)

// signals are those that would end the process in a way that products
// take for a hook that failed, after which they run the call.
func signals() []os.Signal {
	return []os.Signal{
		os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE,
		syscall.SIGALRM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGABRT, syscall.SIGSYS, syscall.SIGTRAP,
		syscall.SIGXCPU,
	}
}
