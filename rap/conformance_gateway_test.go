package rap_test

// gatewayRows tests a Gateway against a scripted runtime.
func gatewayRows() []confRow { return nil }

// gatewayProcess is a gateway in a process of its own, which a row may kill.
func gatewayProcess() error { return nil }
