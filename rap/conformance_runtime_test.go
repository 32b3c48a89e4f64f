package rap_test

// runtimeRows tests a Runtime against a scripted tool server.
func runtimeRows() []confRow {
	return []confRow{
		{"R1", "a pick is posted once, to exactly the response URL, and the call stays pending", testR1},
		{"R2", "a dismissal posts the default", testR2},
		{"R3", "a result after the answer completes the call, and only the result is its outcome", testR3},
		{"R4", "a result while the question is open withdraws it, and a later answer goes nowhere", testR4},
		{"R5", "a callback that overtakes the acknowledgement is accepted", testR5},
		{
			"R6",
			"a call without a result ends once, with an error of ours, and a late result is discarded",
			testR6,
		},
		{
			"R7",
			"an invocation is never sent again after a question, whatever became of its acknowledgement",
			testR7,
		},
		{
			"R8",
			"an answer that can't be delivered is tried again with the same body, a bounded number of times",
			testR8,
		},
		{"R9", "an answer that the tool refuses is not tried again, and the user is told", testR9},
		{"R10", "a redirect of an answer is not followed", testR10},
		{"R11", "choices that are empty, missing or no strings are refused", testR11},
		{"R12", "a default that is missing or no index of the choices is refused", testR12},
		{"R13", "a single choice is shown, and sent by a pick and by a dismissal", testR13},
		{"R14", "equal and empty labels are told apart by their index", testR14},
		{
			"R15",
			"a question without a prompt, or whose response URL is not the tool's, is refused and nobody connects",
			testR15,
		},
		{"R16", "a response URL is posted to byte for byte", testR16},
		{"R17", "callbacks for unknown, foreign and finished calls are refused", testR17},
		{"R18", "right ids under a wrong callback token, or another call's, are refused", testR18},
		{"R19", "a repeated question is one question, and its answer is posted once", testR19},
		{"R20", "a changed question replaces the open one, and an answer to the old one is void", testR20},
		{"R21", "a second question after the answer never gets the first one's answer", testR21},
		{"R22", "the same question in another call is put to people again", testR22},
		{"R23", "two people who answer at once make one answer", testR23},
		{"R24", "an interrupted call tells every server once and ignores what comes late", testR24},
		{"R25", "a closed thread withdraws its questions, posts nothing and tells every server once", testR25},
		{"R26", "a question survives a crash of the runtime, and the invocation is not sent again", testR26},
		{"R27", "call_id may be null, absent or there", testR27},
		{
			"R28",
			"unknown fields are passed over; unknown types, other methods, other content, big bodies and bad text " +
				"are refused",
			testR28,
		},
		{"R29", "equal ids in two threads get their own answers", testR29},
		{"R30", "the second of two results is ignored", testR30},
		{"R31", "content supersedes text, and a result with neither is refused", testR31},
		{"R32", "views, events and sign-ins leave an open question alone", testR32},
		{
			"R33",
			"control characters, markup, long prompts and many choices are made harmless for those who read them",
			testR33,
		},
		{"R34", "an invalid manifest offers nothing", testR34},
		{"R35", "a tool name that two servers use is offered by neither", testR35},
		{"R36", "invocations go where the manifest says", testR36},
		{"R37", "a refused invocation is not repeated, a failed one is, and any 2xx accepts it", testR37},
		{"R38", "servers that fail or hang when told of an end delay nothing and are told once", testR38},
		{
			"R39",
			"threads and calls of two askers have nothing in common but their names, here and at the tool server",
			testR39,
		},
	}
}
