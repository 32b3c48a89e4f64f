//go:build unix

package hook

import (
	"os"
	"syscall"
)

// signals returns the signals that would end the process. Products would treat that as a failed
// hook and run the call.
func signals() []os.Signal {
	return []os.Signal{
		os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE,
		syscall.SIGALRM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGABRT, syscall.SIGSYS, syscall.SIGTRAP,
		syscall.SIGXCPU,
	}
}
