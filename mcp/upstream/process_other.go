//go:build !unix

package upstream

import "os/exec"

// ownGroup does nothing, because this system has no process groups.
func ownGroup(*exec.Cmd) {}

func terminate(cmd *exec.Cmd) error { return cmd.Process.Kill() }

func kill(cmd *exec.Cmd) error { return cmd.Process.Kill() }
