package rap_test

// runtimeRows tests a Runtime against a scripted tool server.
func runtimeRows() []confRow { return nil }

// runtimeProcess is a runtime in a process of its own, which a row may kill.
func runtimeProcess() error { return nil }
